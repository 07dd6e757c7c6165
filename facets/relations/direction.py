"""Which way round a relation holds: a symmetric one scores as its better order; of both the more probable is asserted.

That a name means a relation with head and tail exchanged (``capitalOf``) is known to ``additions``, from the details.

Shape suffixes: P patterns, M mentions (ordered pairs), R relations, C candidates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from facets.relations.assertion import AssertionStatus
from facets.relations.extraction import PairMention, TypedPattern
from facets.relations.scoring import ScoreArrays


def symmetrised(
    arrays: ScoreArrays, mirror_images: Mapping[TypedPattern, TypedPattern], symmetric_R: NDArray[np.bool_]
) -> ScoreArrays:
    """Scores in which symmetric relations have the higher one of a pattern and its mirror image.

    Args:
        arrays: Scores of patterns.
        mirror_images: The patterns, in the order of the rows, each with its mirror image.
        symmetric_R: Which relations are symmetric.
    """
    if not symmetric_R.any():
        return arrays
    partners_P = partners_of(list(mirror_images), list(mirror_images.values()))
    take_PR = symmetric_R & (arrays.scores[partners_P] > arrays.scores)
    names = ("symmetric", "asymmetric", "universal_schema", "scores", "probabilities", "accepted")
    columns = {name: getattr(arrays, name) for name in names}
    return replace(arrays, **{name: np.where(take_PR, own[partners_P], own) for name, own in columns.items()})


def asserted_relations(
    mentions: Sequence[PairMention],
    accepted_MR: NDArray[np.bool_],
    probabilities_MR: NDArray[np.float32],
    *,
    symmetric_R: NDArray[np.bool_],
    most: int | None,
) -> NDArray[np.bool_]:
    """Which relations of mentions are asserted, ``[M, R]``; a symmetric one in the order of the text alone.

    Args:
        mentions: Ordered pairs; where both orders are there, they stand for the same two entities.
        accepted_MR: Relations that reach their thresholds.
        probabilities_MR: How sure each is.
        symmetric_R: Which relations are symmetric.
        most: See ``best_of_pairs``.
    """
    possible_MR = accepted_MR.copy()
    possible_MR[[m.assertion.status is not AssertionStatus.ASSERTED for m in mentions]] = False
    backwards_M = np.array([mention.tail < mention.head for mention in mentions], dtype=np.bool_)
    possible_MR[np.ix_(backwards_M, symmetric_R)] = False
    partners_M = partners_of([m.place for m in mentions], [m.mirrored_place for m in mentions])
    return best_of_pairs(possible_MR, probabilities_MR, partners_M, most=most)


def partners_of(keys: Sequence[tuple[object, ...]], mirrored_keys: Sequence[tuple[object, ...]]) -> NDArray[np.int64]:
    """Place of each item's mirror image, ``[M]``; its own place where there is none."""
    places = {key: place for place, key in enumerate(keys)}
    return np.fromiter(
        (places.get(key, place) for place, key in enumerate(mirrored_keys)), dtype=np.int64, count=len(keys)
    )


def best_of_pairs(
    accepted_MR: NDArray[np.bool_],
    probabilities_MR: NDArray[np.float32],
    partners_M: NDArray[np.int64],
    *,
    most: int | None,
) -> NDArray[np.bool_]:
    """Which of the accepted relations are asserted.

    Args:
        accepted_MR: Relations that could hold; False where a mention asserts nothing.
        probabilities_MR: How sure each is.
        partners_M: Place of the mention of the same two entities the other way round, see ``partners_of``.
        most: Relations of two entities at most, both directions together; None: all.

    Returns:
        ``[M, R]``, the most probable ones of each two entities; ties go to the earlier mention and relation.

    Example:
        >>> accepted, probable = np.array([[True, True], [True, False]]), np.array([[0.7, 0.9], [0.8, 0.1]])
        >>> best_of_pairs(accepted, probable, np.array([1, 0]), most=1).tolist()
        [[False, True], [False, False]]
    """
    if most is None:
        return accepted_MR
    mentions_C, relations_C = np.nonzero(accepted_MR)
    pairs_C = np.minimum(mentions_C, partners_M[mentions_C])
    order_C = np.lexsort((relations_C, mentions_C, -probabilities_MR[mentions_C, relations_C], pairs_C))
    sorted_C = pairs_C[order_C]
    # Place among the candidates of the same pair: how many stand since its first.
    places_C = np.arange(len(sorted_C)) - np.searchsorted(sorted_C, sorted_C)
    kept_C = order_C[places_C < most]
    best_MR = np.zeros_like(accepted_MR)
    best_MR[mentions_C[kept_C], relations_C[kept_C]] = True
    return best_MR
