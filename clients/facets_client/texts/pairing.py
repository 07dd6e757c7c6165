"""Which facet stands opposite which when two texts are shown side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from facets_client.core.results import FacetMatch

__all__ = ["FacetRow", "paired_rows"]


@dataclass(frozen=True, slots=True)
class FacetRow:
    """Two facets that stand side by side; numbers count from 0."""

    first_facet: int | None  # of the first text; None when the second has more facets
    second_facet: int | None
    match: FacetMatch | None  # how they met; None when they did not


def paired_rows(matches: Sequence[FacetMatch], num_first: int, num_second: int) -> tuple[FacetRow, ...]:
    """Rows in the order of the first text's facets, each with the facet it met most.

    Greedy: the largest contribution first, every facet once; facets that are left over fill the free places in
    order.

    Args:
        matches: Meetings of the facets.
        num_first: Facets of the first text.
        num_second: Facets of the second text.

    Returns:
        ``max(num_first, num_second)`` rows.
    """
    partners: dict[int, FacetMatch] = {}
    taken: set[int] = set()
    for match in sorted(matches, key=lambda item: (-item.contribution, item.first_facet, item.second_facet)):
        if match.first_facet not in partners and match.second_facet not in taken:
            partners[match.first_facet] = match
            taken.add(match.second_facet)
    left_over = iter([facet for facet in range(num_second) if facet not in taken])
    rows = []
    for row in range(max(num_first, num_second)):
        met = partners.get(row)
        second = met.second_facet if met else next(left_over, None)
        rows.append(FacetRow(row if row < num_first else None, second, met))
    return tuple(rows)
