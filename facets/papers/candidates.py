"""Filters and examples: which candidates or papers pass the filters, and what examples add to their scores.

Shape letters: N papers, J candidates.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError, NotFoundError
from facets.language.vectors import unit_rows
from facets.papers.records import CandidateKind, Paper, PaperFacets, PaperOptions, check_distinct_ids
from facets.papers.tables import CandidateTable


def allowed_candidates(table: CandidateTable, options: PaperOptions) -> NDArray[np.int64]:
    """Live rows of the candidates that pass the filters, ascending."""
    if not _filters(options):
        return table.live_rows
    return np.flatnonzero(table.live & _mask(table.num_rows, options, table.rows, table.year_mask))


def allowed_papers(papers: Sequence[Paper] | PaperFacets, options: PaperOptions) -> NDArray[np.int64]:
    """Positions of the papers that pass the filters, ascending.

    Raises:
        InvalidInputError: An id is given twice, or encoded papers, which have neither ids nor years, are filtered.
    """
    if isinstance(papers, PaperFacets):
        if _filters(options) or options.positive_ids or options.negative_ids:
            raise InvalidInputError("encoded papers have no ids and years to filter by, expected none of the filters")
        return np.arange(len(papers))
    check_distinct_ids(papers)
    years = np.array([np.nan if paper.year is None else paper.year for paper in papers])  # NaN lies in no range

    def year_mask(from_year: int | None, to_year: int | None) -> NDArray[np.bool_]:
        first, last = -np.inf if from_year is None else from_year, np.inf if to_year is None else to_year
        return (years >= first) & (years <= last)

    return np.flatnonzero(_mask(len(papers), options, lambda ids: _positions(papers, ids), year_mask))


def candidate_bonus(table: CandidateTable, options: PaperOptions) -> NDArray[np.float32] | None:
    """What the examples add to the score of each candidate, ``[J]``; None: nothing.

    Raises:
        InvalidInputError: An example is unknown.
    """
    if not options.positive_ids and not options.negative_ids:
        return None
    return _bonus(unit_rows(table.vectors), options, table.rows)


def paper_bonus(
    papers: Sequence[Paper] | PaperFacets, documents_NW: NDArray[np.float32], options: PaperOptions
) -> NDArray[np.float32] | None:
    """What the examples (here papers) add to the score of each paper, ``[N]``; None: nothing.

    Raises:
        InvalidInputError: An example is not among the papers.
    """
    if isinstance(papers, PaperFacets) or not (options.positive_ids or options.negative_ids):
        return None
    return _bonus(documents_NW, options, lambda ids: _positions(papers, ids))


def row_of(kind: CandidateKind, table: CandidateTable, key: str) -> int:
    """Row of an id, or of a name that only one candidate has.

    Raises:
        NotFoundError: It is unknown, or several candidates have the name; the message lists similar names or the ids.
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
        near = ", ".join(repr(candidate_id) for candidate_id, _ in table.find(key, 5)) or "no similar name"
        message = f"no {thing} {key!r}; nearest: {near}"
    raise NotFoundError(message, resource_type=resource, resource_name=key)


RowsOf = Callable[[Sequence[str]], NDArray[np.int64]]


def _filters(options: PaperOptions) -> bool:
    has_years = options.from_year is not None or options.to_year is not None
    return options.candidates is not None or bool(options.excluded_ids) or has_years


def _mask(
    length: int,
    options: PaperOptions,
    rows_of: RowsOf,
    year_mask: Callable[[int | None, int | None], NDArray[np.bool_]],
) -> NDArray[np.bool_]:
    mask = np.full(length, options.candidates is None)
    mask[rows_of(options.candidates or ())] = True
    mask[rows_of(options.excluded_ids)] = False
    if options.from_year is not None or options.to_year is not None:
        mask &= year_mask(options.from_year, options.to_year)
    return mask


def _positions(papers: Sequence[Paper], ids: Sequence[str]) -> NDArray[np.int64]:
    positions = {paper.id: position for position, paper in enumerate(papers) if paper.id}
    return np.array([positions[key] for key in ids if key in positions], dtype=np.int64)


def _bonus(units: NDArray[np.float32], options: PaperOptions, rows_of: RowsOf) -> NDArray[np.float32]:
    """For each row, the weight times (best cosine with a positive example - best cosine with a negative one)."""
    bonus = np.zeros(len(units), dtype=np.float32)
    for field, sign in (("positive_ids", 1.0), ("negative_ids", -1.0)):
        ids = getattr(options, field)
        for place, key in enumerate(ids):
            if not len(rows_of([key])):
                raise InvalidInputError(f"is no known id: {key!r}", path=(field, place))
        if ids:
            bonus += np.float32(sign * options.example_weight) * (units @ units[rows_of(ids)].T).max(axis=1)
    return bonus
