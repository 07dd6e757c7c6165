"""What plain English relations entail: results, presuppositions, kinds and converses, from a hand-written table.

``frames.txt`` lists relations with the expressions that state them, and what each implies or presupposes. A pattern is
read as one clause (``read_clause``) and looked up; a word missing from the table is replaced by its WordNet synonyms
that the table has. A relation entails every relation reachable from it; two relations contradict each
other if one reaches a relation that excludes one reached by the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from facets.errors import CheckpointError
from facets.language.wordnet import WordNet, wordnet
from facets.relations.patterns import ARG1, ARG2
from facets.relations.wording import LINKS, OTHER, Clause, Wording, read_clause

_FILE = Path(__file__).with_name("frames.txt")
_COLUMNS = 4
_CACHED = 20_000
_MIN_SAMENESS = 0.7  # lowest sameness of two words that count as one expression

Key = tuple[str, ...]
Node = tuple[str, bool]  # a relation, and whether its arguments are exchanged
Row = tuple[str, list[str], list[str], list[str]]  # name, expressions, what it implies, what it presupposes


@dataclass(frozen=True, slots=True)
class Reading:
    """A relation that a clause may state."""

    name: str  # name of the relation
    is_exchanged: bool  # the relation's first argument is `$ARG2`
    strength: float  # certainty, in `[0, 1]`
    modifiers: frozenset[str]  # the remaining words of the clause
    word: str = ""  # the word that was looked up in WordNet, if the table does not have it
    is_listed: bool = True  # False: the clause's own words name it


@dataclass(frozen=True, slots=True)
class Finding:
    """What the table says about "the premise entails the hypothesis"."""

    implied: float  # certainty that the hypothesis follows, in `[0, 1]`
    apart: float  # certainty that both sides are known and it does not follow, in `[0, 1]`; 0 if one is unknown
    reason: str  # brief reason; empty if nothing is known


_UNKNOWN = Finding(0.0, 0.0, "")


class Frames:
    """The table of relations, read from the lines of ``frames.txt``; raises ValueError for a line with a mistake."""

    def __init__(self, lines: Sequence[str], words: WordNet) -> None:
        self._words = words
        rows = [_row(line) for line in lines if line.strip() and not line.startswith("#")]
        self._by_first_word: dict[str, dict[Key, list[Node]]] = {}
        self._by_other_words: dict[Key, dict[str, list[Node]]] = {}
        for name, expressions, _, _ in rows:
            for expression in expressions:
                self._add(name, expression)
        # By relation: what it implies, and whether that only held before; what it excludes, and whether it is over.
        self._follows, self._excludes = _closure(rows)
        self.readings = lru_cache(_CACHED)(self._find_readings)

    def compare(self, premise: Wording, hypothesis: Wording) -> Finding:
        """Whether the hypothesis follows from the premise: ``bought`` implies ``owns``."""
        findings = [
            self._between(first, second, hypothesis.clause.tense)
            for first in self.readings(premise.clause)
            for second in self.readings(hypothesis.clause)
        ]
        best = max(findings, key=lambda finding: (finding.implied, finding.apart), default=_UNKNOWN)
        if best.implied and premise.is_negated != hypothesis.is_negated:
            return Finding(0.0, best.implied, "one is negated and the other is not")
        if best.implied and premise.is_doubted != hypothesis.is_doubted:
            return Finding(0.0, best.implied, "only one is said to be so")
        return best

    def contradiction(self, premise: Wording, hypothesis: Wording) -> tuple[float, str]:
        """Certainty that both cannot hold, in ``[0, 1]``, and the reason; negations are ignored."""
        if premise.is_doubted != hypothesis.is_doubted:
            return 0.0, ""
        contradictions = [
            (
                first.strength * second.strength,
                f"{_spoken(first)}, so {'no longer' if is_over else 'not'} {_spoken(second)}",
            )
            for one, other in ((premise, hypothesis), (hypothesis, premise))
            for first in self.readings(one.clause)
            for second in self.readings(other.clause)
            if first.modifiers == second.modifiers
            for is_over in self._exclusions(first, second)
            if not is_over or other.clause.tense == "present"
        ]
        return max(contradictions, default=(0.0, ""))

    def _exclusions(self, first: Reading, second: Reading) -> Iterator[bool]:
        """For each way in which the first excludes the second: whether it only says that the second is over."""
        claimed = {(name, flips != second.is_exchanged) for name, flips in self._holding(second.name)}
        for name, flips in self._holding(first.name):
            for (target, exchanged), is_over in self._excludes.get(name, {}).items():
                if (target, exchanged != (flips != first.is_exchanged)) in claimed:
                    yield is_over

    def _holding(self, name: str) -> list[Node]:
        """A relation and every relation that holds at the same time."""
        follows = self._follows.get(name, {})
        return [(name, False), *(node for node, was_before in follows.items() if not was_before)]

    def _between(self, first: Reading, second: Reading, tense: str) -> Finding:
        strength = first.strength * second.strength
        is_exchanged = first.is_exchanged != second.is_exchanged
        was_before = self._follows.get(first.name, {}).get((second.name, is_exchanged))
        is_same = first.name == second.name
        if was_before is None and is_same and (not is_exchanged or first.name.startswith("as ")):  # "as tall as"
            was_before = False
        if was_before is None:
            if not (is_same and is_exchanged) and not (first.is_listed and second.is_listed):
                return _UNKNOWN
            # A word read through WordNet may imply more than the table's expression.
            strength = strength if not (first.word or second.word) else 0.0
            if is_same and is_exchanged:
                return Finding(0.0, strength, f"{_spoken(first)} with the arguments exchanged")
            return Finding(0.0, strength, f"{_spoken(first)} without {_spoken(second)} is possible")
        if was_before and tense == "present":
            return Finding(0.0, strength, f"{_spoken(first)}, so no longer {_spoken(second)}")
        if missing := second.modifiers - first.modifiers:
            return Finding(0.0, strength, f"only one says {' '.join(sorted(missing))!r}")
        if is_same:
            return Finding(strength, 0.0, f"both say {_spoken(first)}")
        return Finding(strength, 0.0, f"{_spoken(first)}, so {'before it ' if was_before else ''}{_spoken(second)}")

    def _add(self, name: str, expression: str) -> None:
        tokens, is_exchanged = expression.removeprefix("~").split(), expression.startswith("~")
        first, second = (ARG2, ARG1) if is_exchanged else (ARG1, ARG2)
        filled = [second if token == OTHER else token for token in tokens]
        clause = read_clause([first, *filled, *([] if OTHER in tokens else [second])], self._words)
        key = tuple(forms[-1] for forms in clause.words)
        if not key:
            raise ValueError(f"{name}: expected words in {expression!r}")
        node = (name, clause.is_exchanged)
        self._by_first_word.setdefault(key[0], {}).setdefault(key, []).append(node)
        self._by_other_words.setdefault(key[1:], {}).setdefault(key[0], []).append(node)

    def _find_readings(self, clause: Clause) -> tuple[Reading, ...]:
        """The relations that a clause may state; its own words if the table has none."""
        if not clause.words:
            return ()
        matches = list(self._matches(clause))
        if matches:
            # Prefer the longest expressions, with the fewest words left over.
            longest = max(len(key) for key, _, _ in matches)
            matches = [match for match in matches if len(match[0]) == longest]
            fewest = min(len(modifiers) for _, modifiers, _ in matches)
            readings = [
                Reading(name, exchanged != clause.is_exchanged, 1.0, modifiers)
                for _, modifiers, nodes in matches
                if len(modifiers) == fewest
                for name, exchanged in nodes
            ]
            return tuple(dict.fromkeys(readings))
        own_words = " ".join(forms[0] for forms in clause.words)
        unlisted = Reading(own_words, clause.is_exchanged, 1.0, clause.modifiers, is_listed=False)
        return (unlisted, *self._similar_readings(clause))

    def _matches(self, clause: Clause) -> Iterator[tuple[Key, frozenset[str], list[Node]]]:
        """Expressions that a clause contains with nothing but modifiers around them."""
        words = clause.words
        starts = range(len(words)) if clause.is_nominal else range(1)
        for start in starts:
            if any(forms[0] in LINKS or forms[0] == OTHER for forms in words[:start]):
                return
            for form in words[start]:
                if start and form in LINKS:
                    continue
                for key, nodes in self._by_first_word.get(form, {}).items():
                    skipped = _skipped_words(key, words[start:])
                    if skipped is not None:
                        modifiers = [*(forms[0] for forms in words[:start]), *skipped]
                        yield key, clause.modifiers.union(modifiers), nodes

    def _similar_readings(self, clause: Clause) -> Iterator[Reading]:
        """Readings by synonyms of the first word, with the other words unchanged."""
        heads = self._by_other_words.get(tuple(forms[0] for forms in clause.words[1:]), {})
        word = clause.words[0][-1]
        best: dict[Node, Reading] = {}
        for head, nodes in heads.items():
            strength = self._words.sameness(word, head)
            if strength < _MIN_SAMENESS:
                continue
            for name, exchanged in nodes:
                node = (name, exchanged != clause.is_exchanged)
                if node not in best or best[node].strength < strength:
                    best[node] = Reading(*node, strength, clause.modifiers, word)
        yield from best.values()


def _skipped_words(key: Key, words: Sequence[tuple[str, ...]]) -> list[str] | None:
    """The clause's words outside an expression; None if it does not state it or states it about something else."""
    skipped = []
    matched = 0
    met_other = False
    for forms in words:
        if matched < len(key) and key[matched] in forms:
            matched += 1
        elif forms[0] == OTHER or (forms[0] in LINKS and not met_other):
            return None
        else:
            skipped.append(forms[0])
        met_other = met_other or forms[0] == OTHER
    return [word for word in skipped if word not in LINKS] if matched == len(key) else None


