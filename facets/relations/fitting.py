"""Facets of a relation that is given by example patterns.

Shape suffixes: E examples, K pattern facets, J relation facets, D dimensions.
"""

import numpy as np
from numpy.typing import NDArray

from facets.language.vectors import unit_rows

__all__ = ["fitted_facets"]

_ITERATIONS = 10


def fitted_facets(facets_EKD: NDArray[np.float32], num_facets: int) -> NDArray[np.float32]:
    """Cluster centres of the examples' facets: spherical k-means from the facets that are farthest apart.

    Args:
        facets_EKD: Facets of the examples, ``[E, K, D]``, any lengths.
        num_facets: J; with fewer facets than that, they are repeated in turn.

    Returns:
        ``[J, D]`` float32, unit length; the same for the same examples.
    """
    units_ND = unit_rows(facets_EKD.reshape(-1, facets_EKD.shape[-1]))
    if len(units_ND) <= num_facets:
        return units_ND[np.arange(num_facets) % len(units_ND)]
    chosen = [0]
    while len(chosen) < num_facets:
        chosen.append(int((units_ND @ units_ND[chosen].T).max(axis=1).argmin()))
    centres_JD = units_ND[chosen]
    for _ in range(_ITERATIONS):
        nearest_N = (units_ND @ centres_JD.T).argmax(axis=1)
        sums_JD = np.zeros_like(centres_JD)
        np.add.at(sums_JD, nearest_N, units_ND)
        # A centre without facets stays where it is.
        empty_J1 = (np.bincount(nearest_N, minlength=num_facets) == 0)[:, None]
        centres_JD = unit_rows(np.where(empty_J1, centres_JD, sums_JD))
    return centres_JD
