"""Haystack: components that search and fill a collection of a Facets server (extra ``haystack``).

Example:
    >>> from facets_client.adapters.haystack import FacetsRetriever
    >>> FacetsRetriever("wiki", top_k=3).run("how vaccines protect against disease")  # doctest: +SKIP
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Self, TypeVar, cast

from facets_client.adapters import require

require("haystack")
from haystack import Document as HaystackDocument  # noqa: E402
from haystack import component, default_from_dict, default_to_dict  # noqa: E402
from haystack.utils import Secret, deserialize_secrets_inplace  # noqa: E402

from facets_client.adapters.retrieval import HIT_KEY, metadata_of  # noqa: E402
from facets_client.client import FacetsClient  # noqa: E402
from facets_client.core.channel import DEFAULT_TARGET  # noqa: E402
from facets_client.filters import AllOf, AnyOf, Equals, Exists, Filter, NoneOf, OneOf, Range  # noqa: E402
from facets_client.generated.types import Document, SearchMode  # noqa: E402

ComponentT = TypeVar("ComponentT")


class _Connection:
    """A component's connection, which opens with the first run, and its parameters as a pipeline stores them."""

    def __init__(self, target: str, api_key: Secret | None, **parameters: object) -> None:
        self._target = target
        self._api_key = api_key
        self._parameters = {**parameters, "target": target, "api_key": api_key.to_dict() if api_key else None}

    @cached_property
    def client(self) -> FacetsClient:
        return FacetsClient(self._target, api_key=self._api_key.resolve_value() if self._api_key else None)

    def to_dict(self, made: object) -> dict[str, object]:
        return cast("dict[str, object]", default_to_dict(made, **self._parameters))


def _from_dict(kind: type[ComponentT], data: dict[str, object]) -> ComponentT:
    deserialize_secrets_inplace(data["init_parameters"], keys=["api_key"])
    return cast(ComponentT, default_from_dict(kind, data))


@component
class FacetsRetriever:
    """Searches a collection. A hit's payload is ``meta``, with scores and answer under ``facets_hit``.

    Args:
        collection: Name of the collection.
        target: ``HOST:PORT`` of the server.
        api_key: Key of the server.
        top_k, mode, min_confidence, diversify: See ``FacetsClient.search``; None: the server's default.
        filters: Haystack's filters on ``meta``; None: all documents.
    """

    def __init__(
        self,
        collection: str,
        *,
        target: str = DEFAULT_TARGET,
        api_key: Secret | None = None,
        top_k: int | None = None,
        mode: SearchMode | None = None,
        filters: Mapping[str, object] | None = None,
        min_confidence: float | None = None,
        diversify: float | None = None,
    ) -> None:
        self._collection = collection
        self._filters = filters
        self._settings = {"top_k": top_k, "mode": mode, "min_confidence": min_confidence, "diversify": diversify}
        self._server = _Connection(target, api_key, collection=collection, filters=filters, **self._settings)

    @component.output_types(documents=list[HaystackDocument])  # type: ignore[untyped-decorator]
    def run(
        self, query: str, *, top_k: int | None = None, filters: dict[str, object] | None = None
    ) -> dict[str, list[HaystackDocument]]:
        """Finds documents, best first; ``top_k`` and ``filters`` replace the component's."""
        settings: dict[str, Any] = {**self._settings, **({} if top_k is None else {"top_k": top_k})}
        chosen = self._filters if filters is None else filters
        found = self._server.client.search(
            self._collection,
            [query],
            where=from_haystack_filters(chosen) if chosen else None,
            **{name: value for name, value in settings.items() if value is not None},
        )
        return {
            "documents": [
                HaystackDocument(id=hit.id, content=hit.text, meta=metadata_of(hit), score=hit.score)
                for hit in found[0].hits
            ]
        }

    def to_dict(self) -> dict[str, object]:
        """The component as a pipeline stores it."""
        return self._server.to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Self:
        """The component of a stored pipeline."""
        return _from_dict(cls, data)


@component
class FacetsWriter:
    """Stores documents in an existing collection, replacing those with the same id.

    Args:
        collection: Name of the collection.
        target: ``HOST:PORT`` of the server.
        api_key: Key of the server.
    """

    def __init__(self, collection: str, *, target: str = DEFAULT_TARGET, api_key: Secret | None = None) -> None:
        self._collection = collection
        self._server = _Connection(target, api_key, collection=collection)

    @component.output_types(documents_written=int)  # type: ignore[untyped-decorator]
    def run(self, documents: list[HaystackDocument]) -> dict[str, int]:
        """Stores the documents that have a text."""
        converted = list(from_haystack(documents))
        written = self._server.client.upsert(self._collection, converted).num_documents if converted else 0
        return {"documents_written": written}

    def to_dict(self) -> dict[str, object]:
        """The component as a pipeline stores it."""
        return self._server.to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Self:
        """The component of a stored pipeline."""
        return _from_dict(cls, data)


def from_haystack(documents: Iterable[HaystackDocument]) -> Iterator[Document]:
    """Converts Haystack's documents for storing: ``meta`` becomes the payload; those without a text are left out."""
    for document in documents:
        if document.content:
            payload = {key: value for key, value in document.meta.items() if key != HIT_KEY}
            yield Document(document.id, document.content, payload)


_BOUNDS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}


def from_haystack_filters(filters: Mapping[str, object]) -> Filter:
    """Converts Haystack's filters.

    Args:
        filters: A comparison (``field``, ``operator``, ``value``) or ``AND``, ``OR``, ``NOT`` over ``conditions``; a
            field is named ``meta.NAME`` or ``NAME``.

    Raises:
        ValueError: It is neither, or its operator cannot compare the value.

    Example:
        >>> from_haystack_filters({"field": "meta.year", "operator": ">=", "value": 1990})
        Range(field='year', gt=None, gte=1990, lt=None, lte=None)
    """
    operator, conditions = filters.get("operator"), filters.get("conditions")
    if operator in ("AND", "OR", "NOT") and isinstance(conditions, Sequence):
        parts = [from_haystack_filters(cast("Mapping[str, object]", condition)) for condition in conditions]
        return AllOf(parts) if operator == "AND" else AnyOf(parts) if operator == "OR" else NoneOf([AllOf(parts)])
    field, value = str(filters.get("field", "")).removeprefix("meta."), cast(Any, filters.get("value"))
    if field and "value" in filters:
        if operator in ("==", "!="):
            equal = AnyOf([Equals(field, None), Exists(field, False)]) if value is None else Equals(field, value)
            return equal if operator == "==" else NoneOf([equal])
        if operator in ("in", "not in") and isinstance(value, list):
            return OneOf(field, value) if operator == "in" else NoneOf([OneOf(field, value)])
        if operator in _BOUNDS and isinstance(value, int | float | str) and not isinstance(value, bool):
            return Range(field, **{_BOUNDS[operator]: value})
    raise ValueError(f"cannot convert the filter {filters!r}: expected field, operator and value, or conditions")
