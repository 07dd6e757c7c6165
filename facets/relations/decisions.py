"""Turns score arrays into results: order, decision, assertion, and what speaks for a relation.

Shape suffixes: P patterns, R relations, K pattern facets, J relation facets, D dimensions, N training patterns.
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
from facets.relations.tables import RelationDetails

_NEAREST = 3  # relations shown for each facet
_COMPARED = 50  # of a relation, those it shares most entity pairs with
_SHOWN = 3


class TrainingPatterns:
    """Training patterns of each relation, encoded when first asked for; may be shared by threads."""

    def __init__(self, model: RelationModel) -> None:
        self._model = model
        self._texts = tuple(model.table.rows)
        self._lock = threading.Lock()
        self._facets: dict[int, Tensor] = {}

    def nearest(self, relation: int, facets_KD: NDArray[np.float32]) -> tuple[SimilarPattern, ...]:
        """Nearest training patterns of a relation, closest first.

        ``relation``: its row in the model's table; below 0: none of the model's own.
        """
        rows = self._model.relations.patterns[relation][:_COMPARED] if relation >= 0 else ()
        if not rows:
            return ()
        known_NKD = self._encoded(relation, rows)
        asked_NKD = torch.from_numpy(facets_KD).expand(len(rows), *facets_KD.shape)
        scores_N = symmetric_score(asked_NKD, known_NKD).numpy()
        best = np.argsort(-scores_N, kind="stable")[:_SHOWN]
        return tuple(SimilarPattern(self._texts[rows[place]], float(scores_N[place])) for place in best)

    def _encoded(self, relation: int, rows: tuple[int, ...]) -> Tensor:
        with self._lock:
            if relation not in self._facets:
                patterns = [self._texts[row].split(" ") for row in rows]
                self._facets[relation] = torch.from_numpy(self._model.encode_patterns(patterns))
            return self._facets[relation]


class PatternDecisions:
    """Results of some patterns, one at a time.

    ``top_k``: relations in each result at most; None: all. ``known``: adds evidence, which takes longer than scoring:
    which facet met which, the relations near each facet, the nearest patterns of the training data; None: no evidence.
    ``details``: what the relations of the model's table mean, by row; for evidence.
    """

    def __init__(
        self,
        relations: RelationFacets,
        arrays: ScoreArrays,
        *,
        top_k: int | None,
        known: TrainingPatterns | None = None,
        details: Sequence[RelationDetails] = (),
    ) -> None:
        self._relations = relations
        self._arrays = arrays
        self._top_k = top_k or len(relations.names)
        self._known = known
        self._details = details
        # Ties go by name: a stable sort of columns that stand in that order.
        self._by_name_R = np.array(sorted(range(len(relations.names)), key=relations.names.__getitem__))
        self._facets_MD = relations.facets.reshape(-1, relations.facets.shape[-1])

    def scores(
        self, place: int, tokens: Sequence[str], *, assertion: Assertion, accepted_R: NDArray[np.bool_] | None = None
    ) -> PatternScore:
        """The result of one pattern.

        ``assertion``: whether it is asserted where it stands. ``accepted_R``: which relations are taken to hold; None:
        as the arrays say.
        """
        arrays = self._arrays
        is_asserted = assertion.status is AssertionStatus.ASSERTED
        accepted_R = arrays.accepted[place] if accepted_R is None else accepted_R
        cosines_KRJ = None if self._known is None else self._cosines(place)
        strengths_R = arrays.probabilities[place] + 2.0 * accepted_R
        order = self._by_name_R[np.argsort(-strengths_R[self._by_name_R], kind="stable")][: self._top_k]
        scores = tuple(
            self._score(place, relation, cosines_KRJ, accepted=bool(accepted_R[relation]), asserted=is_asserted)
            for relation in order.tolist()
        )
        if self._known is not None:
            scores = tuple(
                self._explained(place, relation, score) if number == 0 or score.accepted else score
                for number, (relation, score) in enumerate(zip(order.tolist(), scores, strict=True))
            )
        best = float(arrays.probabilities[place].max(initial=0.0)) if is_asserted else 0.0
        known = bool(np.isfinite(arrays.universal_schema[place]).any())
        facets = () if cosines_KRJ is None else self._nearest(cosines_KRJ)
        return PatternScore(" ".join(tokens), scores, 1.0 - best, known, facets, assertion.status, assertion.cue)

    def _explained(self, place: int, relation: int, score: RelationScore) -> RelationScore:
        """With the nearest training patterns and well-known pairs."""
        assert self._known is not None
        row = int(self._relations.rows[relation])
        similar = self._known.nearest(row, self._arrays.facets[place])
        pairs = self._details[row].pairs if row >= 0 else ()
        return replace(score, similar_patterns=similar, known_pairs=pairs)

    def _cosines(self, place: int) -> NDArray[np.float32]:
        units_KD = unit_rows(self._arrays.facets[place])
        cosines: NDArray[np.float32] = (units_KD @ self._facets_MD.T).reshape(
            len(units_KD), *self._relations.facets.shape[:2]
        )
        return cosines

    def _score(
        self, place: int, relation: int, cosines_KRJ: NDArray[np.float32] | None, *, accepted: bool, asserted: bool
    ) -> RelationScore:
        arrays = self._arrays
        schema = float(arrays.universal_schema[place, relation])
        return RelationScore(
            relation=self._relations.names[relation],
            score=float(arrays.scores[place, relation]) if asserted else -1.0,
            probability=float(arrays.probabilities[place, relation]) if asserted else 0.0,
            accepted=asserted and accepted,
            symmetric_score=float(arrays.symmetric[place, relation]),
            universal_schema_score=schema if np.isfinite(schema) else None,
            meeting=None if cosines_KRJ is None else _meeting(cosines_KRJ[:, relation]),
        )

    def _nearest(self, cosines_KRJ: NDArray[np.float32]) -> tuple[FacetRelations, ...]:
        best_KR = cosines_KRJ.max(axis=2)
        names = self._relations.names
        nearest = np.argsort(-best_KR, axis=1, kind="stable")[:, :_NEAREST]
        return tuple(
            FacetRelations(facet, tuple(NearRelation(names[n], float(best_KR[facet, n])) for n in row))
            for facet, row in enumerate(nearest)
        )


def _meeting(cosines_KJ: NDArray[np.float32]) -> FacetMeeting:
    pattern_facet, relation_facet = divmod(int(cosines_KJ.argmax()), cosines_KJ.shape[1])
    return FacetMeeting(pattern_facet, relation_facet, float(cosines_KJ[pattern_facet, relation_facet]))
