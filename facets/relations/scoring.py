"""Scores of patterns against relations: eq. 3.10 and 3.11 on facets, the look-up, and which are accepted.

Shape suffixes: P pairs or patterns, B patterns, R relations, K pattern facets, J relation facets, M facets of other
patterns or of all relations, D dimensions, N training patterns.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from facets.arrays import Bools, Floats, Ints
from facets.language.interruption import check_interrupted
from facets.language.vectors import unit_rows
from facets.relations.assertion import Assertion, AssertionStatus
from facets.relations.entities import EntityType
from facets.relations.model import RelationModel
from facets.relations.results import (
    FacetMeeting,
    FacetRelations,
    NearRelation,
    PatternScore,
    RelationScore,
    SimilarPattern,
)
from facets.relations.tables import Confidence, RelationTable
from facets.scoring import unit_facets

COSINES_AT_A_TIME = 16_000_000  # 64 MB


def asymmetric_score(premise_PKD: Tensor, hypothesis_PJD: Tensor) -> Tensor:
    """How well the facets of the premise cover those of the hypothesis, ``[P]`` in ``[-1, 1]`` (eq. 3.10).

    ``Asym(premise, hypothesis) = sum_m max_k cos(premise_k, hypothesis_m) / J``. A premise often has facets far from
    all facets of the hypothesis, so ``asymmetric_score(a, b) > asymmetric_score(b, a)`` suggests that a is the premise.

    Example:
        >>> specific = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
        >>> general = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
        >>> asymmetric_score(specific, general).item(), asymmetric_score(general, specific).item()
        (1.0, 0.5)
    """
    return _cosines(premise_PKD, hypothesis_PJD).amax(dim=1).mean(dim=1)


def generality_score(patterns_BKD: Tensor, background_MD: Tensor) -> Tensor:
    """How general each pattern is: its mean ``asymmetric_score`` with many others, ``[B]`` in ``[-1, 1]``.

    ``background_MD``: unit facets of the others.
    """
    # [B, K, D] @ [D, M] -> [B, K, M]
    return (unit_facets(patterns_BKD) @ background_MD.mT).amax(dim=1).mean(dim=1)


def symmetric_score(first_PKD: Tensor, second_PJD: Tensor) -> Tensor:
    """Mean of ``asymmetric_score`` in both directions, ``[P]`` in ``[-1, 1]`` (eq. 3.11)."""
    cosines_PKJ = _cosines(first_PKD, second_PJD)
    return (cosines_PKJ.amax(dim=1).mean(dim=1) + cosines_PKJ.amax(dim=2).mean(dim=1)) / 2


def asymmetric_scores(patterns_BKD: Tensor, relations_RJD: Tensor) -> tuple[Tensor, Tensor]:
    """``asymmetric_score`` of every pattern with every relation, ``[B, R]``; also with the relation as premise."""
    num_patterns, num_facets, dim = patterns_BKD.shape
    num_relations, num_relation_facets, _ = relations_RJD.shape
    # With the facets before the relations, both maxima run over long contiguous rows.
    relations_MD = unit_facets(relations_RJD).transpose(0, 1).reshape(-1, dim)
    units_BKD = unit_facets(patterns_BKD)
    forward_BR = torch.empty(num_patterns, num_relations, dtype=torch.float32, device=patterns_BKD.device)
    backward_BR = torch.empty_like(forward_BR)
    step = max(1, COSINES_AT_A_TIME // max(1, num_facets * len(relations_MD)))
    for start in range(0, num_patterns, step):
        check_interrupted()
        # [b, K, D] @ [D, J * R] -> [b, K, J, R]
        cosines_bKM = units_BKD[start : start + step] @ relations_MD.mT
        block_bKJR = cosines_bKM.view(-1, num_facets, num_relation_facets, num_relations)
        forward_BR[start : start + step] = block_bKJR.amax(dim=1).mean(dim=1).clamp(-1.0, 1.0)
        backward_BR[start : start + step] = block_bKJR.amax(dim=2).mean(dim=1).clamp(-1.0, 1.0)
    return forward_BR, backward_BR


def _cosines(first_PKD: Tensor, second_PJD: Tensor) -> Tensor:
    return (unit_facets(first_PKD) @ unit_facets(second_PJD).mT).clamp(-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class RelationFacets:
    """Relations to score against, both built-in and added."""

    names: tuple[str, ...]  # `R` distinct names
    facets: Floats  # `[R, J, D]` float32, unit length
    thresholds: Floats  # `[R]`
    rows: Ints  # row of each relation in the model's table, -1 for added ones, `[R]`

    def restricted(self, columns: Sequence[int]) -> "RelationFacets":
        """Some of the relations, in the given order."""
        chosen = np.asarray(columns, dtype=np.int64)
        return RelationFacets(
            tuple(self.names[column] for column in columns),
            self.facets[chosen],
            self.thresholds[chosen],
            self.rows[chosen],
        )


@dataclass(frozen=True, slots=True)
class ScoreArrays:
    """Scores of patterns against relations, ``[P, R]`` float32 unless noted."""

    facets: Floats  # facets of the patterns, `[P, K, D]`
    symmetric: Floats  # eq. 3.11, in `[-1, 1]`
    asymmetric: Floats  # eq. 3.10 with the pattern as premise, in `[-1, 1]`
    universal_schema: Floats  # cosine of the look-up, in `[-1, 1]`; NaN: pattern or relation not seen
    # The higher of the look-up score and the symmetric or asymmetric facet score (`Confidence.use_asymmetric`), plus
    # the type penalties of the arguments, in `[-1, 1]`.
    scores: Floats
    probabilities: Floats  # in `[0, 1]`
    accepted: Bools  # the score reaches the relation's threshold and is close to the pattern's best


@torch.inference_mode()
def score_arrays(
    model: RelationModel,
    patterns: Sequence[Sequence[str]],
    relations: RelationFacets,
    types: Sequence[tuple[EntityType, EntityType]] | None = None,
    encode: Callable[[Sequence[Sequence[str]]], Floats] | None = None,
) -> ScoreArrays:
    """Scores tokenized patterns against relations.

    ``types``: of each pattern's head and tail; None: unknown. ``encode``: of the model, for a caller that keeps facets.
    """
    facets_PKD = (encode or model.encode_patterns)(patterns)
    forward_PR, backward_PR = asymmetric_scores(torch.from_numpy(facets_PKD), torch.from_numpy(relations.facets))
    symmetric_PR, asymmetric_PR = ((forward_PR + backward_PR) / 2).numpy(), forward_PR.numpy()
    schema_PR = _look_up(model, patterns, relations)
    confidence = model.relations.confidence
    scores_PR = combined_scores(asymmetric_PR if confidence.use_asymmetric else symmetric_PR, schema_PR, confidence)
    if types is not None:
        penalties_PR, refused_PR = _type_scores(model.relations, types, relations)
        scores_PR = np.clip(scores_PR + confidence.type_weight * penalties_PR, -1.0, 1.0)
        scores_PR[refused_PR] = -1.0
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


def combined_scores(facet_PR: Floats, schema_PR: Floats, confidence: Confidence) -> Floats:
    """The higher of facet and look-up score, in ``[-1, 1]``; look-up scores are first mapped to the facets' scale."""
    moved_PR = confidence.schema_scale * schema_PR + confidence.schema_shift
    highest = max(1.0, confidence.schema_scale + confidence.schema_shift)
    scores_PR: Floats = np.clip(np.fmax(facet_PR, moved_PR) / highest, -1.0, 1.0)
    return scores_PR


