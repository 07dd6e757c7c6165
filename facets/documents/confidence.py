"""Confidence: how probable it is that a hit is relevant, comparable across queries.

The score of a search orders the hits of one query. Confidence is a logistic curve over what spoke for a hit; its
weights belong to a model and lie in ``relevance.json`` of the model's folder::

    {"format": 1, "revision": "0123456789ab", "source": "judgements it was fitted on",
     "modes": {"hybrid": {"intercept": -5.6, "cosine": 7.2, "lead": 10.2, "behind": -22.0}, "facets": ...}}

Shape letters: C candidates, S signals of each, F features.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from facets.documents.types import SearchMode
from facets.errors import CheckpointError
from facets.storage import FITTED_FORMAT, read_fitted, write_atomically

SIGNALS = ("cosine", "coverage", "saturation")
"""What speaks for one hit.

- ``cosine``: the facets' score of the document; 0 in mode lexical.
- ``coverage``: what share of the query's words the document has, each by its rarity in the collection, words that no
  document has being the rarest; in [0, 1]. Stop words are no words here: 0 for a query of them alone.
- ``saturation``: BM25 of the document as a share of the most that any document could have; in [0, 1].

Without lexical search (mode facets) the last two are 0.
"""
FEATURES = (*SIGNALS, "size", "lead", "behind")
"""What a curve weighs: of a query all but the last, so that confidence falls with the score and never with the rank.

- ``cosine``, ``coverage``, ``saturation``: those of the best candidate.
- ``size``: logarithm of the number of documents that were searched, those that a filter leaves; 1,000 at most, as none
  was fitted on more. The best of many is like the query by chance, the best of few is not.
- ``lead``: by how much the score of the best exceeds that of the tenth, which is 0 where there are fewer. What stands
  out answers; where everything is alike, as in papers about one disease, little is sure.
- ``behind``: by how much the score is less than that of the best. Its weight is never above 0.
"""
_LARGEST = 1_000
_BACKGROUND = 10  # the rank whose score is what any document of the collection might have
_FILE_NAME = "relevance.json"
_INTERCEPT = "intercept"


def features_of(
    scores_C: NDArray[np.floating], signals_CS: NDArray[np.floating], *, num_searched: int
) -> NDArray[np.float64]:
    """The features of the candidates of one query, ``[C, F]`` in the order of :data:`FEATURES`.

    Args:
        scores_C: What they are ranked by; the ten best candidates of the search must be among them.
        signals_CS: In the order of :data:`SIGNALS`.
        num_searched: Documents among which they were looked for.
    """
    features_CF = np.zeros((len(scores_C), len(FEATURES)))
    if not len(scores_C):
        return features_CF
    best, scores = int(np.argmax(scores_C)), scores_C.astype(np.float64)
    has_background = len(scores) >= _BACKGROUND
    background = np.partition(scores, -_BACKGROUND)[-_BACKGROUND] if has_background else min(0.0, scores[best])
    features_CF[:, : len(SIGNALS)] = signals_CS[best]
    features_CF[:, FEATURES.index("size")] = np.log(np.clip(num_searched, 1, _LARGEST))
    features_CF[:, FEATURES.index("lead")] = scores[best] - background
    features_CF[:, FEATURES.index("behind")] = scores[best] - scores
    return features_CF


@dataclass(frozen=True, kw_only=True, slots=True)
class RelevanceCurve:
    """Weights of a logistic curve, by mode.

    Attributes:
        revision: Of the model whose searches it was fitted on.
        weights: Mode -> name in :data:`FEATURES`, or ``intercept`` -> weight; names left out weigh 0, and hits of a
            mode left out have no confidence.
        source: Judgements it was fitted on, for readers of the file.

    Example:
        >>> curve = RelevanceCurve(revision="r", weights={"facets": {"intercept": -2.0, "cosine": 4.0}})
        >>> found = features_of(np.array([0.5]), np.array([[0.5, 0, 0]]), num_searched=9)
        >>> curve.confidence("facets", found).tolist()
        [0.5]
    """

    revision: str
    weights: Mapping[SearchMode, Mapping[str, float]]
    source: str = ""

    def __post_init__(self) -> None:
        """Checks names and numbers."""
        for mode, weights in self.weights.items():
            if mode not in get_args(SearchMode):
                raise CheckpointError(f"modes: expected {', '.join(get_args(SearchMode))}, got {mode!r}")
            for name, weight in weights.items():
                if name not in (*FEATURES, _INTERCEPT):
                    raise CheckpointError(f"{mode}: expected names of {', '.join(FEATURES)}, got {name!r}")
                if not np.isfinite(weight):
                    raise CheckpointError(f"{mode}.{name}: expected a finite number, got {weight}")
            if weights.get("behind", 0.0) > 0:
                raise CheckpointError(f"{mode}.behind: expected no number above 0, got {weights['behind']}")

    def confidence(self, mode: SearchMode, features_CF: NDArray[np.float64]) -> NDArray[np.float32] | None:
        """Probabilities of being relevant, ``[C]`` in [0, 1]; None where nothing was fitted for the mode."""
        weights = self.weights.get(mode)
        if weights is None:
            return None
        slopes_F = np.array([weights.get(name, 0.0) for name in FEATURES])
        logits_C = features_CF @ slopes_F + weights.get(_INTERCEPT, 0.0)
        return (0.5 * (1 + np.tanh(0.5 * logits_C))).astype(np.float32)


def read_relevance(folder: Path, revision: str) -> RelevanceCurve | None:
    """The curve of a model folder.

    Args:
        folder: The folder.
        revision: Of the model in it. A curve of another one is left out with a warning: it would be wrong.

    Returns:
        The curve; None when there is none.

    Raises:
        CheckpointError: The file is damaged or of an unknown format.
    """
    return read_fitted(folder / _FILE_NAME, revision, _parse)


def _parse(content: Mapping[str, Any]) -> RelevanceCurve:
    return RelevanceCurve(
        revision=str(content["revision"]),
        weights={mode: {name: float(w) for name, w in of.items()} for mode, of in content["modes"].items()},
        source=str(content.get("source", "")),
    )


def write_relevance(folder: Path, curve: RelevanceCurve) -> Path:
    """Writes ``relevance.json``; the file appears whole or not at all."""
    content = {"format": FITTED_FORMAT, "revision": curve.revision, "source": curve.source}
    modes: Sequence[SearchMode] = sorted(curve.weights)
    rounded = {mode: {name: round(w, 6) for name, w in curve.weights[mode].items()} for mode in modes}
    file = folder / _FILE_NAME
    with write_atomically(file, durable=False) as part:
        part.write_text(json.dumps({**content, "modes": rounded}, indent=2) + "\n", encoding="utf-8")
    return file
