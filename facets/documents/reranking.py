"""Reranks texts for a query as a search in a collection of only these texts would; nothing is stored.

Shape letters: N texts, K facets of a text, D dimensions.
"""

from collections.abc import Sequence

import numpy as np

from facets.documents.answers import AnswerReader
from facets.documents.codes import decode_units, hash_terms
from facets.documents.confidence import RelevanceCurve
from facets.documents.encoding import encode_documents
from facets.documents.evidence import FoundText, explain
from facets.documents.fields import SearchedText
from facets.documents.ranking import best_of, judged, score
from facets.documents.records import CollectionModel
from facets.documents.request import SearchRequest, prepare_search
from facets.documents.search import add_phrases
from facets.documents.types import Document, RankedText
from facets.index.candidates import meet
from facets.index.lexical import LexicalIndex
from facets.language.vectors import unit_rows


def rerank(
    documents: Sequence[Document],
    request: SearchRequest,
    *,
    space: str,
    curve: RelevanceCurve | None,
    reader: AnswerReader | None = None,
) -> tuple[RankedText, ...]:
    """The best texts for a query, best first, ties in the order given.

    ``documents``: at least one; ids must differ. ``request``: one query. ``space``: of the facets. ``curve`` and
    ``reader``: as for a search. Raises InvalidInputError if the query or a document is invalid.
    """
    num_facets = min(len(document.facet_embeddings) for document in documents)
    dim = documents[0].facet_embeddings.shape[1]
    shape = {"num_facets": num_facets, "dim": dim}
    model = CollectionModel(model="", model_revision="", space=space, **shape, search_fields={}, language="")
    encoded = encode_documents(documents, model)
    search = prepare_search(request, dim=dim, curve=curve, language=encoded.language, reader=reader)
    rows = np.arange(len(documents), dtype=np.int64)
    terms = words = None
    if search.mode != "facets":
        lexical, [terms] = LexicalIndex(), search.terms
        lexical.apply(1, added=rows, removed=rows[:0], terms=encoded.terms)
        words = lexical.search(hash_terms([term for term, _ in terms.words]), len(rows), also=rows)
        words = add_phrases(words, terms, lexical, lambda some: {row: (documents[row].text,) for row in some.tolist()})
    met = meet(search.facets[0], encoded.codes, encoded.starts, any_suffices=search.any_suffices)
    scored = score(rows, met, terms, words, search=search, space=space, num_searched=len(rows))
    digits = len(str(len(rows)))
    best = best_of(scored, {row: (row, f"{row:0{digits}d}") for row in rows.tolist()}, search)
    starts, places = encoded.starts, best.rows.tolist()
    found = [
        FoundText(
            SearchedText(documents[row].text),
            unit_rows(decode_units(encoded.codes[starts[row] : starts[row + 1]]).astype(np.float32)),
            encoded.spans[row],
            best.met.shares[place],
            best.met.document_facets[place],
        )
        for place, row in enumerate(places)
    ]
    reasons = explain(search, 0, found, {} if words is None else words.rarities)
    ranked = [
        RankedText(**best.numbers_of(place), index=row, answer=why.answer, answer_confidence=None)
        for place, (row, why) in enumerate(zip(places, reasons, strict=True))
    ]
    return tuple(judged(ranked, reasons, search))
