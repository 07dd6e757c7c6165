"""Patterns as word pieces: what stands between the placeholders is text, a placeholder is a piece of its own."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.model.word_pieces import WordPieces
from facets.relations.patterns import ARG1, ARG2, ENTITY

__all__ = ["NUM_PLACEHOLDERS", "PLACEHOLDERS", "PatternPieces"]

# Their ids follow those of the word pieces: V, V + 1, V + 2.
PLACEHOLDERS = (ARG1, ARG2, ENTITY)
NUM_PLACEHOLDERS = len(PLACEHOLDERS)


class PatternPieces:
    """Ids of patterns.

    Args:
        pieces: The tokenizer of V word pieces.
        max_tokens: Ids of a pattern at most, the two special pieces included; a longer one loses its middle.
    """

    def __init__(self, pieces: WordPieces, max_tokens: int) -> None:
        self.pieces = pieces
        self.max_tokens = max_tokens
        self._special = {name: len(pieces) + place for place, name in enumerate(PLACEHOLDERS)}

    def rows(self, patterns: Sequence[Sequence[str]]) -> list[NDArray[np.int64]]:
        """Ids ``[L]`` of each tokenized pattern, L <= ``max_tokens``; each holds both arguments."""
        texts = [_runs(pattern) for pattern in patterns]
        found = iter(self.pieces.ids([run for runs in texts for run in runs if run not in self._special]))
        return [self._row([[self._special[r]] if r in self._special else next(found) for r in runs]) for runs in texts]

    def _row(self, parts: Sequence[Sequence[int] | NDArray[np.int32]]) -> NDArray[np.int64]:
        ids = np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
        room = self.max_tokens - 2
        if len(ids) > room:
            ids = self._shortened(ids, room)
        return np.concatenate([[self.pieces.first_id], ids, [self.pieces.last_id]])

    def _shortened(self, ids: NDArray[np.int64], room: int) -> NDArray[np.int64]:
        """Without the middle; the arguments stay wherever they stand."""
        places = np.arange(len(ids))
        kept = (places < room // 2) | (places >= len(ids) - (room - room // 2))
        arguments = (ids == self._special[ARG1]) | (ids == self._special[ARG2])
        lost = int((arguments & ~kept).sum())
        # Each argument that was cut out takes the place of a kept piece next to the cut.
        border = np.flatnonzero(kept & ~arguments & (places < room // 2))
        kept[border[len(border) - lost :]] = False
        return ids[kept | arguments]


def _runs(pattern: Sequence[str]) -> list[str]:
    """Placeholders and the texts between them, in order."""
    runs: list[str] = []
    words: list[str] = []
    for token in pattern:
        if token in PLACEHOLDERS:
            if words:
                runs.append(" ".join(words))
            runs.append(token)
            words = []
        else:
            words.append(token)
    return [*runs, " ".join(words)] if words else runs
