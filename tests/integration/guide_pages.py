"""Guides as programs: the blocks of a page, and whether what they print is what the page shows."""

import re
from dataclasses import dataclass

__all__ = ["Step", "alike_lines", "difference", "steps"]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_TOLERANCE = 0.05  # processors without bfloat16 use integers
ANYTHING = "..."  # as a line: any lines
ANY_TEXT = "…"  # within a line


@dataclass(frozen=True, slots=True)
class Step:
    """A block that is run, and the output that the page shows below it.

    Attributes:
        language: ``sh`` or ``python``.
        code: What is run.
        output: Lines that must come, ``...`` standing for any lines and ``…`` for any part of one; None where the
            page shows none.
    """

    language: str
    code: str
    output: str | None


def steps(page: str) -> list[Step]:
    """The blocks marked ``sh`` and ``python`` of a page, in order; a block ``text`` behind one is its output."""
    found: list[Step] = []
    blocks = [(match[1], match[2]) for match in _BLOCK.finditer(page)]
    for place, (language, code) in enumerate(blocks):
        if language in ("sh", "python"):
            following = blocks[place + 1] if place + 1 < len(blocks) else ("", "")
            found.append(Step(language, code, following[1] if following[0] == "text" else None))
    return found


def difference(shown: str, printed: str) -> str | None:
    """The first shown line that was not printed behind the one before it; None when all were."""
    lines = iter(_clean(printed))
    anything = True  # a page may leave out what comes first
    for wanted in _clean(shown):
        if wanted == ANYTHING:
            anything = True
            continue
        for line in lines:
            if _alike(wanted, line):
                break
            if not anything:
                return f"{wanted!r}; printed was {line!r}"
        else:
            return wanted
        anything = False
    return None


def alike_lines(shown: str, printed: str) -> list[bool]:
    """Whether each shown line was printed, in any order."""
    lines = _clean(printed)
    return [any(_alike(wanted, line) for line in lines) for wanted in _clean(shown)]


def _clean(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def _alike(wanted: str, line: str) -> bool:
    parts = re.split(f"({_NUMBER.pattern}|{ANY_TEXT})", wanted)
    found = re.fullmatch("".join(map(_pattern, parts)), line)
    if found is None:
        return False
    numbers = [part for part in parts if _NUMBER.fullmatch(part)]
    pairs = zip(numbers, found.groups(), strict=True)
    return all(abs(float(one) - float(other)) <= (_TOLERANCE if "." in one else 0) for one, other in pairs)


def _pattern(part: str) -> str:
    if part == ANY_TEXT:
        return ".*?"
    return f"({_NUMBER.pattern})" if _NUMBER.fullmatch(part) else re.escape(part)
