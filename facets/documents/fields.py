"""Fields of the payload that are searched with the text: its title, its subject, whatever a collection names.

Words of a field count as often as its weight says (simple BM25F: one saturation for all fields of a document), so the
lexical index needs to know no fields.

References:
    Robertson, Zaragoza and Taylor 2004, "Simple BM25 extension to multiple weighted fields".
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from facets.documents.filters import is_path
from facets.documents.types import JsonValue
from facets.errors import ErrorPath, InvalidInputError

DEFAULT_SEARCH_FIELDS: Mapping[str, float] = dict.fromkeys(("title", "subject", "headline", "heading", "name"), 2.0)
"""What is searched unless a collection says otherwise; the weight was chosen by words alone, see docs/use/search.md."""
MAX_SEARCH_FIELDS = 32
MAX_FIELD_WEIGHT = 100.0


@dataclass(frozen=True, slots=True)
class FieldText:
    """A value of a field of one document.

    Attributes:
        name: Of the field, as the collection names it.
        text: The value; never blank.
        weight: How often its words count.
    """

    name: str
    text: str
    weight: float


def check_search_fields(fields: Mapping[str, float], *, path: ErrorPath = ("search_fields",)) -> dict[str, float]:
    """Fields and weights as a collection keeps them.

    Raises:
        InvalidInputError: More than ``MAX_SEARCH_FIELDS``, a name that is no path of keys joined by dots, a weight that
            is not above 0 and at most ``MAX_FIELD_WEIGHT``.
    """
    if len(fields) > MAX_SEARCH_FIELDS:
        raise InvalidInputError(f"has {len(fields)} items, the limit is {MAX_SEARCH_FIELDS}", path=path)
    for place, (name, weight) in enumerate(fields.items()):
        if not is_path(name):
            rule = f"must be keys joined by dots, without quotes or backslashes, got {name!r}"
            raise InvalidInputError(rule, path=(*path, place, "name"))
        if not (math.isfinite(weight) and 0 < weight <= MAX_FIELD_WEIGHT):
            rule = f"must be above 0 and at most {MAX_FIELD_WEIGHT:g}, got {weight:g}"
            raise InvalidInputError(rule, path=(*path, place, "weight"))
    return {name: float(weight) for name, weight in fields.items()}


def field_texts(payload: Mapping[str, JsonValue], fields: Mapping[str, float]) -> tuple[FieldText, ...]:
    """What a document says in the fields that are searched, in the order of the fields.

    Strings count as they are, numbers as they are written, the items of a list one by one; null, truth values, objects
    and lists in lists say nothing. Dots reach into objects, upper and lower case are the same where no key is equal.

    Example:
        >>> found = field_texts({"Title": "On bees", "tags": ["honey", 7, None]}, {"title": 2.0, "tags": 1.0})
        >>> [(one.name, one.text) for one in found]
        [('title', 'On bees'), ('tags', 'honey'), ('tags', '7')]
    """
    if not payload or not fields:
        return ()
    return tuple(
        FieldText(name, text, weight) for name, weight in fields.items() for text in _texts(_lookup(payload, name))
    )


def searched_texts(
    payload: Mapping[str, JsonValue], fields: Mapping[str, float], text: str, headings: Sequence[str]
) -> tuple[FieldText, ...]:
    """What is searched with the text of a part: the fields, and the headings above that do not stand in it."""
    above = tuple(FieldText("headings", one, 1.0) for one in headings if one.strip() and one not in text)
    return field_texts(payload, fields) + above


def _lookup(payload: Mapping[str, JsonValue], path: str) -> object:
    value: object = payload
    for key in path.split("."):
        if not isinstance(value, Mapping):
            return None
        if key not in value:
            wanted = key.casefold()
            key = next((other for other in value if other.casefold() == wanted), key)
        value = value.get(key)
    return value


def _texts(value: object) -> Iterator[str]:
    items: Sequence[object] = value if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if isinstance(item, str) and item.strip():
            yield item
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            yield f"{item:.15g}" if isinstance(item, float) else str(item)