def _type_scores(
    table: RelationTable, types: Sequence[tuple[EntityType, EntityType]], relations: RelationFacets
) -> tuple[Floats, Bools]:
    """Penalties ``[P, R]``, at most 0, for the types of both arguments, and which relations refuse these types.

    Added relations accept any types.
    """
    columns = {entity_type: column for column, entity_type in enumerate(EntityType)}
    heads_P, tails_P = ([columns[pair[side]] for pair in types] for side in range(2))
    rows, is_own_R = np.maximum(relations.rows, 0), relations.rows >= 0
    penalties_2RT, refused_2RT = table.type_penalties[:, rows], table.refused_types[:, rows]
    penalties_RP = penalties_2RT[0][:, heads_P] + penalties_2RT[1][:, tails_P]
    refused_RP = refused_2RT[0][:, heads_P] | refused_2RT[1][:, tails_P]
    return penalties_RP.T * is_own_R, refused_RP.T & is_own_R


def _look_up(model: RelationModel, patterns: Sequence[Sequence[str]], relations: RelationFacets) -> Floats:
    """Cosines of patterns and relations in the look-up space, ``[P, R]``; NaN for unseen ones."""
    schema_PR = np.full((len(patterns), len(relations.names)), np.nan, dtype=np.float32)
    rows_P = model.table.find(patterns)
    seen, known = np.flatnonzero(rows_P >= 0), np.flatnonzero(relations.rows >= 0)
    if len(seen) and len(known):
        cosines = model.table.patterns[rows_P[seen]] @ model.table.relations[relations.rows[known]].T
        schema_PR[np.ix_(seen, known)] = np.clip(cosines, -1.0, 1.0)
    return schema_PR


_NEAR_RELATIONS = 3  # shown for each facet
_COMPARED_PATTERNS = 50  # patterns of a relation to compare: those that share most entity pairs with it
_SIMILAR_PATTERNS = 3  # shown for each relation


