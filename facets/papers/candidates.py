"""Which candidates or papers pass the filters of a call."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.errors import NotFoundError
from facets.papers.records import CandidateKind, Paper, PaperFacets, PaperOptions, check_distinct, paper_ids
from facets.papers.tables import CandidateTable


def allowed_candidates(table: CandidateTable, options: PaperOptions) -> NDArray[np.int64]:
    """Rows of the candidates that pass the filters, ascending."""
    mask = np.full(len(table), options.candidates is None)
    mask[table.rows(options.candidates or ())] = True
    mask[table.rows(options.excluded_ids)] = False
    if options.from_year is not None or options.to_year is not None:
        mask &= table.year_mask(options.from_year, options.to_year)
    return np.flatnonzero(mask)


def allowed_papers(papers: Sequence[Paper] | PaperFacets, options: PaperOptions) -> NDArray[np.int64]:
    """Positions of the papers that pass the filters, ascending; all of encoded ones, which have neither ids nor years.

    Raises:
        InvalidInputError: An id is given twice.
    """
    if isinstance(papers, PaperFacets):
        return np.arange(len(papers))
    check_distinct(paper_ids(papers))
    mask = np.array([not paper.id or paper.id not in options.excluded_ids for paper in papers], dtype=np.bool_)
    years = np.array([np.nan if paper.year is None else paper.year for paper in papers])  # NaN lies in no range
    if options.from_year is not None:
        mask &= years >= options.from_year
    if options.to_year is not None:
        mask &= years <= options.to_year
    return np.flatnonzero(mask)


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
