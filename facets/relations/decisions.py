"""Turns score arrays into results: ranking, decision, negation, evidence.

Shape suffixes: P patterns, R relations, K pattern facets, J relation facets, D dimensions.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.relations.negation import negation_cue
from facets.relations.ranking import RelationFacets, ScoreArrays
from facets.relations.results import Evidence, FacetMeeting, NearRelation, PatternScores, RelationScore
from facets.words.vectors import unit_rows

__all__ = ["PatternDecisions"]

_NEAREST = 3  # relations shown for each facet


class PatternDecisions:
    """Results of some patterns, one at a time.

    Args:
        relations: What was scored against.
        arrays: The scores.
        top_k: Relations in each result at most; None: all.
        evidence: Add which facet met which and the relations near each facet, which takes longer than scoring.
    """

    def __init__(
        self, relations: RelationFacets, arrays: ScoreArrays, *, top_k: int | None, evidence: bool = True
    ) -> None:
        self._relations = relations
        self._arrays = arrays
        self._top_k = top_k or len(relations.names)
        self._evidence = evidence
        # Ties go by name: a stable sort of columns that stand in that order.
        self._by_name_R = np.array(sorted(range(len(relations.names)), key=relations.names.__getitem__))
        self._facets_MD = relations.facets.reshape(-1, relations.facets.shape[-1])

    def scores(self, place: int, tokens: Sequence[str], *, before: Sequence[str] = ()) -> PatternScores:
        """The result of one pattern.

        Args:
            place: Its row of the arrays.
            tokens: Its tokens.
            before: Tokens of its sentence before the first argument, where a negation may stand.
        """
        arrays = self._arrays
        cue = negation_cue(tokens, before=before)
        cosines_KRJ = self._cosines(place) if self._evidence else None
        order = self._by_name_R[np.argsort(-arrays.probabilities[place][self._by_name_R], kind="stable")]
        scores = tuple(
            self._score(place, relation, cosines_KRJ, negated=bool(cue)) for relation in order[: self._top_k].tolist()
        )
        best = 0.0 if cue else float(arrays.probabilities[place].max(initial=0.0))
        known = bool(np.isfinite(arrays.universal_schema[place]).any())
        nearest = () if cosines_KRJ is None else self._nearest(cosines_KRJ)
        return PatternScores(" ".join(tokens), scores, 1.0 - best, Evidence(nearest, known, cue))

    def _cosines(self, place: int) -> NDArray[np.float32]:
        units_KD = unit_rows(self._arrays.facets[place])
        cosines: NDArray[np.float32] = (units_KD @ self._facets_MD.T).reshape(
            len(units_KD), *self._relations.facets.shape[:2]
        )
        return cosines

    def _score(
        self, place: int, relation: int, cosines_KRJ: NDArray[np.float32] | None, *, negated: bool
    ) -> RelationScore:
        arrays = self._arrays
        schema = float(arrays.universal_schema[place, relation])
        return RelationScore(
            relation=self._relations.names[relation],
            score=-1.0 if negated else float(arrays.scores[place, relation]),
            probability=0.0 if negated else float(arrays.probabilities[place, relation]),
            accepted=not negated and bool(arrays.accepted[place, relation]),
            symmetric=float(arrays.symmetric[place, relation]),
            universal_schema=schema if np.isfinite(schema) else None,
            meeting=None if cosines_KRJ is None else _meeting(cosines_KRJ[:, relation]),
        )

    def _nearest(self, cosines_KRJ: NDArray[np.float32]) -> tuple[tuple[NearRelation, ...], ...]:
        best_KR = cosines_KRJ.max(axis=2)
        names = self._relations.names
        nearest = np.argsort(-best_KR, axis=1, kind="stable")[:, :_NEAREST]
        return tuple(
            tuple(NearRelation(names[relation], float(best_KR[facet, relation])) for relation in row)
            for facet, row in enumerate(nearest)
        )


def _meeting(cosines_KJ: NDArray[np.float32]) -> FacetMeeting:
    pattern_facet, relation_facet = divmod(int(cosines_KJ.argmax()), cosines_KJ.shape[1])
    return FacetMeeting(pattern_facet, relation_facet, float(cosines_KJ[pattern_facet, relation_facet]))
