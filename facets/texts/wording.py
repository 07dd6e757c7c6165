"""Parses a sentence word by word: content words with their polarity, numbers, dates, quantifiers and roles.

Verbs that imply their complement ("managed to") get little weight.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from facets.language import lexicon
from facets.language.negation import negations
from facets.language.tokenizer import Token
from facets.language.wordnet import WordNet, wordnet

_IS_NUMBER = re.compile(r"^\d[\d,]*(?:\.\d+)?$")
_IS_TIME = re.compile(r"^(\d{1,2})(?::(\d{2}))?$")
_IS_YEAR = re.compile(r"^(1[0-9]|20)\d\d$")
_IS_ORDINAL = re.compile(r"^(\d+)(?:st|nd|rd|th)$")
_BEFORE_VERBS = lexicon.BE | lexicon.HAVE | lexicon.DO | lexicon.MODALS | {"to"}
_NEAR_MONTH = 2  # most tokens between a day and its month


class ValueKind(StrEnum):
    """Kinds of values; one thing has only one value of each kind."""

    NUMBER = "number"
    TIME = "time"  # time of day
    DAY = "day"  # day of the month
    WEEKDAY = "weekday"
    MONTH = "month"
    YEAR = "year"
    RELATIVE_DAY = "relative_day"
    SEASON = "season"
    COLOUR = "colour"


def values_of(forms: Sequence[str]) -> dict[int, tuple[ValueKind, str]]:
    """Numbers and dates by token index; the second and later tokens of a number have an empty value."""
    values: dict[int, tuple[ValueKind, str]] = {}
    i = 0
    while i < len(forms):
        length, kind, value = _value_at(forms, i)
        if kind is not None:
            values[i] = (kind, value)
            values |= dict.fromkeys(range(i + 1, i + length), (ValueKind.NUMBER, ""))
        i += max(1, length)
    return values


def _value_at(forms: Sequence[str], i: int) -> tuple[int, ValueKind | None, str]:
    form = forms[i]
    before = forms[i - 1] if i else ""
    after = forms[i + 1] if i + 1 < len(forms) else ""
    if time := _time_at(form, before, after):
        return 1 + (after in lexicon.TIME_SUFFIXES), ValueKind.TIME, time
    if form in lexicon.MONTHS or (
        form in lexicon.AMBIGUOUS_MONTHS
        and (before in lexicon.BEFORE_MONTH or before[:1].isdigit() or after[:1].isdigit())
    ):
        return 1, ValueKind.MONTH, lexicon.MONTHS.get(form) or lexicon.AMBIGUOUS_MONTHS[form]
    if form in lexicon.WEEKDAYS:
        return 1, ValueKind.WEEKDAY, lexicon.WEEKDAYS[form]
    if form in lexicon.RELATIVE_DAYS:
        return 1, ValueKind.RELATIVE_DAY, lexicon.RELATIVE_DAYS[form]
    if form in lexicon.COLOURS:
        return 1, ValueKind.COLOUR, form.replace("gray", "grey")
    if form in lexicon.SEASONS and before in ("in", "last", "next", "this", "the"):
        return 1, ValueKind.SEASON, "autumn" if form == "fall" else form
    return _number_at(forms, i)


def _time_at(form: str, before: str, after: str) -> str:
    """A time of day on the 12-hour clock, with am or pm if the text tells; empty: it is none.

    "At six" is a time, but "at six hotels" is not.
    """
    if form in lexicon.CLOCK:
        return lexicon.CLOCK[form]
    match = _IS_TIME.match(form)
    hour = int(match[1]) if match else int(lexicon.NUMBERS.get(form, 99))
    ends = not after[:1].isalnum() or after in lexicon.FUNCTION_WORDS or after in lexicon.RELATIVE_DAYS
    is_time = bool(match and match[2]) or after in lexicon.TIME_SUFFIXES or (before == "at" and ends)
    if not is_time or hour > 24:
        return ""
    half = after if after in ("am", "pm") else "am" if hour in (0, 24) else "pm" if hour > 12 else ""
    return f"{(hour - 1) % 12 + 1}:{match[2] if match and match[2] else '00'} {half}".rstrip()


def _number_at(forms: Sequence[str], i: int) -> tuple[int, ValueKind | None, str]:
    form = forms[i]
    near = [*forms[max(0, i - _NEAR_MONTH) : i], *forms[i + 1 : i + 1 + _NEAR_MONTH]]
    near_month = any(other in lexicon.MONTHS or other in lexicon.AMBIGUOUS_MONTHS for other in near)
    match = _IS_ORDINAL.match(form)
    ordinal = match[1] if match else lexicon.ORDINALS.get(form, "")
    if ordinal and near_month:
        return 1, ValueKind.DAY, ordinal
    if match or (ordinal and form not in ("first", "second")):  # "at first", "a second"
        return 1, ValueKind.NUMBER, f"#{ordinal}"
    if _IS_YEAR.match(form) and not (i + 1 < len(forms) and forms[i + 1] in lexicon.UNITS):
        return 1, ValueKind.YEAR, form
    length, number = _quantity(forms, i)
    if number is None:
        return 1, None, ""
    after = forms[i + length] if i + length < len(forms) else ""
    if near_month and length == 1 and number < 32 and form[0].isdigit():
        return 1, ValueKind.DAY, f"{number:g}"
    if after in lexicon.UNITS:
        dimension, factor = lexicon.UNITS[after]
        return length + 1, ValueKind.NUMBER, f"{float(f'{number * factor:.3g}'):g} {dimension}"
    if form in ("half", "one") and after in ("of", "the", "who", "that", ""):
        return (length, ValueKind.NUMBER, "0.5 share") if form == "half" else (1, None, "")
    return length, ValueKind.NUMBER, f"{number:g}"


def _quantity(forms: Sequence[str], i: int) -> tuple[int, float | None]:
    """How many tokens the number that starts at token ``i`` has, and its value."""
    form = forms[i]
    total = lexicon.NUMBERS.get(form, lexicon.SPECIAL.get(form))
    if _IS_NUMBER.match(form):
        total = float(form.replace(",", ""))
    elif form in lexicon.SCALES and i and forms[i - 1] in ("a", "one", "several"):
        total = lexicon.SCALES[form]
    if total is None:
        return 1, None
    length = 1
    while i + length < len(forms):
        step = 2 if forms[i + length] == "-" else 1  # "twenty-one"
        following = "".join(forms[i + length + step - 1 : i + length + step])
        if following in lexicon.SCALES and step == 1:
            total *= lexicon.SCALES[following]
        elif total >= 20 and total % 10 == 0 and lexicon.NUMBERS.get(following, 10.0) < 10:
            total += lexicon.NUMBERS[following]
        else:
            break
        length += step
    return length, total


MAX_TOKENS = 128  # tokens of a sentence that are compared word by word; the rest is ignored


@dataclass(frozen=True, slots=True)
class Cue:
    """A negation cue and its position in the text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Word:
    """A word to compare."""

    text: str  # lower case
    token: int  # index of its token in the sentence
    start: int  # offset of its first character in the text
    end: int  # offset after its last character
    cues: tuple[Cue, ...] = ()  # cues that negate it
    weak: bool = False  # a pronoun, a light verb or an implicative verb, which says little
    is_verb: bool = False
    preposition: str = ""  # the preposition of its phrase, e.g. `in`, or an empty string
    kind: ValueKind | None = None  # set for numbers and dates
    value: str = ""  # normalized value of a number or date

    def has_same_value(self, other: "Word") -> bool:
        """Whether two numbers or dates are equal; "at six" may be 6 am or 6 pm."""
        (value, _, unit), (other_value, _, other_unit) = self.value.partition(" "), other.value.partition(" ")
        is_open = self.kind is ValueKind.TIME and not (unit and other_unit)
        return self.kind is other.kind and value == other_value and (is_open or unit == other_unit)

    @property
    def negated(self) -> bool:
        """Whether an odd number of cues negates it."""
        return len(self.cues) % 2 == 1


