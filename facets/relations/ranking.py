"""Scores of patterns against relations as arrays: the fast core of the relation task.

Shape suffixes: P patterns, R relations, K pattern facets, J relation facets, D dimensions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.relations.confidence import Confidence
from facets.relations.contract import PatternEncoder
from facets.relations.entity_types import EntityType
from facets.relations.scoring import asymmetric_scores, distinct_facets

__all__ = ["RelationFacets", "ScoreArrays", "combined_scores", "score_arrays"]


@dataclass(frozen=True, slots=True)
class RelationFacets:
    """Relations to score against, the model's own and added ones.

    Attributes:
        names: ``R`` distinct names.
        facets: ``[R, J, D]`` float32, unit length.
        thresholds: ``[R]``.
        rows: Row of each in the model's table, -1 for added ones, ``[R]``.
        distinct: The same facets without repetitions, and the share of each: ``[R, U, D]`` and ``[R, U]``.
    """

    names: tuple[str, ...]
    facets: NDArray[np.float32]
    thresholds: NDArray[np.float32]
    rows: NDArray[np.int64]
    distinct: tuple[Tensor, Tensor]

    @classmethod
    def of(
        cls,
        names: tuple[str, ...],
        facets: NDArray[np.float32],
        thresholds: NDArray[np.float32],
        rows: NDArray[np.int64],
    ) -> "RelationFacets":
        """The relations with their distinct facets, which are found once instead of at every call."""
        return cls(names, facets, thresholds, rows, distinct_facets(torch.from_numpy(facets)))

    def restricted(self, places: Sequence[int]) -> "RelationFacets":
        """Some of the relations, in the given order."""
        chosen = np.asarray(places, dtype=np.int64)
        return RelationFacets(
            tuple(self.names[place] for place in places),
            self.facets[chosen],
            self.thresholds[chosen],
            self.rows[chosen],
            (self.distinct[0][chosen], self.distinct[1][chosen]),
        )


@dataclass(frozen=True, slots=True)
class ScoreArrays:
    """Everything about patterns and relations, ``[P, R]`` each; float32.

    Attributes:
        facets: Facets of the patterns, ``[P, K, D]``.
        symmetric: Eq. 3.11, in ``[-1, 1]``.
        asymmetric: Eq. 3.10 with the pattern as premise, in ``[-1, 1]``: how well it covers the relation's facets.
        universal_schema: The look-up's cosine, in ``[-1, 1]``; NaN where pattern or relation was not seen.
        scores: The higher of look-up and facets, in ``[-1, 1]``; facets count by their symmetric or asymmetric score,
            whichever ranked development data better. Types of the arguments, where given, are added.
        probabilities: Confidence, in ``[0, 1]``.
        accepted: ``scores`` reach the relation's threshold and are close to the pattern's best.
    """

    facets: NDArray[np.float32]
    symmetric: NDArray[np.float32]
    asymmetric: NDArray[np.float32]
    universal_schema: NDArray[np.float32]
    scores: NDArray[np.float32]
    probabilities: NDArray[np.float32]
    accepted: NDArray[np.bool_]

    def symmetrised(self, partners: NDArray[np.int64], symmetric: NDArray[np.bool_]) -> "ScoreArrays":
        """Symmetric relations with the higher score of a pattern and its mirror image.

        Args:
            partners: Row of each pattern's mirror image, ``[P]``.
            symmetric: Which relations are, ``[R]``.
        """
        take_PR = symmetric & (self.scores[partners] > self.scores)
        names = ("symmetric", "asymmetric", "universal_schema", "scores", "probabilities", "accepted")
        changed = {name: np.where(take_PR, getattr(self, name)[partners], getattr(self, name)) for name in names}
        return replace(self, **changed)


@torch.inference_mode()
def score_arrays(
    model: PatternEncoder,
    patterns: Sequence[Sequence[str]],
    relations: RelationFacets,
    *,
    types: Sequence[tuple[EntityType, EntityType]] | None = None,
    encode: Callable[[Sequence[Sequence[str]]], NDArray[np.float32]] | None = None,
) -> ScoreArrays:
    """Scores tokenized patterns against relations.

    Args:
        model: Encodes the patterns and holds the look-up table.
        patterns: Tokens of each.
        relations: What to score against.
        types: Of the head and the tail of each pattern; they move ``scores`` and what follows from them. None: unknown.
        encode: Gives the facets of the patterns; None: the model.
    """
    facets_PKD = (encode or model.encode_patterns)(patterns)
    forward_PR, backward_PR = asymmetric_scores(torch.from_numpy(facets_PKD), *relations.distinct)
    symmetric_PR, asymmetric_PR = ((forward_PR + backward_PR) / 2).numpy(), forward_PR.numpy()
    schema_PR = _look_up(model, patterns, relations)
    confidence = model.relations.confidence
    scores_PR = combined_scores(asymmetric_PR if confidence.use_asymmetric else symmetric_PR, schema_PR, confidence)
    if types is not None:
        scores_PR = np.clip(scores_PR + confidence.type_weight * _type_scores(model, types, relations), -1.0, 1.0)
        scores_PR[_refused(model, types, relations)] = -1.0
    distances_PR = scores_PR - relations.thresholds
    gaps_PR = scores_PR - scores_PR.max(axis=1, keepdims=True, initial=-1.0)
    logits_PR = confidence.slope * distances_PR + confidence.gap_slope * gaps_PR + confidence.offset
    return ScoreArrays(
        facets=facets_PKD,
        symmetric=symmetric_PR,
        asymmetric=asymmetric_PR,
        universal_schema=schema_PR,
        scores=scores_PR,
        probabilities=torch.sigmoid(torch.from_numpy(logits_PR)).float().numpy(),
        accepted=(distances_PR >= 0) & (gaps_PR >= -confidence.margin),
    )


def combined_scores(
    facet_PR: NDArray[np.float32], schema_PR: NDArray[np.float32], confidence: Confidence
) -> NDArray[np.float32]:
    """The higher of facets and look-up, in ``[-1, 1]``; the look-up is moved to the facets' scale first."""
    moved_PR = confidence.schema_scale * schema_PR + confidence.schema_shift
    scores_PR: NDArray[np.float32] = np.clip(np.fmax(facet_PR, moved_PR) / confidence.peak, -1.0, 1.0)
    return scores_PR


