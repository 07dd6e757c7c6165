"""Haystack: components that search and fill a collection of a Facets server (extra ``haystack``).

Example:
    >>> from facets_client.adapters.haystack import FacetsRetriever
    >>> FacetsRetriever("wiki", top_k=3).run("how vaccines protect against disease")  # doctest: +SKIP
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar, cast

from facets_client.adapters import require

require("haystack")
from haystack import Document as HaystackDocument  # noqa: E402
from haystack import component, default_from_dict, default_to_dict  # noqa: E402
from haystack.utils import Secret, deserialize_secrets_inplace  # noqa: E402

from facets_client.adapters.retrieval import HIT_KEY, Retrieval, metadata_of  # noqa: E402
from facets_client.client import FacetsClient  # noqa: E402
from facets_client.core.channel import DEFAULT_TARGET  # noqa: E402
from facets_client.filters import AllOf, AnyOf, Equals, Exists, Filter, NoneOf, OneOf, Range, Scalar  # noqa: E402
from facets_client.generated.types import Document, SearchHit, SearchMode  # noqa: E402

ComponentT = TypeVar("ComponentT")


class _Server:
    """What a component keeps of its server: plain values, so that pipelines can be written as YAML.

    The connection opens with the first run. Not a base class: Haystack makes every component's class anew.
    """

    def __init__(self, target: str, api_key: Secret | None) -> None:
        self.settings = {"target": target, "api_key": api_key.to_dict() if api_key else None}
        self._target = target
        self._api_key = api_key
        self._client: FacetsClient | None = None

    def client(self) -> FacetsClient:
        """The connection."""
        if self._client is None:
            key = self._api_key.resolve_value() if self._api_key else None
            self._client = FacetsClient(self._target, api_key=key)
        return self._client


@component
class FacetsRetriever:
    """Searches a collection; a hit's payload is ``meta``, what the search says of it stands under ``facets_hit``.

    Args:
        collection: Name of the collection.
        target: ``HOST:PORT`` of the server.
        api_key: For servers that ask for one.
        top_k: Documents for each query.
        mode: ``hybrid``, ``facets`` or ``lexical``.
        filters: Haystack's filters on ``meta``; None: all documents.
        min_confidence: Only hits of at least this confidence, in [0, 1]; None: all.
        diversify: How much the hits shall differ, in [0, 1].
    """

    def __init__(
        self,
        collection: str,
        *,
        target: str = DEFAULT_TARGET,
        api_key: Secret | None = None,
        top_k: int = 10,
        mode: SearchMode = "hybrid",
        filters: Mapping[str, object] | None = None,
        min_confidence: float | None = None,
        diversify: float = 0.0,
    ) -> None:
        self._server = _Server(target, api_key)
        self._settings: dict[str, Any] = {
            "collection": collection,
            "top_k": top_k,
            "mode": mode,
            "filters": filters,
            "min_confidence": min_confidence,
            "diversify": diversify,
        }

    @component.output_types(documents=list[HaystackDocument])  # type: ignore[untyped-decorator]
    def run(
        self, query: str, *, top_k: int | None = None, filters: dict[str, object] | None = None
    ) -> dict[str, list[HaystackDocument]]:
        """Documents for a query, best first.

        Args:
            query: A text.
            top_k: Instead of the component's.
            filters: Instead of the component's.

        Returns:
            ``documents``.
        """
        asked = dict(self._settings)
        own = asked.pop("filters")
        chosen = own if filters is None else filters
        asked |= {"where": from_haystack_filters(chosen) if chosen else None}
        asked |= {} if top_k is None else {"top_k": top_k}
        found = Retrieval(**asked).hits(self._server.client(), query)
        return {"documents": list(map(_to_haystack, found))}

    def to_dict(self) -> dict[str, object]:
        """The component as a pipeline is written."""
        return _to_dict(self, self._server, **self._settings)

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Self:
        """The component of a pipeline that was written."""
        return _from_dict(cls, data)


@component
class FacetsWriter:
    """Stores documents in a collection, replacing those with the same id.

    Args:
        collection: Name of the collection; it must be there.
        target: ``HOST:PORT`` of the server.
        api_key: For servers that ask for one.
    """

    def __init__(self, collection: str, *, target: str = DEFAULT_TARGET, api_key: Secret | None = None) -> None:
        self._server = _Server(target, api_key)
        self._collection = collection

    @component.output_types(documents_written=int)  # type: ignore[untyped-decorator]
    def run(self, documents: list[HaystackDocument]) -> dict[str, int]:
        """Stores the documents, all that have a text.

        Returns:
            ``documents_written``.
        """
        ours = list(from_haystack(documents))
        written = self._server.client().upsert(self._collection, ours).num_documents if ours else 0
        return {"documents_written": written}

    def to_dict(self) -> dict[str, object]:
        """The component as a pipeline is written."""
        return _to_dict(self, self._server, collection=self._collection)

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> Self:
        """The component of a pipeline that was written."""
        return _from_dict(cls, data)


def from_haystack(documents: Iterable[HaystackDocument]) -> Iterator[Document]:
    """Haystack's documents as ours, to be stored: ``meta`` is the payload; those without a text are left out."""
    for document in documents:
        if document.content:
            payload = {key: value for key, value in document.meta.items() if key != HIT_KEY}
            yield Document(document.id, document.content, payload)