@dataclass(frozen=True, slots=True)
class Marker:
    """A preposition, quantifier or modal verb; ``value`` is its class."""

    text: str
    kind: str
    value: str
    token: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Wording:
    """A parsed sentence."""

    words: tuple[Word, ...]  # the words that are compared, in order
    markers: tuple[Marker, ...]  # in order
    passive_verbs: frozenset[int]  # tokens of passive participles that have an agent after `by`
    indefinite: bool  # whether it introduces its subject: "A man is playing", "There is no man playing"


def read_wording(tokens: Sequence[Token]) -> Wording:
    """Parses the first ``MAX_TOKENS`` tokens of a sentence."""
    tokens = tokens[:MAX_TOKENS]
    forms = [token.text.lower().replace("\u2019", "'") for token in tokens]
    is_short = [form[-1] == "." and form[0].isalpha() for form in forms]  # "p.m.", "kg."
    forms = [form.replace(".", "") if short else form for form, short in zip(forms, is_short, strict=True)]
    found_negations = negations(forms)
    values = values_of(forms)
    # A capital inside a sentence begins a name, except in headlines, where most words have one.
    capitals = [i for i, token in enumerate(tokens) if i and token.text[0].isupper() and token.text.lower() != "i"]
    names = frozenset(capitals if 2 * len(capitals) < len(tokens) else ())
    verbs = _verbs(forms, wordnet()) - names
    words: list[Word] = []
    for i, (form, token) in enumerate(zip(forms, tokens, strict=True)):
        kind, value = values.get(i, (None, ""))
        continues_number = kind is ValueKind.NUMBER and not value
        if continues_number or (kind is None and not _is_compared(form)):
            continue
        cues = [tokens[negation.cue] for negation in found_negations if i in negation.scope and negation.cue != i]
        words.append(
            Word(
                lexicon.PRONOUNS.get(form, form),
                i,
                token.start,
                token.end,
                cues=tuple(Cue(cue.text.lower(), cue.start, cue.end) for cue in cues),
                weak=kind is None and _is_weak(form),
                is_verb=i in verbs,
                preposition=_preposition(forms, i, verbs),
                kind=kind,
                value=value,
            )
        )
    first, second = ([*forms, "", ""])[:2]
    indefinite = (first in lexicon.INDEFINITE or first in lexicon.NUMBERS) and second != "of"
    return Wording(tuple(words), tuple(_markers(forms, tokens)), _passive_verbs(forms, verbs), indefinite)