class TrainingPatterns:
    """Training patterns of each relation, encoded on first use; thread-safe."""

    def __init__(self, model: RelationModel) -> None:
        self.details = model.relations.details
        self._model = model
        self._texts = tuple(model.table.rows)
        self._lock = threading.Lock()
        self._facets: dict[int, Tensor] = {}

    def nearest(self, relation: int, facets_KD: Floats) -> tuple[SimilarPattern, ...]:
        """Nearest training patterns to a pattern's facets, for the relation at a row of the model's table."""
        rows = self._model.relations.patterns[relation][:_COMPARED_PATTERNS]
        if not rows:
            return ()
        with self._lock:
            if relation not in self._facets:
                patterns = [self._texts[row].split(" ") for row in rows]
                self._facets[relation] = torch.from_numpy(self._model.encode_patterns(patterns))
            training_NKD = self._facets[relation]
        scores_N = symmetric_score(torch.from_numpy(facets_KD).expand_as(training_NKD), training_NKD).numpy()
        best = np.argsort(-scores_N, kind="stable")[:_SIMILAR_PATTERNS]
        return tuple(SimilarPattern(self._texts[rows[n]], float(scores_N[n])) for n in best)


class PatternDecisions:
    """Builds the results of scored patterns, one at a time.

    ``patterns``: those of the training add evidence, which takes longer than scoring; None: no evidence.
    """

    def __init__(self, relations: RelationFacets, arrays: ScoreArrays, patterns: TrainingPatterns | None) -> None:
        self._relations = relations
        self._arrays = arrays
        self._training_patterns = patterns
        # A stable sort over alphabetical columns breaks ties by name.
        self._by_name_R = np.array(sorted(range(len(relations.names)), key=relations.names.__getitem__))
        self._facets_MD = relations.facets.reshape(-1, relations.facets.shape[-1])

    def result(
        self, row: int, tokens: Sequence[str], assertion: Assertion, top_k: int | None, accepted_R: Bools | None = None
    ) -> PatternScore:
        """The result for one pattern, with at most ``top_k`` relations; None: all.

        ``row``: its row in the arrays; ``accepted_R``: None: as in the arrays.
        """
        arrays = self._arrays
        is_asserted = assertion.status is AssertionStatus.ASSERTED
        accepted_R = arrays.accepted[row] if accepted_R is None else accepted_R
        cosines_KRJ = None
        if self._training_patterns is not None:
            units_KD = unit_rows(arrays.facets[row])
            cosines_KRJ = (units_KD @ self._facets_MD.T).reshape(len(units_KD), *self._relations.facets.shape[:2])
        ranking_R = arrays.probabilities[row] + 2.0 * accepted_R
        order = self._by_name_R[np.argsort(-ranking_R[self._by_name_R], kind="stable")][:top_k]
        scores: list[RelationScore] = []
        for column in order.tolist():
            schema = float(arrays.universal_schema[row, column])
            score = RelationScore(
                relation=self._relations.names[column],
                score=float(arrays.scores[row, column]) if is_asserted else -1.0,
                probability=float(arrays.probabilities[row, column]) if is_asserted else 0.0,
                accepted=is_asserted and bool(accepted_R[column]),
                symmetric_score=float(arrays.symmetric[row, column]),
                universal_schema_score=schema if np.isfinite(schema) else None,
                meeting=None if cosines_KRJ is None else _meeting(cosines_KRJ[:, column]),
            )
            scores.append(self._explained(row, column, score) if not scores or score.accepted else score)
        highest = float(arrays.probabilities[row].max(initial=0.0)) if is_asserted else 0.0
        return PatternScore(
            pattern=" ".join(tokens),
            relations=tuple(scores),
            no_relation_probability=1.0 - highest,
            known=bool(np.isfinite(arrays.universal_schema[row]).any()),
            facets=() if cosines_KRJ is None else self._near_relations(cosines_KRJ),
            assertion=assertion.status,
            assertion_cue=assertion.cue,
        )

    def _explained(self, row: int, column: int, score: RelationScore) -> RelationScore:
        """Adds similar training patterns and well-known pairs if the relation belongs to the model itself."""
        relation = int(self._relations.rows[column])
        if self._training_patterns is None or relation < 0:
            return score
        similar = self._training_patterns.nearest(relation, self._arrays.facets[row])
        return replace(score, similar_patterns=similar, known_pairs=self._training_patterns.details[relation].pairs)

    def _near_relations(self, cosines_KRJ: Floats) -> tuple[FacetRelations, ...]:
        best_KR = cosines_KRJ.max(axis=2)
        names = self._relations.names
        nearest = np.argsort(-best_KR, axis=1, kind="stable")[:, :_NEAR_RELATIONS]
        return tuple(
            FacetRelations(facet, tuple(NearRelation(names[n], float(best_KR[facet, n])) for n in columns))
            for facet, columns in enumerate(nearest)
        )


def _meeting(cosines_KJ: Floats) -> FacetMeeting:
    pattern_facet, relation_facet = divmod(int(cosines_KJ.argmax()), cosines_KJ.shape[1])
    return FacetMeeting(pattern_facet, relation_facet, float(cosines_KJ[pattern_facet, relation_facet]))
