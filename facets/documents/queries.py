"""Searches as a caller asks for them, checked, encoded and prepared for a collection; words that explain the hits.

Shape letters: Q queries, J facets of a query, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from facets.arrays import Bools, Floats, Vectors
from facets.documents.answers import MAX_READ_HITS
from facets.documents.confidence import RelevanceCurve
from facets.documents.encoders import Encoder, OpenReader, check_readable_by
from facets.documents.encoding import check_unicode, normalize
from facets.documents.filters import Filter
from facets.documents.types import MAX_NUM_FACETS, Combination, RankedText, SearchHit, SearchMode
from facets.errors import InvalidInputError
from facets.index.config import MAX_READ_BYTES, MAX_TEXT_BYTES, MAX_TOP_K
from facets.language.terms import QueryTerms, query_terms
from facets.language.tokenizer import check_text
from facets.language.vectors import WordVectors
from facets.model.answer_reader import AnswerReader
from facets.model.contract import FOREIGN, ModelInfo, check_readable, is_foreign

_MIN_DIVERSE_CANDIDATES = 50  # minimum number of documents among which diverse ones are chosen
_MIN_HYBRID_CANDIDATES = 50  # minimum number of candidates found by facets, and by words, if words are used
_MAX_ENCODED_CHARS = 16_384  # of a query: encoding all of 1 MiB would take minutes


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchRequest:
    """A search for one or more queries; raises InvalidInputError if a value is out of range."""

    top_k: int = 10  # hits for each query, 1 to `MAX_TOP_K`
    # Facets of the queries, `[Q, J, D]`, finite; norms are ignored. J need not be the collection's K.
    facets: Floats | None = None
    # Weights of the facets, `[Q, J]`, >= 0; scaled to add up to 1 for each query. None: all equal.
    weights: Vectors | None = None
    texts: Sequence[str] | None = None  # the queries as texts, `[Q]`; quoted phrases are matched exactly
    # How the scores of a query's facets are combined. `sum`: sum_j w_j max_k cos(q_j, F_k); `any`: the maximum over j
    # of the same terms, with the largest weight as 1. None: sum.
    combine: Combination | None = None
    # `hybrid`: facets and words; `facets`; `lexical`: BM25 alone, ignoring `facets`. None: hybrid with texts, facets
    # without.
    mode: SearchMode | None = None
    where: Filter | None = None  # only documents whose payload matches; None: all
    group: bool = True  # True: hits are documents, each with its best part. False: hits are parts.
    exact: bool = False  # compare with every document instead of using an approximate index
    min_confidence: float = 0.0  # leave out hits with less, in [0, 1]; above 0 it needs a curve for the mode
    # How much the hits should differ in what they answer, in [0, 1]; above 0 they are not ordered by score, see
    # `facets.index.candidates.select_diverse`.
    diversify: float = 0.0
    min_revision: int = 0  # the search must see the writes up to this revision; 0: any
    use_reader: bool = True  # whether the answer reader, if there is one, chooses the answers of the first hits
    max_bytes: int = MAX_READ_BYTES  # of the texts and payloads of all hits
    reasons: bool = True  # whether to compute evidence, answer and matched words, which is most of the work

    def __post_init__(self) -> None:
        if not 1 <= self.top_k <= MAX_TOP_K:
            raise InvalidInputError(f"must be 1 to {MAX_TOP_K}, got {self.top_k}", path="top_k")
        for name in ("min_confidence", "diversify"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InvalidInputError(f"must be in [0, 1], got {value:g}", path=name)
        for name, allowed in (("mode", get_args(SearchMode)), ("combine", get_args(Combination))):
            value = getattr(self, name)
            if value is not None and value not in allowed:
                raise InvalidInputError(f"must be one of {', '.join(allowed)}, got {value!r}", path=name)


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
        elif entry.ndim != 2 or entry.shape[1] != dim or not 0 < len(entry) <= MAX_NUM_FACETS:
            rule = f"has shape {list(entry.shape)}, expected [facets, {dim}], one to at most {MAX_NUM_FACETS} facets"
            raise InvalidInputError(rule, path=path)
        elif not np.isfinite(entry).all():
            raise InvalidInputError("has NaN or infinite values: expected finite ones", path=path)
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
            max_bytes=MAX_READ_BYTES * len(indices) // len(encoded),
        )
        requests.append((indices, request))
    return requests


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedSearch:
    """A request whose queries were checked against a collection."""

    request: SearchRequest
    mode: SearchMode
    # Facets of the queries with their weights as norms, `[Q, J, D]`, see `facets.index.candidates.meet`; J = 0 in mode
    # lexical.
    facets: Floats
    terms: tuple[QueryTerms, ...]  # of each query; empty in mode facets
    curve: RelevanceCurve | None  # gives hits their confidence
    reader: AnswerReader | None = None  # chooses the answers of the first hits; None: words and facets do

    @property
    def any_suffices(self) -> bool:
        """Whether the best facet of the query decides instead of the sum."""
        return self.request.combine == "any"

    @property
    def num_ranked(self) -> int:
        """Documents to rank by score for each query: ``top_k``, or more, of which the reader or diversity chooses."""
        top_k = self.request.top_k
        if self.request.diversify:
            return max(_MIN_DIVERSE_CANDIDATES, 2 * top_k)
        return max(MAX_READ_HITS, top_k) if self.reader is not None else top_k

    @property
    def num_candidates(self) -> int:
        """Number of candidate documents to find by facets, and by words."""
        return self.num_ranked if self.mode == "facets" else max(self.num_ranked, _MIN_HYBRID_CANDIDATES)


def prepare_search(
    request: SearchRequest, *, dim: int, curve: RelevanceCurve | None, language: str, reader: OpenReader | None = None
) -> PreparedSearch:
    """Checks the queries of a search in a collection of ``dim`` dimensions and a language.

    Raises InvalidInputError if their shape or values are wrong, or a value that the mode requires is missing.
    """
    mode = request.mode or ("facets" if request.texts is None else "hybrid")
    terms: tuple[QueryTerms, ...] = ()
    if mode != "facets":
        texts = request.texts
        if not texts or isinstance(texts, str):
            raise InvalidInputError(f"must be a sequence of at least one str in mode {mode}", path="texts")
        for position, text in enumerate(texts):
            check_unicode(text, path=("texts", position), max_bytes=MAX_TEXT_BYTES)
        terms = tuple(query_terms(text, language) for text in texts)
    facets_QJD = np.empty((len(terms), 0, dim), dtype=np.float32)
    if mode != "lexical":
        if request.facets is None:
            raise InvalidInputError(f"must be given in mode {mode}", path="facets")
        facets_QJD = weighted_queries(
            request.facets, dim, weights=request.weights, any_suffices=request.combine == "any"
        )
    if terms and len(terms) != len(facets_QJD):
        raise InvalidInputError(f"has {len(terms)} items, expected {len(facets_QJD)}, one a query", path="texts")
    if request.min_confidence > 0 and (curve is None or mode not in curve.weights):
        raise InvalidInputError(
            f"needs a model whose confidence was calibrated for mode {mode}, got {request.min_confidence} without one",
            path="min_confidence",
        )
    reads = request.use_reader and request.reasons and request.texts and language in ("", "en")
    opened = reader() if reads and reader else None
    return PreparedSearch(request=request, mode=mode, facets=facets_QJD, terms=terms, curve=curve, reader=opened)


def weighted_queries(facets: Floats, dim: int, *, weights: Vectors | None = None, any_suffices: bool = False) -> Floats:
    """Checks the facets of queries and gives each its weight as norm, ``[Q, J, D]``; see :class:`SearchRequest`."""
    if not isinstance(facets, np.ndarray) or not np.issubdtype(facets.dtype, np.floating):
        raise InvalidInputError("must be an array of floats", path="facets")
    if facets.ndim != 3 or facets.shape[2] != dim or not facets.size:
        raise InvalidInputError(
            f"has shape {list(facets.shape)}, expected [queries, facets, {dim}], none of them 0", path="facets"
        )
    units_QJD, norms_QJ = normalize(facets.astype(np.float64))
    if not np.isfinite(norms_QJ).all():
        query = int(np.argwhere(~np.isfinite(norms_QJ))[0][0])
        raise InvalidInputError("has NaN or infinite values: expected finite ones", path=("facets", query))
    weights_QJ = np.ones(facets.shape[:2]) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights_QJ.shape != facets.shape[:2]:
        raise InvalidInputError(
            f"has shape {list(weights_QJ.shape)}, expected [queries, facets] = {list(facets.shape[:2])}", path="weights"
        )
    totals_Q = weights_QJ.sum(axis=1)
    if not (np.isfinite(weights_QJ).all() and (weights_QJ >= 0).all() and (totals_Q > 0).all()):
        raise InvalidInputError("must be finite, >= 0, and above 0 for one facet of every query", path="weights")
    scales_Q = weights_QJ.max(axis=1) if any_suffices else totals_Q
    return (units_QJD * (weights_QJ / scales_Q[:, None])[:, :, None]).astype(np.float32)


def explained(
    hits: Sequence[Sequence[SearchHit]], encoded: Sequence[EncodedQuery], words: WordVectors | None, num_words: int
) -> tuple[tuple[SearchHit, ...], ...]:
    """Adds the nearest ``words`` to the matches of each hit; 0 words: no evidence."""
    if not num_words:
        return tuple(tuple(replace(hit, evidence=()) for hit in query_hits) for query_hits in hits)
    matches = [(query, match) for query, own in enumerate(hits) for hit in own for match in hit.evidence]
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
        tuple(replace(hit, evidence=tuple(next(explained_matches) for _ in hit.evidence)) for hit in own)
        for own in hits
    )
