"""Which candidates of a paper are looked at: whom the options leave, and what examples add.

Shape letters: N papers, J candidates.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError, NotFoundError
from facets.papers.records import CandidateKind, Paper, PaperFacets, PaperOptions
from facets.papers.scoring import example_scores
from facets.papers.tables import CandidateTable


def allowed_mask(table: CandidateTable, options: PaperOptions) -> NDArray[np.bool_] | None:
    """``[J]``: what candidates, exclusions and years leave; None: everything."""
    if not _filters(options):
        return None
    return _mask(table.num_rows, options, table.rows, table.year_mask)


def _filters(options: PaperOptions) -> bool:
    """Whether options leave anything out."""
    years = options.from_year is not None or options.to_year is not None
    return options.candidates is not None or bool(options.excluded_ids) or years


def _mask(
    length: int,
    options: PaperOptions,
    rows_of: Callable[[Sequence[str]], NDArray[np.int64]],
    year_mask: Callable[[int | None, int | None], NDArray[np.bool_]],
) -> NDArray[np.bool_]:
    """``[length]``: what candidates, exclusions and years leave; ``rows_of`` passes over unknown ids."""
    mask = np.full(length, options.candidates is None)
    mask[rows_of(options.candidates or ())] = True
    mask[rows_of(options.excluded_ids)] = False
    if options.from_year is not None or options.to_year is not None:
        mask &= year_mask(options.from_year, options.to_year)
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
    """Places of the papers left by the options, and what examples add to each paper.

    Raises:
        InvalidInputError: An id is given twice, an example is unknown, or encoded papers, which have neither ids nor
            years, are to be filtered.
    """
    if isinstance(papers, PaperFacets):
        if _filters(options) or options.positive_ids or options.negative_ids:
            raise InvalidInputError("encoded papers have no ids and years to filter by, expected none of the filters")
        return np.arange(len(encoded)), np.zeros(len(encoded), dtype=np.float32)
    places = {paper.id: place for place, paper in enumerate(papers) if paper.id}
    if len(places) != sum(bool(paper.id) for paper in papers):
        raise InvalidInputError("must have distinct ids, got one twice", path="papers")
    years = np.array([np.nan if paper.year is None else paper.year for paper in papers])  # NaN lies in no range

    def rows_of(ids: Sequence[str]) -> NDArray[np.int64]:
        return np.array([places[key] for key in ids if key in places], dtype=np.int64)

    def year_mask(from_year: int | None, to_year: int | None) -> NDArray[np.bool_]:
        least, most = -np.inf if from_year is None else from_year, np.inf if to_year is None else to_year
        return (years >= least) & (years <= most)

    allowed = np.flatnonzero(_mask(len(papers), options, rows_of, year_mask))
    return allowed, _document_bonus(encoded.documents, places, options)


def _document_bonus(
    documents_NW: NDArray[np.float32], places: Mapping[str, int], options: PaperOptions
) -> NDArray[np.float32]:
    """What wanted and unwanted examples add to each paper, ``[N]``."""
    bonus = np.zeros(len(documents_NW), dtype=np.float32)
    for name, sign in (("positive_ids", 1.0), ("negative_ids", -1.0)):
        ids = getattr(options, name)
        unknown = [key for key in ids if key not in places]
        if unknown:
            raise InvalidInputError(f"must be ids of the papers, got {unknown[0]!r}", path=name)
        if ids:
            examples = documents_NW[[places[key] for key in ids]]
            bonus += np.float32(sign * options.example_weight) * (documents_NW @ examples.T).max(axis=1)
    return bonus
