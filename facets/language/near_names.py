"""Names like a text, for "did you mean": letters that differ, words in another order, words left out."""

import re
import threading
import unicodedata
from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz, process, utils

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
        self._prepared = _PreparedNames(list(names))
        self._num_names = len(names)

    def extended(self, names: Iterable[str]) -> "NearNames":
        """These names and further ones; what was prepared is shared. One caller at a time, on the latest ones."""
        longer = NearNames(())
        longer._prepared = self._prepared
        longer._num_names = self._prepared.extend(self._num_names, names)
        return longer

    def name(self, place: int) -> str:
        """The name at a place."""
        return self._prepared.names[place]

    def find(self, text: str, *, top_k: int) -> list[int]:
        """Places of the names most like a text, best first, ties in their order; what is unlike is left out."""
        wanted = _plain(text)
        if not wanted:
            return []
        plain = self._prepared.plain(self._num_names)
        pool = {
            place
            for likeness in (fuzz.token_sort_ratio, fuzz.token_set_ratio)
            for _, _, place in process.extract(wanted, plain, scorer=likeness, limit=_POOL + top_k)
        }
        # Of the same words those in the same order come first.
        scored = sorted((-_likeness(wanted, plain[place]), -fuzz.ratio(wanted, plain[place]), place) for place in pool)
        return [place for likeness, _, place in scored[:top_k] if -likeness >= _MIN_LIKENESS]


class _PreparedNames:
    """Names and their plain forms, which are made once, when somebody searches; may be shared by threads."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._plain: list[str] = []
        self._lock = threading.Lock()

    def extend(self, length: int, names: Iterable[str]) -> int:
        """Puts names behind the first ones; how many there are then."""
        with self._lock:
            del self.names[length:], self._plain[length:]
            self.names.extend(names)
            return len(self.names)

    def plain(self, length: int) -> list[str]:
        """Plain forms of the first names."""
        with self._lock:
            self._plain += map(_plain, self.names[len(self._plain) : length])
            return self._plain[:length]


def _likeness(wanted: str, name: str) -> float:
    return (fuzz.token_sort_ratio(wanted, name) + fuzz.token_set_ratio(wanted, name)) / 2


def _plain(name: str) -> str:
    """Lower-case letters and digits without accents; all else is a blank: ``birthPlace`` is "birth place"."""
    decomposed = unicodedata.normalize("NFKD", _INNER_CAPITAL.sub(" ", name))
    return utils.default_process("".join(char for char in decomposed if not unicodedata.combining(char)))
