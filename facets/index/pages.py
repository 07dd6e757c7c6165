"""Documents with more facets than others: an index has places for K facets each, and a long document takes several.

Short documents thus pay nothing for long ones. Shape letters: N documents, T facets of all documents, S places,
K facets of a place, D dimensions.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["first_places", "paged"]


def paged(
    rows_N: NDArray[np.int64], facets_TD: NDArray[np.floating], starts_N1: NDArray[np.int64], *, num_facets: int
) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Cuts the facets of each document into places of K.

    Args:
        rows_N: Row numbers.
        facets_TD: Facets of all documents, one document after another.
        starts_N1: Where the facets of each document begin, and T; each has at least one.
        num_facets: K.

    Returns:
        The row number of every place, ``[S]``, places of a document side by side; and their facets ``[S, K, D]``, zero
        where the last place of a document is not full.

    Example:
        >>> facets = np.array([[1.0], [2.0], [3.0], [4.0]])
        >>> rows, places = paged(np.array([7, 9]), facets, np.array([0, 3, 4]), num_facets=2)
        >>> rows.tolist(), places[:, :, 0].tolist()
        ([7, 7, 9], [[1.0, 2.0], [3.0, 0.0], [4.0, 0.0]])
    """
    counts_N = np.diff(starts_N1)
    if (counts_N == num_facets).all():
        return rows_N, facets_TD.reshape(len(rows_N), num_facets, facets_TD.shape[1])
    places_N = -(-counts_N // num_facets)
    firsts_N = np.cumsum(places_N) - places_N
    within_T = np.arange(len(facets_TD)) - np.repeat(starts_N1[:-1], counts_N)
    facets_SKD = np.zeros((int(places_N.sum()), num_facets, facets_TD.shape[1]), dtype=facets_TD.dtype)
    facets_SKD[np.repeat(firsts_N, counts_N) + within_T // num_facets, within_T % num_facets] = facets_TD
    return np.repeat(rows_N, places_N), facets_SKD


def first_places(rows_S: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first place of the document of every place, ``[S]``; negative rows are places without a document.

    Example:
        >>> first_places(np.array([7, 7, -1, -1, 9])).tolist()
        [0, 0, 2, 3, 4]
    """
    begins_S = np.ones(len(rows_S), dtype=np.bool_)
    begins_S[1:] = (rows_S[1:] != rows_S[:-1]) | (rows_S[1:] < 0)
    firsts: NDArray[np.int64] = np.maximum.accumulate(np.where(begins_S, np.arange(len(rows_S)), 0))
    return firsts
