"""Searches as a caller asks for them: texts or facets as queries, and words that explain the hits.

Shape letters: J facets of a query, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from facets.arrays import Bools, Floats
from facets.documents.encoders import Encoder, check_readable_by
from facets.documents.request import SearchRequest
from facets.documents.types import Combination, RankedText, SearchHit
from facets.errors import InvalidInputError
from facets.language.tokenizer import check_text
from facets.language.vectors import WordVectors
from facets.model.contract import FOREIGN, ModelInfo, check_readable, is_foreign

_MAX_ENCODED_CHARS = 16_384  # of a query: encoding all of 1 MiB would take minutes
_MAX_MATCHES = 3  # explained facets of a query: those that contribute most


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentQuery(SearchRequest):
    """A search for one or more queries; ``facets``, ``weights`` and ``texts`` are set once these are encoded."""

    queries: Sequence[str | Floats]  # texts, or facets `[J, D]`
    model: str = ""  # encodes the texts; empty: the collection's
    evidence: bool = False  # whether hits list the facets that matched
    num_words: int = 5  # nearest words for each facet in the evidence
    include_document: bool = True  # whether hits include text and payload


@dataclass(frozen=True, kw_only=True, slots=True)
class RerankQuery(SearchRequest):
    """A request to rank ``documents`` by how well they answer ``query``; ``model`` encodes both, empty: the default."""

    query: str
    documents: Sequence[str]
    model: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RerankResult:
    """Ranked texts."""

    results: tuple[RankedText, ...]  # best first, ties in the order given
    num_tokens: int  # that were read of the texts
    model: ModelInfo  # that encoded them


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """Facets ``[J, D]`` of one query, their weights ``[J]``, and how their scores are combined."""

    facets: Floats
    weights: Floats
    combine: Combination = "sum"


def encode_texts(texts: Sequence[str], encoder: Encoder) -> list[EncodedQuery]:
    """Texts as queries, with their facets of positive weight; of a long text, those of its beginning."""
    encoded = encoder.encode_queries([text[:_MAX_ENCODED_CHARS] for text in texts])

    def query(facets: Floats, weights: Floats, are_questions: bool) -> EncodedQuery:
        used: Bools = weights > 0
        return EncodedQuery(facets[used], weights[used], "any" if are_questions else "sum")

    return list(map(query, encoded.facets, encoded.weights, encoded.are_questions))


def encode_queries(query: DocumentQuery, encoder: Encoder, dim: int) -> list[EncodedQuery]:
    """Checks and encodes queries; there are no facets in mode lexical and for texts in a foreign script."""
    if not query.queries or isinstance(query.queries, str):
        raise InvalidInputError("must be a list of at least one query", path="queries")
    for i, entry in enumerate(query.queries):
        path = ("queries", i, "text" if isinstance(entry, str) else "facet_embeddings")
        if isinstance(entry, str):
            check_text(entry, path)
            if query.mode != "lexical":
                check_readable_by(encoder.model, entry, *path)
            if query.mode == "facets":
                check_readable(encoder.model, entry, path)
        elif query.mode == "lexical":
            raise InvalidInputError("must be a text in mode lexical, got facet_embeddings", path=path)
        elif entry.ndim != 2 or entry.shape[1] != dim:
            raise InvalidInputError(f"has shape {list(entry.shape)}, expected [facets, {dim}]", path=path)
    nothing = EncodedQuery(np.empty((0, dim), np.float32), np.empty(0, np.float32))
    if query.mode == "lexical":
        return [nothing] * len(query.queries)
    texts = [entry for entry in query.queries if isinstance(entry, str) and not is_foreign(encoder.model, entry)]
    encoded = dict(zip(texts, encode_texts(texts, encoder), strict=True)) if texts else {}
    return [
        encoded.get(entry, nothing) if isinstance(entry, str) else EncodedQuery(entry, _weights_of(entry))
        for entry in query.queries
    ]


def _weights_of(facets: Floats) -> Floats:
    """Equal weights for all facets; 0 for the zero rows that pad a text with fewer facets."""
    used: Bools = np.any(facets != 0, axis=1)
    return used.astype(np.float32) if used.any() else np.ones(len(facets), np.float32)


def left_out(query: DocumentQuery, encoded: Sequence[EncodedQuery]) -> str:
    """Warns of the first query that was searched by words only, because the model cannot read it; empty: none."""
    indices = [i for i, one in enumerate(encoded) if query.mode != "lexical" and not len(one.facets)]
    return f"queries[{indices[0]}].text {FOREIGN}: only its words were searched" if indices else ""


def requests_of(query: DocumentQuery, encoded: Sequence[EncodedQuery]) -> list[tuple[list[int], DocumentQuery]]:
    """Requests for the engine, which searches one array at a time, and the indices of their queries.

    Queries of the same kind, number of facets and combination are searched together.
    """
    groups: dict[tuple[int, bool, Combination], list[int]] = {}
    for index, (entry, one) in enumerate(zip(query.queries, encoded, strict=True)):
        key = (len(one.facets), isinstance(entry, str), query.combine or one.combine)
        groups.setdefault(key, []).append(index)
    requests = []
    for (num_facets, are_texts, combine), indices in groups.items():
        request = replace(
            query,
            facets=np.stack([encoded[index].facets for index in indices]),
            weights=np.stack([encoded[index].weights for index in indices]),
            texts=[str(query.queries[index]) for index in indices] if are_texts else None,
            mode="facets" if not are_texts else query.mode if num_facets else "lexical",
            combine=combine,
        )
        requests.append((indices, request))
    return requests


def explained(
    hits: Sequence[Sequence[SearchHit]], encoded: Sequence[EncodedQuery], words: WordVectors | None, num_words: int
) -> tuple[tuple[SearchHit, ...], ...]:
    """Adds to each hit the matches that contribute most, with their nearest ``words``; 0 words: no evidence."""
    if not num_words:
        return tuple(tuple(replace(hit, evidence=()) for hit in query_hits) for query_hits in hits)
    matches = [(query, match) for query, own in enumerate(hits) for hit in own for match in hit.evidence[:_MAX_MATCHES]]
    places = sorted({(query, match.first_facet) for query, match in matches})
    facets = [encoded[query].facets[facet] for query, facet in places] + [match.facet for _, match in matches]
    nearest: list[tuple[tuple[str, float], ...]] = [()] * len(facets)
    if words is not None and facets:
        nearest = list(map(tuple, words.nearest(np.stack(facets), num_words)))
    first_words = dict(zip(places, nearest, strict=False))
    explained_matches = (
        replace(match, first_words=first_words[query, match.first_facet], second_words=own)
        for (query, match), own in zip(matches, nearest[len(places) :], strict=True)
    )
    return tuple(
        tuple(replace(hit, evidence=tuple(next(explained_matches) for _ in hit.evidence[:_MAX_MATCHES])) for hit in own)
        for own in hits
    )
