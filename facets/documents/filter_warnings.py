"""What is odd about a filter: fields that no document has, values of another type than those of the documents.

Such a filter is no error, it finds nothing. Only so many documents are looked at that it takes milliseconds in a
collection of any size, and what was found is remembered until the collection is written.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets.documents.filters import AllOf, AnyOf, Contains, Equals, Exists, Filter, NoneOf, OneOf, Range, Scalar
from facets.documents.records import CollectionRecord
from facets.documents.types import FilterWarning
from facets.documents.views import StoreView
from facets.language.near_names import NearNames

_LOOKED_AT = 5_000  # documents whose values are looked at
_NAMED = 500  # documents whose fields are proposed for one that is not there
_REMEMBERED = 256  # fields
_KINDS = {
    **{"integer": "numbers", "real": "numbers", "text": "strings", "true": "truth values", "false": "truth values"},
    **{"number": "numbers", "string": "strings", "boolean": "truth values"},  # so PostgreSQL calls them
    **{"null": "null", "array": "lists", "object": "objects"},
}


@dataclass(frozen=True, slots=True)
class _Use:
    """What a filter expects of a field: values of these kinds; a list is asked for by one kind."""

    field: str
    kinds: frozenset[str]


class FilterChecker:
    """Finds what is odd about filters; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._remembered: OrderedDict[tuple[int, int, str], frozenset[str]] = OrderedDict()

    def warnings(self, view: StoreView, record: CollectionRecord, where: Filter | None) -> tuple[FilterWarning, ...]:
        """Each odd use of a field once, in the order of the filter.

        ``where``: checked; None: nothing is odd.
        """
        if where is None or not record.num_documents:
            return ()
        found = (self._warning(view, record, use) for use in dict.fromkeys(_uses(where)))
        return tuple(warning for warning in found if warning is not None)

    def _warning(self, view: StoreView, record: CollectionRecord, use: _Use) -> FilterWarning | None:
        held = self._kinds(view, record, use.field)
        if not held:
            seen = "no document" if record.num_documents <= _LOOKED_AT else f"none of {_LOOKED_AT} documents looked at"
            near = NearNames(names := view.field_names(record, _NAMED)).find(use.field, top_k=1)
            hint = f": did you mean {names[near[0]]!r}?" if near else ""
            return FilterWarning(field=use.field, message=f"{seen} has a field {use.field!r}{hint}")
        if not use.kinds or use.kinds & held:
            return None
        has, asked = (" and ".join(sorted(kinds)) for kinds in (held, use.kinds))
        return FilterWarning(
            field=use.field, message=f"{use.field!r} is compared with {asked}, the documents have {has} there"
        )

    def _kinds(self, view: StoreView, record: CollectionRecord, field: str) -> frozenset[str]:
        key = (record.number, record.revision, field)
        with self._lock:
            if key in self._remembered:
                self._remembered.move_to_end(key)
                return self._remembered[key]
        held = frozenset(_KINDS[name] for name in view.json_types(record, field, _LOOKED_AT))
        with self._lock:
            self._remembered[key] = held
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
        return held


def _uses(filter: Filter) -> Iterator[_Use]:
    match filter:
        case AllOf(filters) | AnyOf(filters) | NoneOf(filters):
            for inner in filters:
                yield from _uses(inner)
        case Exists(path):
            yield _Use(path, frozenset())
        case Contains(path, _):
            yield _Use(path, frozenset({"lists"}))
        case Equals(path, value):
            yield _Use(path, _kinds_of([value]))
        case OneOf(path, values):
            yield _Use(path, _kinds_of(values))
        case Range():
            bounds = [filter.gt, filter.gte, filter.lt, filter.lte]
            yield _Use(filter.field, _kinds_of([bound for bound in bounds if bound is not None]))


def _kinds_of(values: Sequence[Scalar]) -> frozenset[str]:
    names = {bool: "true", int: "integer", float: "real", str: "text", type(None): "null"}
    return frozenset(_KINDS[names[type(value)]] for value in values)
