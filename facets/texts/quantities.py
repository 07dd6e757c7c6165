"""Normalizes numbers, measures, times and dates of a sentence: ``2 kg`` and ``two kilograms`` have equal values."""

import re
from collections.abc import Sequence
from enum import StrEnum

from facets.language import lexicon

_IS_NUMBER = re.compile(r"^\d[\d,]*(?:\.\d+)?$")
_IS_TIME = re.compile(r"^(\d{1,2}):(\d{2})$")
_IS_YEAR = re.compile(r"^(1[0-9]|20)\d\d$")
_IS_ORDINAL = re.compile(r"^(\d+)(?:st|nd|rd|th)$")
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
    if match := _IS_TIME.match(form):
        return 1, ValueKind.TIME, f"{int(match[1])}:{match[2]}"
    if form in lexicon.CLOCK:
        return 1, ValueKind.TIME, lexicon.CLOCK[form]
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
    if after in ("o'clock", "am", "pm", "a.m.", "p.m."):
        return length + 1, ValueKind.TIME, f"{number + 12 * (after[0] == 'p' and number < 12):g}:00"
    if after in lexicon.UNITS:
        dimension, factor = lexicon.UNITS[after]
        return length + 1, ValueKind.NUMBER, f"{float(f'{number * factor:.3g}'):g} {dimension}"
    if form in ("half", "one") and after in ("of", "the", "who", "that", ""):
        return (length, ValueKind.NUMBER, "0.5 share") if form == "half" else (1, None, "")
    return length, ValueKind.NUMBER, f"{number:g}"


def _quantity(forms: Sequence[str], i: int) -> tuple[int, float | None]:
    """How many tokens the number that starts at token ``i`` has, and its value."""
    form = forms[i]
    total: float | None = None
    if _IS_NUMBER.match(form):
        total = float(form.replace(",", ""))
    elif form in lexicon.NUMBERS:
        total = lexicon.NUMBERS[form]
    elif form in lexicon.SPECIAL and form != "once":
        total = lexicon.SPECIAL[form]
    elif form in lexicon.SCALES and i and forms[i - 1] in ("a", "one", "several"):
        total = lexicon.SCALES[form]
    elif "-" in form and all(part in lexicon.NUMBERS for part in form.split("-")):
        total = sum(lexicon.NUMBERS[part] for part in form.split("-"))
    if total is None:
        return 1, None
    length = 1
    while i + length < len(forms):
        following = forms[i + length]
        if following in lexicon.SCALES:
            total *= lexicon.SCALES[following]
        elif (
            following in lexicon.NUMBERS and total >= 20 and total % 10 == 0 and lexicon.NUMBERS[following] < 10 < total
        ):
            total += lexicon.NUMBERS[following]
        elif (
            following == "-"
            and i + length + 1 < len(forms)
            and forms[i + length + 1] in lexicon.NUMBERS
            and total in range(20, 100, 10)
        ):
            total += lexicon.NUMBERS[forms[i + length + 1]]
            length += 1
        else:
            break
        length += 1
    return length, total