def _is_compared(form: str) -> bool:
    return form[0].isalnum() and (form not in lexicon.FUNCTION_WORDS or form in lexicon.PRONOUNS)


@lru_cache(50_000)
def _is_weak(form: str) -> bool:
    is_light = any(lemma[2:] in lexicon.LIGHT for lemma in (*wordnet().lemmas(form), f"x:{form}"))
    return is_light or form in lexicon.PRONOUNS or form in lexicon.IMPLICATIVES


def _verbs(forms: Sequence[str], words: WordNet) -> frozenset[int]:
    """Tokens used as verbs, judging by the word before them."""
    verbs: list[int] = []
    has_subject = False
    for i, form in enumerate(forms):
        if form in lexicon.BORDERS or form in lexicon.RELATIVE:
            has_subject = form in lexicon.RELATIVE
        elif not form.isalpha() or form in lexicon.FUNCTION_WORDS:
            has_subject |= form in lexicon.SUBJECTS
        elif words.is_verb(form) and _may_be_verb(form, forms[i - 1] if i else "", has_subject, words):
            verbs.append(i)
        else:
            has_subject = True
    return frozenset(verbs)


def _may_be_verb(form: str, before: str, has_subject: bool, words: WordNet) -> bool:
    if before in _BEFORE_VERBS:
        return True
    is_marked = before in lexicon.DETERMINERS or before in lexicon.PREPOSITIONS
    return has_subject and not is_marked and (before in lexicon.PRONOUNS or _is_inflected(form, words))


@lru_cache(50_000)
def _is_inflected(form: str, words: WordNet) -> bool:
    lemmas = words.lemmas(form)
    is_changed = form.endswith(("ed", "ing", "s")) or f"v:{form}" not in lemmas
    return is_changed or form in lexicon.SAME_PAST or not any(lemma.startswith("n:") for lemma in lemmas)


def _preposition(forms: Sequence[str], token: int, verbs: frozenset[int]) -> str:
    """The preposition of the phrase that a token belongs to."""
    for before in range(token - 1, max(-1, token - 6), -1):
        form = forms[before]
        if form in lexicon.PREPOSITIONS:
            return form
        if before in verbs or form in lexicon.PHRASE_BORDERS:
            return ""
    return ""


def _passive_verbs(forms: Sequence[str], verbs: frozenset[int]) -> frozenset[int]:
    return frozenset(
        verb
        for verb in verbs
        if any(form in lexicon.BE for form in forms[max(0, verb - 4) : verb]) and "by" in forms[verb + 1 : verb + 12]
    )


def _markers(forms: Sequence[str], tokens: Sequence[Token]) -> Iterator[Marker]:
    for i, form in enumerate(forms):
        following = forms[i + 1] if i + 1 < len(forms) else ""
        last = i
        if (form, following) in lexicon.BOUNDS:
            kind, value, last = "quantifier", lexicon.BOUNDS[form, following], i + 1
        elif form in lexicon.PREPOSITIONS:
            kind, value = "preposition", "" if following and following not in lexicon.BORDERS else lexicon.PARTICLE
        elif form in lexicon.QUANTIFIERS:
            kind, value = "quantifier", lexicon.QUANTIFIERS[form]
        elif form in lexicon.OBLIGING or form == "need" or (form in ("have", "has", "needs") and following == "to"):
            kind, value = "modal", "must"
        elif form in lexicon.PERMITTING:
            kind, value = "modal", "may"
        else:
            continue
        yield Marker(" ".join(forms[i : last + 1]), kind, value, i, tokens[i].start, tokens[last].end)
