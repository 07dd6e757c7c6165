"""Numbers, measures, times and dates of a sentence, so that equal ones are equal: ``2 kg`` and ``two kilograms``."""

import re
from collections.abc import Sequence
from enum import StrEnum

from facets.language import lexicon

_IS_NUMBER = re.compile(r"^\d[\d,]*(?:\.\d+)?$")
_IS_TIME = re.compile(r"^(\d{1,2}):(\d{2})$")
_IS_YEAR = re.compile(r"^(1[0-9]|20)\d\d$")
_IS_ORDINAL = re.compile(r"^(\d+)(?:st|nd|rd|th)$")
_AFTER_DAY = 2  # a day of the month stands so near its month


class ValueKind(StrEnum):
    """What two sentences cannot both say differently of the same thing."""

    NUMBER = "number"
    TIME = "time"  # of the day
    DAY = "day"  # of the month
    WEEKDAY = "weekday"
    MONTH = "month"
    YEAR = "year"
    RELATIVE_DAY = "relative_day"
    SEASON = "season"
    COLOUR = "colour"


def values_of(forms: Sequence[str]) -> dict[int, tuple[ValueKind, str]]:
    """Numbers and dates by place; a further part of a number has an empty value."""
    found: dict[int, tuple[ValueKind, str]] = {}
    place = 0
    while place < len(forms):
        length, kind, value = _value_at(forms, place)
        if kind is not None:
            found[place] = (kind, value)
            found |= dict.fromkeys(range(place + 1, place + length), (ValueKind.NUMBER, ""))
        place += max(1, length)
    return found


def _value_at(forms: Sequence[str], place: int) -> tuple[int, ValueKind | None, str]:
    form = forms[place]
    before = forms[place - 1] if place else ""
    after = forms[place + 1] if place + 1 < len(forms) else ""
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
    return _number_at(forms, place)


def _number_at(forms: Sequence[str], place: int) -> tuple[int, ValueKind | None, str]:
    form = forms[place]
    near = [*forms[max(0, place - _AFTER_DAY) : place], *forms[place + 1 : place + 1 + _AFTER_DAY]]
    near_month = any(other in lexicon.MONTHS or other in lexicon.AMBIGUOUS_MONTHS for other in near)
    match = _IS_ORDINAL.match(form)
    ordinal = match[1] if match else lexicon.ORDINALS.get(form, "")
    if ordinal and near_month:
        return 1, ValueKind.DAY, ordinal
    if match or (ordinal and form not in ("first", "second")):  # "at first", "a second"
        return 1, ValueKind.NUMBER, f"#{ordinal}"
    if _IS_YEAR.match(form) and not (place + 1 < len(forms) and forms[place + 1] in lexicon.UNITS):
        return 1, ValueKind.YEAR, form
    length, number = _quantity(forms, place)
    if number is None:
        return 1, None, ""
    after = forms[place + length] if place + length < len(forms) else ""
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


def _quantity(forms: Sequence[str], place: int) -> tuple[int, float | None]:
    """Tokens of the number that begins here, and the number."""
    form = forms[place]
    total: float | None = None
    if _IS_NUMBER.match(form):
        total = float(form.replace(",", ""))
    elif form in lexicon.NUMBERS:
        total = lexicon.NUMBERS[form]
    elif form in lexicon.SPECIAL and form != "once":
        total = lexicon.SPECIAL[form]
    elif form in lexicon.SCALES and place and forms[place - 1] in ("a", "one", "several"):
        total = lexicon.SCALES[form]
    elif "-" in form and all(part in lexicon.NUMBERS for part in form.split("-")):
        total = sum(lexicon.NUMBERS[part] for part in form.split("-"))
    if total is None:
        return 1, None
    length = 1
    while place + length < len(forms):
        following = forms[place + length]
        if following in lexicon.SCALES:
            total *= lexicon.SCALES[following]
        elif (
            following in lexicon.NUMBERS and total >= 20 and total % 10 == 0 and lexicon.NUMBERS[following] < 10 < total
        ):
            total += lexicon.NUMBERS[following]
        elif (
            following == "-"
            and place + length + 1 < len(forms)
            and forms[place + length + 1] in lexicon.NUMBERS
            and total in range(20, 100, 10)
        ):
            total += lexicon.NUMBERS[forms[place + length + 1]]
            length += 1
        else:
            break
        length += 1
    return length, total
