"""Search requests, checked and prepared for one collection.

Shape letters: Q queries, J facets of a query, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from facets.documents.answers import AnswerReader
from facets.documents.confidence import RelevanceCurve
from facets.documents.encoding import check_text, normalize
from facets.documents.filters import Filter
from facets.documents.types import Combination, SearchMode
from facets.errors import InvalidInputError
from facets.index.config import MAX_TEXT_BYTES, MAX_TOP_K
from facets.language.terms import QueryTerms, query_terms

_MIN_DIVERSE_CANDIDATES = 50  # minimum number of documents among which diverse ones are chosen
_MIN_HYBRID_CANDIDATES = 50  # minimum number of candidates found by facets, and by words, if words are used


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchRequest:
    """A search for one or more queries; raises InvalidInputError if a value is out of range."""

    top_k: int = 10  # hits for each query, 1 to `MAX_TOP_K`
    # Facets of the queries, `[Q, J, D]`, finite; norms are ignored. J need not be the collection's K.
    facets: NDArray[np.float32] | None = None
    # Weights of the facets, `[Q, J]`, >= 0; scaled to add up to 1 for each query. None: all equal.
    weights: NDArray[np.floating] | None = None
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
    reasons: bool = True  # whether to compute evidence, answer and matched words, which is most of the work

    def __post_init__(self) -> None:
        """Checks the ranges."""
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
class PreparedSearch:
    """A request whose queries were checked against a collection."""

    request: SearchRequest
    mode: SearchMode
    # Facets of the queries with their weights as norms, `[Q, J, D]`, see `facets.index.candidates.meet`; J = 0 in mode
    # lexical.
    facets: NDArray[np.float32]
    terms: tuple[QueryTerms, ...]  # of each query; empty in mode facets
    curve: RelevanceCurve | None  # gives hits their confidence
    reader: AnswerReader | None = None  # chooses the answers of the first hits; None: words and facets do

    @property
    def any_suffices(self) -> bool:
        """Whether the best facet of the query decides instead of the sum."""
        return self.request.combine == "any"

    @property
    def num_ranked(self) -> int:
        """Documents to rank by score for each query: ``top_k``, or more to choose diverse ones from."""
        top_k = self.request.top_k
        return max(_MIN_DIVERSE_CANDIDATES, 2 * top_k) if self.request.diversify else top_k

    @property
    def num_candidates(self) -> int:
        """Number of candidate documents to find by facets, and by words."""
        return self.num_ranked if self.mode == "facets" else max(self.num_ranked, _MIN_HYBRID_CANDIDATES)


def prepare_search(
    request: SearchRequest,
    *,
    dim: int,
    curve: RelevanceCurve | None,
    language: str,
    reader: AnswerReader | None = None,
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
            check_text(text, path=("texts", position), max_bytes=MAX_TEXT_BYTES)
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
    reads = reader if request.use_reader and request.reasons and request.texts and language in ("", "en") else None
    return PreparedSearch(request=request, mode=mode, facets=facets_QJD, terms=terms, curve=curve, reader=reads)


def weighted_queries(
    facets: NDArray[np.float32], dim: int, *, weights: NDArray[np.floating] | None = None, any_suffices: bool = False
) -> NDArray[np.float32]:
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
