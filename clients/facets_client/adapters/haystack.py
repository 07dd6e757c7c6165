"""Haystack: a component that searches a collection, and conversion of Haystack's documents (extra ``haystack``).

Example:
    >>> from facets_client.adapters.haystack import FacetsRetriever
    >>> FacetsRetriever("wiki", top_k=3).run("how vaccines protect against disease")  # doctest: +SKIP
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Self, cast

from facets_client.core.extras import require_extra

require_extra("haystack", "haystack")
from haystack import Document as HaystackDocument  # noqa: E402
from haystack import component, default_from_dict, default_to_dict  # noqa: E402
from haystack.utils import Secret, deserialize_secrets_inplace  # noqa: E402

from facets_client.adapters.retrieval import HIT_KEY, metadata_of  # noqa: E402
from facets_client.client import FacetsClient  # noqa: E402
from facets_client.core.channel import DEFAULT_TARGET  # noqa: E402
from facets_client.filters import AllOf, AnyOf, Equals, Exists, Filter, NoneOf, OneOf, Range  # noqa: E402
from facets_client.generated.types import Document, SearchMode  # noqa: E402


@component
class FacetsRetriever:
    """Searches a collection. A hit's payload is ``meta``, with scores and answer under ``facets_hit``.

    The first run connects to ``target``, ``HOST:PORT`` of the server. ``filters`` are Haystack's, on ``meta``; other
    arguments: see ``FacetsClient.search``.
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
        self._target = target
        self._api_key = api_key
        self._filters = filters
        self._settings = {"top_k": top_k, "mode": mode, "min_confidence": min_confidence, "diversify": diversify}
        self._client: FacetsClient | None = None

    @component.output_types(documents=list[HaystackDocument])  # type: ignore[untyped-decorator]
    def run(
        self, query: str, *, top_k: int | None = None, filters: dict[str, object] | None = None
    ) -> dict[str, list[HaystackDocument]]:
        """Finds documents, best first; ``top_k`` and ``filters`` replace the component's."""
        if self._client is None:
            key = self._api_key.resolve_value() if self._api_key else None
            self._client = FacetsClient(self._target, api_key=key)
        chosen = self._filters if filters is None else filters
        settings: dict[str, Any] = {**self._settings, "where": from_haystack_filters(chosen) if chosen else None}
        if top_k is not None:
            settings["top_k"] = top_k
        hits = self._client.search(self._collection, [query], **settings)[0].hits
        documents = [
            HaystackDocument(id=hit.id, content=hit.text, meta=metadata_of(hit), score=hit.score) for hit in hits
        ]
        return {"documents": documents}

    def to_dict(self) -> dict[str, object]:
        """The component in the form that a pipeline stores."""
        key = self._api_key.to_dict() if self._api_key else None
        parameters = {"collection": self._collection, "target": self._target, "api_key": key, "filters": self._filters}
        return cast("dict[str, object]", default_to_dict(self, **parameters, **self._settings))

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Self:
        """The component restored from a stored pipeline."""
        deserialize_secrets_inplace(data["init_parameters"], keys=["api_key"])
        return cast(Self, default_from_dict(cls, data))


def from_haystack(documents: Iterable[HaystackDocument]) -> Iterator[Document]:
    """Converts Haystack's documents for storing: ``meta`` becomes the payload; those without a text are left out."""
    for document in documents:
        if document.content:
            payload = {key: value for key, value in document.meta.items() if key != HIT_KEY}
            yield Document(document.id, document.content, payload)


_BOUNDS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}


def from_haystack_filters(filters: Mapping[str, object]) -> Filter:
    """Converts Haystack's filters: comparisons, and ``AND``, ``OR``, ``NOT`` over ``conditions``.

    A field is named ``meta.NAME`` or ``NAME``. ValueError for another filter, or a value that cannot be compared.

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
        if operator in _BOUNDS and isinstance(value, int | float | str | date) and not isinstance(value, bool):
            return Range(field, **{_BOUNDS[operator]: value})
    raise ValueError(f"cannot convert the filter {filters!r}: expected field, operator and value, or conditions")
