"""Warnings about likely mistakes in a filter: unknown fields, and values whose type differs from the documents'.

Such a filter is valid but finds nothing. Only the first documents are examined, so that this takes milliseconds in a
collection of any size.
"""

from collections.abc import Iterator

from facets.documents.filters import AllOf, AnyOf, Contains, Filter, NoneOf, values_of
from facets.documents.records import CollectionRecord
from facets.documents.types import FilterWarning
from facets.documents.view import StoreView

_EXAMINED_DOCUMENTS = 300
_NAMED_DOCUMENTS = 100  # documents whose field names are suggested for an unknown one
_KIND_OF_TYPE = {
    **{"integer": "numbers", "real": "numbers", "text": "strings", "true": "booleans", "false": "booleans"},  # SQLite
    **{"number": "numbers", "string": "strings", "boolean": "booleans"},  # PostgreSQL
    **{"null": "null", "array": "lists", "object": "objects"},
}
_KIND_OF_PYTHON_TYPE = {bool: "booleans", int: "numbers", float: "numbers", str: "strings", type(None): "null"}


def filter_warnings(view: StoreView, record: CollectionRecord, where: Filter | None) -> tuple[FilterWarning, ...]:
    """At most one warning for each use of a field, in the order of the filter."""
    if where is None or not record.num_documents:
        return ()
    warnings = (_warning(view, record, *use) for use in dict.fromkeys(_uses(where)))
    return tuple(warning for warning in warnings if warning is not None)


def _warning(view: StoreView, record: CollectionRecord, field: str, expected: frozenset[str]) -> FilterWarning | None:
    found = {_KIND_OF_TYPE[name] for name in view.json_types(record, field, _EXAMINED_DOCUMENTS)}
    if found and (not expected or expected & found):
        return None
    if not found:
        documents = "no document has" if record.num_documents <= _EXAMINED_DOCUMENTS else "no examined document has"
        from facets.language.near_names import NearNames

        near = NearNames(names := view.field_names(record, _NAMED_DOCUMENTS)).find(field, top_k=1)
        hint = f": did you mean {names[near[0]]!r}?" if near else ""
        return FilterWarning(field=field, message=f"{documents} a field {field!r}{hint}")
    found_kinds, expected_kinds = (" and ".join(sorted(kinds)) for kinds in (found, expected))
    message = f"{field!r} is compared with {expected_kinds}, the documents contain {found_kinds}"
    return FilterWarning(field=field, message=message)


def _uses(filter: Filter) -> Iterator[tuple[str, frozenset[str]]]:
    """Each use of a field in a filter, with the kinds of values that it expects; no kinds: any."""
    match filter:
        case AllOf(filters) | AnyOf(filters) | NoneOf(filters):
            for inner in filters:
                yield from _uses(inner)
        case Contains(field):
            yield field, frozenset({"lists"})
        case _:
            yield filter.field, frozenset(_KIND_OF_PYTHON_TYPE[type(value)] for value in values_of(filter))
