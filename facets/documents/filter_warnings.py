"""Warnings about likely mistakes in a filter: unknown fields, and values whose type differs from the documents'.

Such a filter is valid but finds nothing. Only a limited number of documents is examined, so that this takes
milliseconds in a collection of any size; results are cached until the collection is written.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from facets.documents.filters import AllOf, AnyOf, Contains, Equals, Exists, Filter, NoneOf, OneOf, Range, Scalar
from facets.documents.records import CollectionRecord
from facets.documents.types import FilterWarning
from facets.documents.view import StoreView
from facets.language.near_names import NearNames

_MAX_DOCUMENTS = 5_000  # documents whose values are examined
_MAX_NAMING_DOCUMENTS = 500  # documents whose field names are suggested for an unknown one
_CACHE_SIZE = 256
_KIND_OF_SQLITE_TYPE = {
    **{"integer": "numbers", "real": "numbers", "text": "strings", "true": "booleans", "false": "booleans"},
    **{"null": "null", "array": "lists", "object": "objects"},
}
_KIND_OF_TYPE = _KIND_OF_SQLITE_TYPE | {"number": "numbers", "string": "strings", "boolean": "booleans"}  # PostgreSQL
_KIND_OF_PYTHON_TYPE = {bool: "booleans", int: "numbers", float: "numbers", str: "strings", type(None): "null"}


class FilterChecker:
    """Finds likely mistakes in filters; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache: OrderedDict[tuple[int, int, str], frozenset[str]] = OrderedDict()

    def warnings(self, view: StoreView, record: CollectionRecord, where: Filter | None) -> tuple[FilterWarning, ...]:
        """At most one warning for each use of a field, in the order of the filter."""
        if where is None or not record.num_documents:
            return ()
        warnings = (self._warning(view, record, *use) for use in dict.fromkeys(_uses(where)))
        return tuple(warning for warning in warnings if warning is not None)

    def _warning(
        self, view: StoreView, record: CollectionRecord, field: str, expected: frozenset[str]
    ) -> FilterWarning | None:
        found = self._kinds(view, record, field)
        if not found:
            documents = "no document has" if record.num_documents <= _MAX_DOCUMENTS else "no examined document has"
            near = NearNames(names := view.field_names(record, _MAX_NAMING_DOCUMENTS)).find(field, top_k=1)
            hint = f": did you mean {names[near[0]]!r}?" if near else ""
            return FilterWarning(field=field, message=f"{documents} a field {field!r}{hint}")
        if not expected or expected & found:
            return None
        found_kinds, expected_kinds = (" and ".join(sorted(kinds)) for kinds in (found, expected))
        message = f"{field!r} is compared with {expected_kinds}, the documents contain {found_kinds}"
        return FilterWarning(field=field, message=message)

    def _kinds(self, view: StoreView, record: CollectionRecord, field: str) -> frozenset[str]:
        key = (record.number, record.revision, field)
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        kinds = frozenset(_KIND_OF_TYPE[name] for name in view.json_types(record, field, _MAX_DOCUMENTS))
        with self._lock:
            self._cache[key] = kinds
            while len(self._cache) > _CACHE_SIZE:
                self._cache.popitem(last=False)
        return kinds


def _uses(filter: Filter) -> Iterator[tuple[str, frozenset[str]]]:
    """Each use of a field in a filter, with the kinds of values that it expects; no kinds: any."""
    match filter:
        case AllOf(filters) | AnyOf(filters) | NoneOf(filters):
            for inner in filters:
                yield from _uses(inner)
        case Exists(field):
            yield field, frozenset()
        case Contains(field, _):
            yield field, frozenset({"lists"})
        case Equals(field, value):
            yield field, _kinds_of([value])
        case OneOf(field, values):
            yield field, _kinds_of(values)
        case Range(field):
            bounds = [filter.gt, filter.gte, filter.lt, filter.lte]
            yield field, _kinds_of([bound for bound in bounds if bound is not None])


def _kinds_of(values: Sequence[Scalar]) -> frozenset[str]:
    return frozenset(_KIND_OF_PYTHON_TYPE[type(value)] for value in values)
