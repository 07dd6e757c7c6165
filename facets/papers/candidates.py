"""Which candidates of a paper are looked at: whom the options leave, what examples add, whom an index finds.

A large table is searched by FAISS: a candidate is stored as ``[a ; m]``, its vector beside the mean document of its
papers, and a paper asks with ``[w p_k ; (1 - w) d]`` for each facet k: the inner product is the hybrid score of that
facet with average document similarity, whatever the weight w, so one index serves all weights. What comes back is
scored again, exactly.
Shape letters: N papers, J candidates, K facets, D dimensions, W of documents, C candidates found.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError, NotFoundError
from facets.index.faiss_lists import InnerProductIndex
from facets.papers.records import CandidateKind, Paper, PaperFacets, PaperOptions
from facets.papers.scoring import example_scores
from facets.papers.tables import CandidateTable

__all__ = ["CandidateIndex", "allowed_mask", "allowed_papers", "example_bonus", "row_of", "without"]


class CandidateIndex:
    """Candidates in an index of inner products.

    Args:
        table: The candidates; rows of the index are rows of the table.

    Attributes:
        num_rows: Rows of that table; rows that were written behind them are not known here.
    """

    def __init__(self, table: CandidateTable) -> None:
        self.num_rows = table.num_rows
        self._index = InnerProductIndex(np.concatenate([table.vectors, table.means], axis=1))

    def search(
        self, facets_KD: NDArray[np.float32], document_W: NDArray[np.float32], facet_weight: float, count: int
    ) -> NDArray[np.int64]:
        """Rows of about ``count`` candidates a facet that are likely the best, ascending, ``[C]``."""
        documents_KW = np.broadcast_to((1.0 - facet_weight) * document_W, (len(facets_KD), len(document_W)))
        queries = np.concatenate([facet_weight * facets_KD, documents_KW], axis=1)
        return self._index.search(queries, count)


def allowed_mask(table: CandidateTable, options: PaperOptions) -> NDArray[np.bool_] | None:
    """``[J]``: what candidates, exclusions and years leave; None: everything."""
    years = options.from_year is not None or options.to_year is not None
    if options.candidates is None and not options.excluded_ids and not years:
        return None
    mask = np.ones(table.num_rows, dtype=np.bool_)
    if options.candidates is not None:
        mask[:] = False
        mask[table.rows(options.candidates)] = True
    mask[table.rows(options.excluded_ids)] = False
    if years:
        mask &= table.year_mask(options.from_year, options.to_year)
    return mask


def without(rows: NDArray[np.int64], mask: NDArray[np.bool_] | None, excluded: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows that a mask allows and that are not excluded."""
    if mask is not None:
        rows = rows[mask[rows]]
    return rows[~np.isin(rows, excluded)] if len(excluded) else rows


def example_bonus(table: CandidateTable, options: PaperOptions) -> NDArray[np.float32] | None:
    """What wanted and unwanted examples add to each candidate, ``[J]``; None: nothing.

    Raises:
        InvalidInputError: An example is unknown.
    """
    if not options.positive_ids and not options.negative_ids:
        return None
    for name in ("positive_ids", "negative_ids"):
        for place, key in enumerate(getattr(options, name)):
            if not len(table.rows([key])):
                raise InvalidInputError(f"is no known id: {key!r}", path=(name, place))
    return example_scores(
        table, table.rows(options.positive_ids), table.rows(options.negative_ids), options.example_weight
    )


def row_of(kind: CandidateKind, table: CandidateTable, key: str) -> int:
    """Row of a known id or of a name that one candidate has.

    Raises:
        NotFoundError: It is unknown, or the name of several; the message names the nearest known ones.
    """
    rows = table.rows([key])
    if len(rows) == 1:
        return int(rows[0])
    resource = "author" if kind is CandidateKind.AUTHORS else "citing_paper"
    thing = resource.replace("_", " ")
    if len(rows):
        ids = ", ".join(repr(table.ids[row]) for row in rows[:5])
        message = f"{thing} {key!r} is the name of several, expected one of the ids {ids}"
    else:
        near = ", ".join(repr(found) for found, _ in table.find(key, 5)) or "nobody with such a name"
        message = f"no {thing} {key!r}; nearest: {near}"
    raise NotFoundError(message, resource_type=resource, resource_name=key)


def allowed_papers(
    papers: Sequence[Paper] | PaperFacets, encoded: PaperFacets, options: PaperOptions
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Places of the papers left by the options, and what examples add to each paper."""
    bonus = np.zeros(len(encoded), dtype=np.float32)
    filtered = options.candidates is not None or options.excluded_ids or options.positive_ids or options.negative_ids
    if isinstance(papers, PaperFacets):
        if filtered or options.from_year is not None or options.to_year is not None:
            raise InvalidInputError("encoded papers have no ids and years to filter by, expected none of the filters")
        return np.arange(len(encoded)), bonus
    places = {paper.id: place for place, paper in enumerate(papers) if paper.id}
    if len(places) != sum(bool(paper.id) for paper in papers):
        raise InvalidInputError("must have distinct ids, got one twice", path="papers")
    for name, sign in (("positive_ids", 1.0), ("negative_ids", -1.0)):
        ids = getattr(options, name)
        unknown = [key for key in ids if key not in places]
        if unknown:
            raise InvalidInputError(f"must be ids of the papers, got {unknown[0]!r}", path=name)
        if ids:
            examples = encoded.documents[[places[key] for key in ids]]
            bonus += np.float32(sign * options.example_weight) * (encoded.documents @ examples.T).max(axis=1)
    excluded = set(options.excluded_ids)
    wanted = None if options.candidates is None else set(options.candidates)
    from_year, to_year = options.from_year, options.to_year
    allowed = [
        place
        for place, paper in enumerate(papers)
        if not (paper.id and paper.id in excluded)
        and (wanted is None or paper.id in wanted)
        and (from_year is None or (paper.year is not None and paper.year >= from_year))
        and (to_year is None or (paper.year is not None and paper.year <= to_year))
    ]
    return np.array(allowed, dtype=np.int64), bonus