def _row(line: str) -> Row:
    columns = [column.strip() for column in line.split("|")]
    if not 2 <= len(columns) <= _COLUMNS:
        raise ValueError(f"expected name | expressions | what follows | what was before, got {line.strip()!r}")
    columns += [""] * (_COLUMNS - len(columns))
    expressions, follows, before = ([part.strip() for part in c.split(";") if part.strip()] for c in columns[1:])
    return columns[0], expressions, follows, before


def _closure(rows: Sequence[Row]) -> tuple[dict[str, dict[Node, bool]], dict[str, dict[Node, bool]]]:
    """For each relation: what it implies and whether that only held before; what it excludes and whether it is over.

    Exclusions are marked by an exclamation mark.
    """
    edges: dict[str, list[tuple[Node, bool]]] = {name: [] for name, *_ in rows}
    excluded: dict[str, dict[Node, bool]] = {name: {} for name in edges}
    for name, _, follows, before in rows:
        for target, was_before in (*((t, False) for t in follows), *((t, True) for t in before)):
            plain = target.removeprefix("!")
            node = (plain.removeprefix("~"), plain.startswith("~"))
            if node[0] not in edges:
                raise ValueError(f"{name}: expected a relation of the table, got {node[0]!r}")
            if plain != target:
                excluded[name][node] = was_before
            else:
                edges[name].append((node, was_before))
    return {name: _reached_from(name, edges) for name in edges}, excluded


def _reached_from(start: str, edges: Mapping[str, Sequence[tuple[Node, bool]]]) -> dict[Node, bool]:
    """Relations reached from one, and whether any step goes back in time; paths that do not are preferred."""
    reached: dict[Node, bool] = {}
    for may_go_back in (False, True):
        waiting: list[tuple[Node, bool]] = [((start, False), False)]
        seen: set[tuple[Node, bool]] = set()
        for (name, is_exchanged), was_before in waiting:
            for (target, flips), goes_back in edges[name]:
                step = (target, is_exchanged != flips), was_before or goes_back
                if step in seen or (goes_back and not may_go_back):
                    continue
                seen.add(step)
                reached.setdefault(*step)
                waiting.append(step)
    return reached


def _spoken(reading: Reading) -> str:
    return reading.word or reading.name.removesuffix(f" {OTHER}")


@cache
def frames() -> Frames:
    """The table that ships with the library, read once; a damaged installation is a ``CheckpointError``."""
    try:
        return Frames(_FILE.read_text(encoding="ascii").splitlines(), wordnet())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{_FILE}: cannot be read, install the library again: {error}") from error
