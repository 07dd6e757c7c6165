"""What speaks for a relation: patterns of the training data that express it and are nearest to the one in question.

Shape suffixes: N patterns, K facets, D dimensions.
"""

import threading

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.relations.contract import PatternEncoder
from facets.relations.results import SimilarPattern
from facets.relations.scoring import symmetric_score

__all__ = ["TrainingPatterns"]

_COMPARED = 50  # of a relation, those it shares most entity pairs with
_SHOWN = 3


class TrainingPatterns:
    """Training patterns of each relation, encoded when first asked for; may be shared by threads.

    Args:
        model: Encodes them, and holds their texts.
    """

    def __init__(self, model: PatternEncoder) -> None:
        self._model = model
        self._texts = tuple(model.table.rows)
        self._lock = threading.Lock()
        self._facets: dict[int, Tensor] = {}

    def nearest(self, relation: int, facets_KD: NDArray[np.float32]) -> tuple[SimilarPattern, ...]:
        """Nearest training patterns of a relation, closest first.

        Args:
            relation: Its row in the model's table; below 0: none of the model's own.
            facets_KD: Facets of the pattern in question.
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
