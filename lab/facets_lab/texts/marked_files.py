"""Files of users with marks where the sentences begin that belong in a summary."""

import lzma
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from facets.arrays import Doubles
from facets.language.sentences import Sentence

HELD_OUT = (
    7,
    8,
    13,
    14,
)  # groups from which nothing is learned; the weights of `facets.texts.importance` are fitted to them
_FILES = Path(__file__).with_name("marked_files.txt.xz")
_MARK = re.compile(r"\[\[([AB])\]\]")
_WORTH = {"A": 1.0, "B": 0.5}  # must be in the summary, may be


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A file with marks where good summary sentences begin."""

    group: int  # files of one writer
    text: str
    marks: tuple[tuple[int, float], ...]  # offset and worth

    def worth(self, sentences: Sequence[Sentence]) -> Doubles:
        """The worth of each sentence of the text, ``[S]``."""
        return np.array(
            [max([w for at, w in self.marks if one.start <= at < one.end], default=0.0) for one in sentences]
        )


def marked_files() -> Iterator[MarkedFile]:
    """The files; each begins with ``=== group | kind``."""
    for part in re.split(r"(?m)^=== ", lzma.open(_FILES, "rt", encoding="utf-8").read())[1:]:
        head, _, marked = part.partition("\n")
        text, marks = "", list[tuple[int, float]]()
        for piece, mark in zip(*[iter([*_MARK.split(marked), ""])] * 2, strict=True):
            text += piece
            marks += [(len(text), _WORTH[mark])] if mark else []
        yield MarkedFile(int(head.split(" | ")[0]), text, tuple(marks))
