"""Turns score arrays into results: order, decision, and evidence.

Shape suffixes: P patterns, R relations, K pattern facets, J relation facets, M facets of all relations, D dimensions,
N training patterns.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.language.vectors import unit_rows
from facets.relations.assertion import Assertion, AssertionStatus
from facets.relations.model import RelationModel
from facets.relations.results import (
    FacetMeeting,
    FacetRelations,
    NearRelation,
    PatternScore,
    RelationScore,
    SimilarPattern,
)
from facets.relations.scoring import RelationFacets, ScoreArrays, symmetric_score

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

    def nearest(self, relation: int, facets_KD: NDArray[np.float32]) -> tuple[SimilarPattern, ...]:
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

    ``top_k``: maximum number of relations in a result; None: all. ``training_patterns``: adds evidence, which takes
    longer than scoring; None: no evidence.
    """

    def __init__(
        self,
        relations: RelationFacets,
        arrays: ScoreArrays,
        *,
        top_k: int | None,
        training_patterns: TrainingPatterns | None,
    ) -> None:
        self._relations = relations
        self._arrays = arrays
        self._top_k = top_k or len(relations.names)
        self._training_patterns = training_patterns
        # A stable sort over alphabetical columns breaks ties by name.
        self._by_name_R = np.array(sorted(range(len(relations.names)), key=relations.names.__getitem__))
        self._facets_MD = relations.facets.reshape(-1, relations.facets.shape[-1])

    def result(
        self, row: int, tokens: Sequence[str], *, assertion: Assertion, accepted_R: NDArray[np.bool_] | None = None
    ) -> PatternScore:
        """The result for one pattern; ``row``: its row in the arrays; ``accepted_R``: None: as in the arrays."""
        arrays = self._arrays
        is_asserted = assertion.status is AssertionStatus.ASSERTED
        accepted_R = arrays.accepted[row] if accepted_R is None else accepted_R
        cosines_KRJ = None
        if self._training_patterns is not None:
            units_KD = unit_rows(arrays.facets[row])
            cosines_KRJ = (units_KD @ self._facets_MD.T).reshape(len(units_KD), *self._relations.facets.shape[:2])
        ranking_R = arrays.probabilities[row] + 2.0 * accepted_R
        order = self._by_name_R[np.argsort(-ranking_R[self._by_name_R], kind="stable")][: self._top_k]
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

    def _near_relations(self, cosines_KRJ: NDArray[np.float32]) -> tuple[FacetRelations, ...]:
        best_KR = cosines_KRJ.max(axis=2)
        names = self._relations.names
        nearest = np.argsort(-best_KR, axis=1, kind="stable")[:, :_NEAR_RELATIONS]
        return tuple(
            FacetRelations(facet, tuple(NearRelation(names[n], float(best_KR[facet, n])) for n in columns))
            for facet, columns in enumerate(nearest)
        )


def _meeting(cosines_KJ: NDArray[np.float32]) -> FacetMeeting:
    pattern_facet, relation_facet = divmod(int(cosines_KJ.argmax()), cosines_KJ.shape[1])
    return FacetMeeting(pattern_facet, relation_facet, float(cosines_KJ[pattern_facet, relation_facet]))
