"""Facets of patterns that come again and again, kept: few patterns make up most of what texts say."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.relations.contract import PatternEncoder

__all__ = ["PatternCache"]

_KEPT = 2048  # about 18 MB
_BULK = 256  # so many patterns at once are encoded without being kept


class PatternCache:
    """Encodes patterns, the most recent ones from memory; may be shared by threads.

    Args:
        model: Encodes the others.
        size: Patterns kept.
    """

    def __init__(self, model: PatternEncoder, *, size: int = _KEPT) -> None:
        self._model = model
        self._size = size
        self._lock = threading.Lock()
        self._facets: OrderedDict[tuple[str, ...], NDArray[np.float32]] = OrderedDict()

    def encode(self, patterns: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """See ``PatternEncoder.encode_patterns``."""
        if not 0 < len(patterns) < _BULK:
            return self._model.encode_patterns(patterns)
        keys = [tuple(pattern) for pattern in patterns]
        with self._lock:
            found = {key: self._facets[key] for key in keys if key in self._facets}
            for key in found:
                self._facets.move_to_end(key)
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        if missing:
            found.update(zip(missing, self._model.encode_patterns(missing), strict=True))
            with self._lock:
                self._facets.update((key, found[key].copy()) for key in missing)
                while len(self._facets) > self._size:
                    self._facets.popitem(last=False)
        return np.stack([found[key] for key in keys])
