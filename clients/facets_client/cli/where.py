"""Payload conditions as people type them: ``year>=1990``, ``language=en``."""

import json
import re
from collections.abc import Sequence
from typing import Annotated

import typer

from facets_client.filters import AllOf, Contains, Equals, Exists, Filter, NoneOf, OneOf, Range, Scalar

__all__ = ["WhereOption", "parse_where"]

_CONDITION = re.compile(r"(?P<field>[^=!<>~]+?)\s*(?P<operator>!=|<=|>=|=|<|>|~)\s*(?P<value>.*)", re.S)
_BOUNDS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}

WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        "-w",
        metavar="CONDITION",
        help="FIELD=VALUE, !=, <, <=, >, >=; FIELD=A|B: one of these; FIELD~VALUE: list has it; FIELD: is there; "
        "!FIELD: is missing. Repeat for all of several.",
        show_default=False,
    ),
]


def parse_where(conditions: Sequence[str] | None) -> Filter | None:
    """All conditions together; None without any.

    A value that reads as a JSON number, true, false or null is one; anything else is a string, and so is
    whatever stands in double quotes.
    """
    if not conditions:
        return None
    parsed = tuple(_parse(condition.strip()) for condition in conditions)
    return parsed[0] if len(parsed) == 1 else AllOf(parsed)


def _parse(condition: str) -> Filter:
    found = _CONDITION.fullmatch(condition)
    if not found:
        field = condition.removeprefix("!").strip()
        if not field or not re.fullmatch(r"[^=!<>~\s]+", field):
            raise typer.BadParameter(f"--where expects FIELD=VALUE or the like, got {condition!r}")
        return Exists(field, not condition.startswith("!"))
    field, operator, value = found["field"], found["operator"], found["value"]
    if operator in _BOUNDS:
        return _range(field, operator, value)
    if operator == "~":
        return Contains(field, _scalar(value))
    values = _alternatives(value)
    equal: Filter = Equals(field, values[0]) if len(values) == 1 else OneOf(field, values)
    return equal if operator == "=" else NoneOf((equal,))


def _range(field: str, operator: str, value: str) -> Filter:
    bound = _scalar(value)
    if bound is None or isinstance(bound, bool):
        raise typer.BadParameter(f"--where {field}{operator} expects a number or a string, got {value!r}")
    return Range(field, **{_BOUNDS[operator]: bound})


def _alternatives(value: str) -> list[Scalar]:
    return [_scalar(value)] if value.startswith('"') else [_scalar(part) for part in value.split("|")]


def _scalar(text: str) -> Scalar:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str | int | float | bool | None) else text