def from_haystack_filters(filters: Mapping[str, object]) -> Filter:
    """A condition of ours from Haystack's.

    Args:
        filters: A comparison (``field``, ``operator``, ``value``) or ``AND``, ``OR``, ``NOT`` over ``conditions``; a
            field is named ``meta.NAME`` or ``NAME``.

    Raises:
        ValueError: For what is neither, and for a value that its operator cannot compare.

    Example:
        >>> from_haystack_filters({"field": "meta.year", "operator": ">=", "value": 1990})
        Range(field='year', gt=None, gte=1990, lt=None, lte=None)
    """
    operator = filters.get("operator")
    if operator in _LOGIC and isinstance(filters.get("conditions"), Sequence):
        conditions = cast("Sequence[Mapping[str, object]]", filters["conditions"])
        return _LOGIC[operator]([from_haystack_filters(condition) for condition in conditions])
    if operator in _COMPARISONS and isinstance(filters.get("field"), str) and "value" in filters:
        field = cast(str, filters["field"]).removeprefix("meta.")
        return _COMPARISONS[operator](field, filters["value"])
    known = ", ".join([*_LOGIC, *_COMPARISONS])
    raise ValueError(f"filters must have an operator of {known} with conditions, or field and value; got {filters!r}")


def _to_dict(made: object, server: _Server, **settings: object) -> dict[str, object]:
    return cast("dict[str, object]", default_to_dict(made, **server.settings, **settings))


def _from_dict(kind: type[ComponentT], data: dict[str, object]) -> ComponentT:
    deserialize_secrets_inplace(data["init_parameters"], keys=["api_key"])
    return cast(ComponentT, default_from_dict(kind, data))


def _equals(field: str, value: object) -> Filter:
    same = Equals(field, cast(Scalar, value))
    return AnyOf([same, Exists(field, False)]) if value is None else same


def _one_of(field: str, value: object) -> Filter:
    if not isinstance(value, list):
        raise ValueError(f"filter on {field!r}: in and not in take a list, got {value!r}")
    return OneOf(field, cast("list[Scalar]", value))


def _range(bound: str) -> Callable[[str, object], Filter]:
    def compare(field: str, value: object) -> Filter:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(
                f"filter on {field!r}: expected a number or an ISO 8601 date to compare with, got {value!r}"
            )
        return Range(field, **{bound: value})

    return compare


_LOGIC: dict[str, Callable[[Sequence[Filter]], Filter]] = {
    "AND": AllOf,
    "OR": AnyOf,
    "NOT": lambda filters: NoneOf([AllOf(filters)]),
}
_COMPARISONS: dict[str, Callable[[str, object], Filter]] = {
    "==": _equals,
    "!=": lambda field, value: NoneOf([_equals(field, value)]),
    ">": _range("gt"),
    ">=": _range("gte"),
    "<": _range("lt"),
    "<=": _range("lte"),
    "in": _one_of,
    "not in": lambda field, value: NoneOf([_one_of(field, value)]),
}


def _to_haystack(hit: SearchHit) -> HaystackDocument:
    return HaystackDocument(id=hit.id, content=hit.text, meta=metadata_of(hit), score=hit.score)
