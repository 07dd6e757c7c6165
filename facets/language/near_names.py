"""Finds similar names for "did you mean": names with different letters, reordered words or missing words."""

import re
import unicodedata
from collections.abc import Iterable

from rapidfuzz import fuzz, process, utils

_POOL = 100  # candidates from each of the two measures
_MIN_LIKENESS = 50.0
_INNER_CAPITAL = re.compile(r"_|(?<=[a-z\d])(?=[A-Z])")


class NearNames:
    """Finds the names most similar to a text, ignoring accents, case and punctuation.

    Example:
        >>> near = NearNames(["Noam Chomsky", "Karen Sparck Jones", "Kevin Knight"])
        >>> near.find("Knihgt, Kevin", top_k=5), near.find("jones", top_k=5), near.find("xyz", top_k=5)
        ([2], [1], [])
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._plain_names = list(map(_plain, names))

    def find(self, text: str, *, top_k: int) -> list[int]:
        """Indexes of the names most similar to a text, best first, ties in order; dissimilar names are left out."""
        wanted = _plain(text)
        if not wanted:
            return []
        plain = self._plain_names
        pool = {
            place
            for likeness in (fuzz.token_sort_ratio, fuzz.token_set_ratio)
            for _, _, place in process.extract(wanted, plain, scorer=likeness, limit=_POOL + top_k)
        }
        # Among names with the same words, those in the same word order come first.
        scored = sorted((-_likeness(wanted, plain[place]), -fuzz.ratio(wanted, plain[place]), place) for place in pool)
        return [place for likeness, _, place in scored[:top_k] if -likeness >= _MIN_LIKENESS]


def _likeness(wanted: str, name: str) -> float:
    """The second ratio forgives a missing first name. A wanted initial stands for any word that begins with it."""
    words = wanted.split()
    abbreviated = " ".join(word[0] if word[0] in words and word not in words else word for word in name.split())
    ratios = (fuzz.token_sort_ratio, fuzz.token_set_ratio)
    return max(sum(ratio(wanted, form) for ratio in ratios) / 2 for form in (name, abbreviated))


def _plain(name: str) -> str:
    """Lower-case letters and digits without accents, and spaces for the rest: ``birthPlace`` becomes "birth place"."""
    decomposed = unicodedata.normalize("NFKD", _INNER_CAPITAL.sub(" ", name))
    return utils.default_process("".join(char for char in decomposed if not unicodedata.combining(char)))
