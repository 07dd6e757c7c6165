"""JSON files beside a model with values fitted on it; most hold logistic curves.

Shape letters: C candidates, F features.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from facets.arrays import Doubles
from facets.errors import CheckpointError
from facets.storage.files import write_whole

ReadT = TypeVar("ReadT")
logger = logging.getLogger(__name__)

FITTED_FORMAT = 1
_INTERCEPT = "intercept"


def read_fitted(file: Path, revision: str | None, parse: Callable[[Mapping[str, Any]], ReadT]) -> ReadT | None:
    """Reads fitted values from JSON like ``{"format": 1, "revision": "0123456789ab", ...}``.

    Returns the result of ``parse``, which may raise ``ValueError``, ``KeyError``, ``TypeError`` or ``AttributeError``;
    None if there is no file, or, with a warning, if the values were fitted on another revision of the model; with
    ``revision`` None, any will do. Raises CheckpointError if the file is damaged or has an unknown format.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["format"] != FITTED_FORMAT:
            raise CheckpointError(f"expected format {FITTED_FORMAT}, got {content['format']!r}")
        parsed, fitted_on = parse(content), str(content["revision"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, CheckpointError) as error:
        raise CheckpointError(f"{file}: expected values fitted on a model, got a damaged file: {error}") from error
    if revision is not None and fitted_on != revision:
        logger.warning("%s is ignored: it was fitted on revision %s, the model is %s", file, fitted_on, revision)
        return None
    return parsed


@dataclass(frozen=True, kw_only=True, slots=True)
class LogisticCurves:
    """Weights of logistic curves by name, in ``relevance.json`` of a model's folder.

    A subclass defines group, names and features::

        {"format": 1, "revision": "0123456789ab", "source": "judgements they were fitted on",
         GROUP: {NAME: {"intercept": -5.6, FEATURE: 7.2, ...}, ...}}
    """

    FILE: ClassVar[str] = "relevance.json"
    GROUP: ClassVar[str]
    NAMES: ClassVar[Sequence[str]]
    FEATURES: ClassVar[Sequence[str]]

    revision: str  # of the model they were fitted on
    weights: Mapping[str, Mapping[str, float]]  # curve -> feature or `intercept` -> weight; missing features weigh 0
    source: str = ""  # data they were fitted on, for readers of the file

    def __post_init__(self) -> None:
        for curve, weights in self.weights.items():
            if curve not in self.NAMES:
                raise CheckpointError(f"{self.GROUP}: expected {', '.join(self.NAMES)}, got {curve!r}")
            for name, weight in weights.items():
                if name not in (*self.FEATURES, _INTERCEPT):
                    raise CheckpointError(f"{curve}: expected names of {', '.join(self.FEATURES)}, got {name!r}")
                if not np.isfinite(weight):
                    raise CheckpointError(f"{curve}.{name}: expected a finite number, got {weight}")

    def probabilities(self, curve: str, features_CF: Doubles) -> Doubles | None:
        """Values of a curve, ``[C]`` in [0, 1]; None if there is no curve of that name."""
        weights = self.weights.get(curve)
        if weights is None:
            return None
        slopes_F = np.array([weights.get(name, 0.0) for name in self.FEATURES])
        logits_C: Doubles = features_CF @ slopes_F + weights.get(_INTERCEPT, 0.0)
        return 0.5 * (1 + np.tanh(0.5 * logits_C))

    @classmethod
    def read(cls, folder: Path, revision: str | None) -> Self | None:
        """The curves in a model's folder; None if there are none for this revision; see ``read_fitted``."""
        return read_fitted(folder / cls.FILE, revision, cls._parse)

    @classmethod
    def _parse(cls, content: Mapping[str, Any]) -> Self:
        weights = {curve: {name: float(w) for name, w in of.items()} for curve, of in content[cls.GROUP].items()}
        return cls(revision=str(content["revision"]), weights=weights, source=str(content.get("source", "")))

    def write(self, folder: Path) -> Path:
        """Writes the file atomically; returns its path."""
        rounded = {curve: {name: round(w, 6) for name, w in of.items()} for curve, of in sorted(self.weights.items())}
        content = {"format": FITTED_FORMAT, "revision": self.revision, "source": self.source, self.GROUP: rounded}
        write_whole(folder / self.FILE, json.dumps(content, indent=2) + "\n")
        return folder / self.FILE
