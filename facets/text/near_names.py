"""Names like a text, for "did you mean": letters that differ, words in another order, words left out."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property

from rapidfuzz import fuzz, process, utils

__all__ = ["NearNames"]

_POOL = 100  # names that each of the two measures brings
_MIN_LIKENESS = 50.0
_INNER_CAPITAL = re.compile(r"_|(?<=[a-z\d])(?=[A-Z])")


class NearNames:
    """Finds the names that are most like a text; accents, case and punctuation do not matter.

    Two likenesses of RapidFuzz are averaged, both of words in alphabetical order: that of all words, and that of the
    words that both have against the rest, which forgives a missing first name.

    Args:
        names: Any names, also equal or empty ones; they are prepared at the first search.

    Example:
        >>> near = NearNames(["Noam Chomsky", "Karen Sparck Jones", "Kevin Knight"])
        >>> near.find("Knihgt, Kevin", top_k=5), near.find("jones", top_k=5), near.find("xyz", top_k=5)
        ([2], [1], [])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find(self, text: str, *, top_k: int) -> list[int]:
        """Places of the names most like a text, best first, ties in the order of the names; what is unlike is left."""
        wanted = _plain(text)
        if not wanted:
            return []
        pool = {
            place
            for likeness in (fuzz.token_sort_ratio, fuzz.token_set_ratio)
            for _, _, place in process.extract(wanted, self._plain_names, scorer=likeness, limit=_POOL + top_k)
        }
        scored = sorted((-self._likeness(wanted, place), place) for place in pool)
        return [place for score, place in scored[:top_k] if -score >= _MIN_LIKENESS]

    @cached_property
    def _plain_names(self) -> list[str]:
        return [_plain(name) for name in self._names]

    def _likeness(self, wanted: str, place: int) -> float:
        name = self._plain_names[place]
        return (fuzz.token_sort_ratio(wanted, name) + fuzz.token_set_ratio(wanted, name)) / 2


def _plain(name: str) -> str:
    """Lower-case letters and digits without accents; all else is a blank: ``birthPlace`` is "birth place"."""
    decomposed = unicodedata.normalize("NFKD", _INNER_CAPITAL.sub(" ", name))
    return utils.default_process("".join(char for char in decomposed if not unicodedata.combining(char)))
