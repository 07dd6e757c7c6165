"""Relations between two words according to WordNet: synonyms, hypernyms, opposites.

The table next to this file holds the single words of WordNet 3.0 (Princeton University, see NOTICE) with their most
frequent senses; docs/change/data.md says how it was made. No maintained package contains the database itself.
"""

import json
import lzma
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from facets.errors import CheckpointError

_FILE = Path(__file__).with_name("wordnet.json.xz")
_PARTS = ("v", "n")
# Endings and their replacements (wndb(5), morphy(7)).
_ENDINGS = {
    "n": [
        *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh")),
        *(("men", "man"), ("ies", "y")),
    ],
    "v": [("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
}
# Factors for each rarer sense, and for each step up the hierarchy.
_SENSE = 0.85
_STEP = 0.8
_MAX_STEPS = 5
_NUM_SENSES = 5
_DERIVED = 0.8  # derived words: govern, governor
_BY_SENSE = 0.6  # words with opposite senses
_CACHED = 100_000


class WordNet:
    """Relations between single words in lower case; all numbers in ``[0, 1]``."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._above: list[list[int]] = table["above"]
        self._opposed: list[list[int]] = table["opposed"]
        self._senses: dict[str, list[int]] = table["senses"]
        self.opposites: dict[str, list[str]] = table["opposites"]
        self._derived: dict[str, list[str]] = table["derived"]
        self._forms: dict[str, list[str]] = table["forms"]
        # The caches belong to the table, not to the class.
        self.lemmas = lru_cache(_CACHED)(self._find_lemmas)
        self._reached = lru_cache(_CACHED)(self._find_reached)

    def _find_lemmas(self, word: str) -> tuple[str, ...]:
        """Base forms such as ``v:kill``, verbs first; none for an unknown word."""
        lemmas = [lemma for part in _PARTS for lemma in self._basic_forms(part, word)]
        if f"a:{word}" in self._senses:
            lemmas.append(f"a:{word}")
        return tuple(dict.fromkeys(lemmas))

    def sameness(self, word: str, other: str) -> float:
        """1 for forms of one word; less for synonyms, by the frequency of the shared sense, and for derived words."""
        if word == other:
            return 1.0
        best = 0.0
        for first in self.lemmas(word):
            for second in self.lemmas(other):
                if first == second:
                    return 1.0
                if second in self._derived.get(first, ()):
                    best = max(best, _DERIVED)
                if first[0] == second[0]:
                    ranks = {sense: rank for rank, sense in enumerate(self._senses[first])}
                    for rank, sense in enumerate(self._senses[second]):
                        if sense in ranks:
                            best = max(best, 0.9 * _SENSE ** (rank + ranks[sense]))
        return best

    def hypernymy(self, word: str, other: str) -> float:
        """Certainty that a word is a kind of the other, entails it or causes it ("kill" and "harm"); 0 for synonyms."""
        best = 0.0
        for first in self.lemmas(word):
            reached = self._reached(first)
            own = set(self._senses[first])
            for second in self.lemmas(other):
                if first[0] == second[0] and first != second:
                    for rank, sense in enumerate(self._senses[second][:_NUM_SENSES]):
                        if sense not in own:
                            best = max(best, reached.get(sense, 0.0) * _SENSE**rank)
        return best

    def opposition(self, word: str, other: str) -> float:
        """1 for opposites ("buy" and "sell"); less for words with opposite senses ("polite" and "rude")."""
        others = set(self.lemmas(other))
        if any(not others.isdisjoint(self.opposites.get(lemma, ())) for lemma in self.lemmas(word)):
            return 1.0
        concepts = self._concepts(other)
        opposed = (concept for sense in self._concepts(word) for concept in self._opposed[sense])
        return _BY_SENSE if any(concept in concepts for concept in opposed) else 0.0

    def is_verb(self, word: str) -> bool:
        """Whether a word may be a form of a verb."""
        return any(lemma.startswith("v:") for lemma in self.lemmas(word))

    def is_noun(self, word: str) -> bool:
        """Whether a word is the base form of a noun and no inflected form of another word."""
        lemmas = self.lemmas(word)
        return f"n:{word}" in lemmas and all(lemma[2:] == word for lemma in lemmas)

    def _concepts(self, word: str) -> set[int]:
        """The senses of a word with what they are a kind of: adjectives, and the first sense of verbs."""
        return {
            concept
            for lemma in self.lemmas(word)
            for rank, sense in enumerate(self._senses[lemma])
            for concept in (sense, *(self._above[sense] if lemma[0] == "a" or (lemma[0] == "v" and not rank) else ()))
        }

    def _basic_forms(self, part: str, word: str) -> Iterator[str]:
        irregular = self._forms.get(f"{part}:{word}", ())
        yield from (f"{part}:{lemma}" for lemma in irregular if f"{part}:{lemma}" in self._senses)
        if f"{part}:{word}" in self._senses:
            yield f"{part}:{word}"
        if irregular:
            return
        for ending, replacement in _ENDINGS[part]:
            stem = word.removesuffix(ending)
            if stem != word:
                forms = [stem + replacement]
                if ending in ("ed", "ing") and not replacement and len(stem) > 2 and stem[-1] == stem[-2]:
                    forms.append(stem[:-1])  # planned
                yield from (f"{part}:{form}" for form in forms if f"{part}:{form}" in self._senses)

    def _find_reached(self, lemma: str) -> dict[int, float]:
        """Concepts at or above the senses of a lemma, with a score."""
        reached: dict[int, float] = {}
        for rank, sense in enumerate(self._senses[lemma][:_NUM_SENSES]):
            for concept, steps in self._levels(sense).items():
                value = _SENSE**rank * _STEP**steps
                if value > reached.get(concept, 0.0):
                    reached[concept] = value
        return reached

    def _levels(self, sense: int) -> dict[int, int]:
        """Concepts at or above a sense, with the number of steps."""
        levels = {sense: 0}
        frontier = [sense]
        for step in range(1, _MAX_STEPS + 1):
            frontier = [up for concept in frontier for up in self._above[concept] if up not in levels]
            levels |= dict.fromkeys(frontier, step)
        return levels


@cache
def wordnet() -> WordNet:
    """The table that ships with the library, read once."""
    try:
        return WordNet(json.loads(lzma.decompress(_FILE.read_bytes())))
    except (OSError, lzma.LZMAError, ValueError, KeyError) as error:
        raise CheckpointError(f"{_FILE}: cannot be read, install the library again: {error}") from error
