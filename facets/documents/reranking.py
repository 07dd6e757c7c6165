"""Texts put in the order in which they answer a query: the search of a collection that holds these and is never stored.

Shape letters: N texts, K facets of a text, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from facets.documents.codes import decode_units, hash_terms
from facets.documents.encoding import EncodedBatch, encode_documents
from facets.documents.evidence import HeldFacets, reasons_of
from facets.documents.fields import SearchedText
from facets.documents.ranking import CheckedSearch, LexicalSide, Scored, best_of, met_nothing, score
from facets.documents.records import CollectionRecord, CollectionState
from facets.documents.search import with_phrases
from facets.documents.types import Document, Span
from facets.index.candidates import meet
from facets.index.lexical import LexicalIndex
from facets.language.interruption import check_interrupted
from facets.language.vectors import unit_rows


@dataclass(frozen=True, kw_only=True, slots=True)
class RankedText:
    """A text and how it answers; what is said of a :class:`facets.documents.SearchHit` holds."""

    index: int  # its place among the texts, from 0
    score: float  # what the texts are in order of; higher is better
    facets_score: float  # that of its facets
    lexical_score: float  # that of its words; rare are those that few of the texts have
    confidence: float | None  # how probable it is that it answers; None without a curve for the mode
    answer: Span | None  # the part that answers best; None where neither facets nor words say


def rerank(documents: Sequence[Document], search: CheckedSearch, *, space: str) -> tuple[RankedText, ...]:
    """The best texts for a query, best first, ties in the order in which they were given.

    Scores and confidence are those that a search of a collection of these documents gives.

    Args:
        documents: At least one, with different ids; their facets are of one shape but where texts are long.
        search: What is looked for, one query; its ``top_k`` says how many texts are wanted.
        space: Of the facets.

    Raises:
        InvalidInputError: Whatever :meth:`facets.documents.CollectionEngine.upsert` says of such documents.
    """
    encoded = encode_documents(documents, _record_of(documents, space))
    side = None if search.mode == "facets" else _words(encoded, search)
    rows = np.arange(len(documents), dtype=np.int64)
    met = met_nothing(len(rows))
    if search.mode != "lexical":
        met = meet(search.facets[0], encoded.codes, encoded.starts, any_suffices=search.any_suffices)
    scored = score(rows, met, side, search=search, space=space, num_searched=len(rows))
    width = len(str(len(rows)))
    best = best_of(scored, {row: (row, f"{row:0{width}d}") for row in rows.tolist()}, search)
    return tuple(_ranked(place, best, encoded, search=search, side=side) for place in range(len(best.rows)))


def _record_of(documents: Sequence[Document], space: str) -> CollectionRecord:
    """The collection that they would make."""
    num_facets = min(len(document.facet_embeddings) for document in documents)
    return CollectionRecord(
        number=0,
        name="",
        model="",
        model_revision="",
        space=space,
        code="int8",
        num_facets=num_facets,
        dim=documents[0].facet_embeddings.shape[1],
        created_us=0,
        config={},
        search_fields={},
        revision=0,
        num_documents=len(documents),
        num_parts=len(documents),
        state=CollectionState.LIVE,
        replaces=None,
    )


def _words(encoded: EncodedBatch, search: CheckedSearch) -> LexicalSide:
    lexical, [terms] = LexicalIndex(), search.terms
    rows = np.arange(len(encoded.texts), dtype=np.int64)
    lexical.apply(1, added=rows, removed=rows[:0], terms=encoded.terms)
    found = lexical.search(hash_terms([term for term, _ in terms.words]), len(rows), also=rows)
    texts = {row: (encoded.texts[row],) for row in rows.tolist()}
    return with_phrases(LexicalSide(terms=terms, found=found), lexical, lambda wanted: texts)


def _ranked(
    place: int, best: Scored, encoded: EncodedBatch, *, search: CheckedSearch, side: LexicalSide | None
) -> RankedText:
    check_interrupted()
    row = int(best.rows[place])
    own = slice(int(encoded.starts[row]), int(encoded.starts[row + 1]))
    text = SearchedText(encoded.texts[row])
    held = HeldFacets(text, unit_rows(decode_units(encoded.codes[own]).astype(np.float32)), encoded.spans[row])
    met = best.met.shares[place], best.met.document_facets[place]
    terms, rarities = (None, {}) if side is None else (side.terms, side.found.rarities)
    _, answer = reasons_of(search.facets[0], met, held, terms=terms, rarities=rarities)
    return RankedText(
        index=row,
        score=float(best.scores[place]),
        facets_score=float(best.met.scores[place]),
        lexical_score=float(best.lexical[place]),
        confidence=None if best.confidences is None else float(best.confidences[place]),
        answer=answer,
    )