def _type_scores(
    model: PatternEncoder, types: Sequence[tuple[EntityType, EntityType]], relations: RelationFacets
) -> NDArray[np.float32]:
    """What the types of both arguments say against relations, ``[P, R]``, at most 0; nothing against added ones."""
    heads_P, tails_P = _columns(types)
    penalties_2RT = model.relations.type_penalties[:, np.maximum(relations.rows, 0)]
    penalties_RP = penalties_2RT[0][:, heads_P] + penalties_2RT[1][:, tails_P]
    scores_PR: NDArray[np.float32] = penalties_RP.T * (relations.rows >= 0)
    return scores_PR


def _refused(
    model: PatternEncoder, types: Sequence[tuple[EntityType, EntityType]], relations: RelationFacets
) -> NDArray[np.bool_]:
    """Relations that do not take what the arguments are, ``[P, R]``; added ones take anything."""
    heads_P, tails_P = _columns(types)
    refused_2RT = model.relations.refused_types[:, np.maximum(relations.rows, 0)]
    refused_RP = refused_2RT[0][:, heads_P] | refused_2RT[1][:, tails_P]
    return refused_RP.T & (relations.rows >= 0)


def _columns(types: Sequence[tuple[EntityType, EntityType]]) -> NDArray[np.int64]:
    """Columns of the types of heads and of tails, ``[2, P]``."""
    columns = {type_: column for column, type_ in enumerate(EntityType)}
    return np.array([[columns[head], columns[tail]] for head, tail in types], dtype=np.int64).reshape(-1, 2).T


def _look_up(
    model: PatternEncoder, patterns: Sequence[Sequence[str]], relations: RelationFacets
) -> NDArray[np.float32]:
    """Cosines of the rows of the factorized matrix."""
    schema_PR = np.full((len(patterns), len(relations.names)), np.nan, dtype=np.float32)
    rows_P = model.table.find(patterns)
    seen, known = np.flatnonzero(rows_P >= 0), np.flatnonzero(relations.rows >= 0)
    if len(seen) and len(known):
        cosines = model.table.patterns[rows_P[seen]] @ model.table.relations[relations.rows[known]].T
        schema_PR[np.ix_(seen, known)] = np.clip(cosines, -1.0, 1.0)
    return schema_PR
