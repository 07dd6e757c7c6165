"""What plain English relations entail: results, presuppositions, kinds, converses, by a table written by hand.

``frames.txt`` names relations with the expressions that say them, and what follows from each or held before it. A
pattern is read as one clause (``read_clause``) and looked up; a word that the table does not have counts as the table's
synonyms and more general words of WordNet. What one relation entails is whatever is reached from it; two contradict
each other where one reaches a relation that excludes what the other reaches.
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
_LEAST_SAME = 0.7  # of two words, to be said by one expression
_LEAST_KIND = 0.5  # of a word, to be a kind of another
_NEAR_MODIFIER = 0.8

Key = tuple[str, ...]
# A relation, and whether its arguments are exchanged.
Node = tuple[str, bool]
Row = tuple[str, list[str], list[str], list[str]]  # name, expressions, what follows, what was before


@dataclass(frozen=True, slots=True)
class Step:
    """How one relation follows from another."""

    path: tuple[str, ...]  # names on the way, the first and the last included
    was_before: bool  # some of it held before: it need not hold now


@dataclass(frozen=True, slots=True)
class Reading:
    """A relation that a clause says."""

    name: str  # of the relation
    is_exchanged: bool  # its first argument is `$ARG2`
    strength: float  # how surely, in `[0, 1]`
    is_kind: bool  # the clause says something more special
    modifiers: frozenset[str]  # what the clause says beside it
    word: str = ""  # what was read as it, where that is another word
    is_listed: bool = True  # it is in the table; else the clause's own words name it


@dataclass(frozen=True, slots=True)
class Finding:
    """What the table says of "the premise entails the hypothesis"."""

    implied: float  # how surely it does, in `[0, 1]`
    apart: float  # how surely both sides were read and it does not, in `[0, 1]`; 0 where one is not known
    reason: str  # why, in a few words; empty where nothing is known


_UNKNOWN = Finding(0.0, 0.0, "")


class Frames:
    """The table.

    ``lines``: of ``frames.txt``.

    Raises:
        ValueError: A line has not four columns at most, or names a relation that is not there.
    """

    def __init__(self, lines: Sequence[str], words: WordNet) -> None:
        self._words = words
        rows = [_row(line) for line in lines if line.strip() and not line.startswith("#")]
        self._keys: dict[str, dict[Key, list[Node]]] = {}
        self._by_shape: dict[Key, dict[str, list[Node]]] = {}
        for name, expressions, _, _ in rows:
            for expression in expressions:
                self._add(name, expression)
        self._reached, self._excluded = _closure(rows)
        self.readings = lru_cache(_CACHED)(self._find_readings)

    def compare(self, premise: Wording, hypothesis: Wording) -> Finding:
        """Whether the hypothesis follows; negations are left to the caller.

        Example:
            >>> from facets.relations.wording import read_wording
            >>> words = wordnet()
            >>> bought, owns = (read_wording(f"$ARG1 {verb} $ARG2".split(), words) for verb in ("bought", "owns"))
            >>> frames().compare(bought, owns)
            Finding(implied=1.0, apart=0.0, reason='buy, so own')
            >>> frames().compare(owns, bought).apart
            1.0
        """
        found = [
            self._between(own, other, hypothesis.clause.tense)
            for own in self.readings(premise.clause)
            for other in self.readings(hypothesis.clause)
        ]
        if not found:
            return _UNKNOWN
        best = max(found, key=lambda finding: (finding.implied, finding.apart))
        if best.implied and premise.is_negated != hypothesis.is_negated:
            return Finding(0.0, best.implied, "one is negated and the other is not")
        if best.implied and premise.is_doubted != hypothesis.is_doubted:
            return Finding(0.0, best.implied, "only one is said to be so")
        return best

    def contradiction(self, premise: Wording, hypothesis: Wording) -> tuple[float, str]:
        """How surely both cannot hold, in ``[0, 1]``, and why; negations are left to the caller.

        Example:
            >>> from facets.relations.wording import read_wording
            >>> words = wordnet()
            >>> sold, owns = (read_wording(f"$ARG1 {verb} $ARG2".split(), words) for verb in ("sold", "owns"))
            >>> frames().contradiction(sold, owns)
            (1.0, 'sell, so no longer own')
        """
        sides = (premise, hypothesis), (hypothesis, premise)
        found = [
            (own.strength * other.strength, f"{_spoken(own)}, so {'no longer' if is_ended else 'not'} {_spoken(other)}")
            for first, second in sides
            if premise.is_doubted == hypothesis.is_doubted
            for own in self.readings(first.clause)
            for other in self.readings(second.clause)
            if own.modifiers == other.modifiers
            for is_ended in self._exclude(own, other)
            if not is_ended or second.clause.tense == "present"
        ]
        return max(found, default=(0.0, ""))

    def _exclude(self, own: Reading, other: Reading) -> Iterator[bool]:
        """For each exclusion of one by the other, whether it is of what has ended."""
        claimed = {(name, flips != other.is_exchanged) for name, flips in self._holding(other.name)}
        for name, flips in self._holding(own.name):
            for (target, exchanged), is_ended in self._excluded.get(name, {}).items():
                if (target, exchanged != (flips != own.is_exchanged)) in claimed:
                    yield is_ended

    def _holding(self, name: str) -> list[Node]:
        """A relation with what follows from it at the same time."""
        steps = self._reached.get(name, {})
        return [(name, False), *(node for node, step in steps.items() if not step.was_before)]

    def _between(self, own: Reading, other: Reading, tense: str) -> Finding:
        strength = own.strength * other.strength
        is_exchanged = own.is_exchanged != other.is_exchanged
        step = self._reached.get(own.name, {}).get((other.name, is_exchanged))
        if own.name == other.name and (not is_exchanged or own.name.startswith("as ")):  # "as tall as"
            step = step or Step((own.name,), False)
        same_word = own.name == other.name and own.word == other.word
        if step is None or (other.is_kind and not same_word):
            exchanged = own.name == other.name and is_exchanged
            if not exchanged and not (own.is_listed and other.is_listed):
                return _UNKNOWN
            # What other words were read as it may hold although they do not say it.
            strength = strength if not (own.word or other.word) else 0.0
            return Finding(0.0, strength, _apart_reason(own, other, exchanged=exchanged))
        if step.was_before and tense == "present":
            return Finding(0.0, strength, f"{_spoken(own)}, so no longer {_spoken(other)}")
        missing = [word for word in other.modifiers if not self._says(own.modifiers, word)]
        if missing:
            return Finding(0.0, strength, f"only one says {' '.join(sorted(missing))!r}")
        return Finding(strength, 0.0, _reason(own, other, step))

    def _says(self, modifiers: frozenset[str], word: str) -> bool:
        return any(own == word or self._words.sameness(own, word) >= _NEAR_MODIFIER for own in modifiers)

    def _add(self, name: str, expression: str) -> None:
        tokens, exchanged = expression.removeprefix("~").split(), expression.startswith("~")
        first, second = (ARG2, ARG1) if exchanged else (ARG1, ARG2)
        filled = [second if token == OTHER else token for token in tokens]
        clause = read_clause([first, *filled, *([] if OTHER in tokens else [second])], self._words)
        key = tuple(forms[-1] for forms in clause.words)
        if not key:
            raise ValueError(f"{name}: expected words in {expression!r}")
        node = (name, clause.is_exchanged)
        self._keys.setdefault(key[0], {}).setdefault(key, []).append(node)
        self._by_shape.setdefault(key[1:], {}).setdefault(key[0], []).append(node)

    def _find_readings(self, clause: Clause) -> tuple[Reading, ...]:
        """The relations that a clause may say; its own words where the table has none."""
        if not clause.words:
            return ()
        matched = sorted(self._matched(clause), key=lambda match: (-len(match[0]), len(match[1])))
        if matched:
            best = [match for match in matched if len(match[0]) == len(matched[0][0])]
            best = [match for match in best if len(match[1]) == len(best[0][1])]
            found = [Reading(n, x != clause.is_exchanged, 1.0, False, m) for _, m, nodes in best for n, x in nodes]
            return tuple(dict.fromkeys(found))
        own = " ".join(forms[0] for forms in clause.words)
        return (Reading(own, clause.is_exchanged, 1.0, False, clause.modifiers, is_listed=False), *self._near(clause))

    def _matched(self, clause: Clause) -> Iterator[tuple[Key, frozenset[str], list[Node]]]:
        """Expressions that stand in a clause with nothing but modifiers beside."""
        words = clause.words
        starts = range(len(words)) if clause.is_nominal else range(1)
        for start in starts:
            if any(forms[0] in LINKS or forms[0] == OTHER for forms in words[:start]):
                return
            for form in words[start]:
                if start and form in LINKS:
                    continue
                for key, nodes in self._keys.get(form, {}).items():
                    skipped = _skipped(key, words[start:])
                    if skipped is not None:
                        beside = [*(forms[0] for forms in words[:start]), *skipped]
                        yield key, clause.modifiers.union(beside), nodes

    def _near(self, clause: Clause) -> Iterator[Reading]:
        """By synonyms and more general words of the first word, beside the same prepositions."""
        heads = self._by_shape.get(tuple(forms[0] for forms in clause.words[1:]), {})
        word = clause.words[0][-1]
        best: dict[Node, Reading] = {}
        for head, nodes in heads.items():
            same, kind = self._words.sameness(word, head), self._words.hypernymy(word, head)
            is_kind = same < _LEAST_SAME
            strength = kind if is_kind else same
            if strength < (_LEAST_KIND if is_kind else _LEAST_SAME):
                continue
            for name, exchanged in nodes:
                own = Reading(name, exchanged != clause.is_exchanged, strength, is_kind, clause.modifiers, word)
                key = (name, own.is_exchanged)
                if key not in best or (best[key].is_kind, -best[key].strength) > (is_kind, -strength):
                    best[key] = own
        yield from best.values()


def _skipped(key: Key, words: Sequence[tuple[str, ...]]) -> list[str] | None:
    """What a clause says beside an expression; None where it does not say it, or says it of something else."""
    skipped = []
    place = 0
    met_other = False
    for forms in words:
        if place < len(key) and key[place] in forms:
            place += 1
        elif forms[0] == OTHER or (forms[0] in LINKS and not met_other):
            return None
        else:
            skipped.append(forms[0])
        met_other = met_other or forms[0] == OTHER
    return [word for word in skipped if word not in LINKS] if place == len(key) else None


def _row(line: str) -> Row:
    columns = [column.strip() for column in line.split("|")]
    if not 2 <= len(columns) <= _COLUMNS:
        raise ValueError(f"expected name | expressions | what follows | what was before, got {line.strip()!r}")
    columns += [""] * (_COLUMNS - len(columns))
    expressions, follows, before = ([part.strip() for part in c.split(";") if part.strip()] for c in columns[1:])
    return columns[0], expressions, follows, before


def _closure(rows: Sequence[Row]) -> tuple[dict[str, dict[Node, Step]], dict[str, dict[Node, bool]]]:
    """What follows from each relation, by the fewest steps, what holds still before what was; and what each excludes.

    What is excluded stands behind an exclamation mark; its value is whether it is only over.
    """
    edges: dict[str, list[tuple[Node, bool]]] = {name: [] for name, *_ in rows}
    excluded: dict[str, dict[Node, bool]] = {name: {} for name in edges}
    for name, expressions, follows, before in rows:
        for target, was_before in (*((t, False) for t in follows), *((t, True) for t in before)):
            plain = target.removeprefix("!")
            node = (plain.removeprefix("~"), plain.startswith("~"))
            if node[0] not in edges:
                raise ValueError(f"{name}: expected a relation of the table, got {node[0]!r}")
            if plain != target:
                excluded[name][node] = was_before
            else:
                edges[name].append((node, was_before))
        if any(e.startswith("~") and e[1:] in expressions for e in expressions):
            edges[name].append(((name, True), False))  # symmetric
    return {name: _reached_from(name, edges) for name in edges}, excluded


def _reached_from(start: str, edges: Mapping[str, Sequence[tuple[Node, bool]]]) -> dict[Node, Step]:
    found: dict[Node, Step] = {}
    # Twice: what is reached without going back in time comes first.
    for may_go_back in (False, True):
        waiting: list[tuple[Node, Step]] = [((start, False), Step((start,), False))]
        seen: set[tuple[Node, bool]] = set()
        for (name, exchanged), step in waiting:
            for (target, flips), was_before in edges[name]:
                node = (target, exchanged != flips)
                behind = Step((*step.path, target), step.was_before or was_before)
                if (node, behind.was_before) in seen or (was_before and not may_go_back):
                    continue
                seen.add((node, behind.was_before))
                found.setdefault(node, behind)
                waiting.append((node, behind))
    return found


def _spoken(reading: Reading) -> str:
    return reading.word if reading.word and not reading.is_kind else reading.name.removesuffix(f" {OTHER}")


def _reason(own: Reading, other: Reading, step: Step) -> str:
    start = f"{own.word} is a kind of {own.name}" if own.is_kind else _spoken(own)
    if own.name == other.name:
        return start if own.is_kind else f"both say {_spoken(own)}"
    joint = ", so before it " if step.was_before else ", so "
    return f"{start}{joint}{_spoken(other)}"


def _apart_reason(own: Reading, other: Reading, *, exchanged: bool) -> str:
    if exchanged:
        return f"{_spoken(own)} with the arguments exchanged"
    return f"{_spoken(own)} without {_spoken(other)} is possible"


@cache
def frames() -> Frames:
    """The table that comes with the library, read once.

    Raises:
        CheckpointError: The installation is damaged.
    """
    try:
        return Frames(_FILE.read_text(encoding="ascii").splitlines(), wordnet())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{_FILE}: cannot be read, install the library again: {error}") from error
