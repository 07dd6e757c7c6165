"""What the operations of every room start from: cutting what a caller has into requests that the server takes.

An operation is written once: how inputs are cut into requests that the server takes, and how replies are put
together. ``python -m facets_client.generate`` makes the methods of both clients from it: name, arguments, types and
docstring are the operation's.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from facets_proto.codec import from_message, message_of
from facets_proto.v1 import documents_pb2, filters_pb2, models_pb2
from google.protobuf import struct_pb2
from grpc_health.v1 import health_pb2

from facets_client import filters
from facets_client.core.channel import SERVICES, RequestT, ResponseT
from facets_client.core.commands import Operation, call, call_pages, call_part
from facets_client.core.types import Backup, Limits, Model, TakenBackup, Timings
from facets_client.core.values import finite_double
from facets_client.errors import NotFoundError, OddFilterWarning

# Room for the fields of a request beside its items, and for keys and lengths on the wire.
ENVELOPE_BYTES = 4_096
ITEM_BYTES = 16
_SERVING = health_pb2.HealthCheckResponse.ServingStatus

RecordT = TypeVar("RecordT")


class Requests:
    """Requests within the server's limits, which are asked for once per model."""

    def __init__(self) -> None:
        self._limits: dict[str, Limits] = {}

    def limits(self, model: str = "") -> Operation[Limits]:
        """Limits for requests to a model; the default model without a name."""
        if model not in self._limits:
            reply = yield from call(models_pb2.GetModelRequest(name=model), models_pb2.GetModelResponse)
            self._limits[model] = from_message(reply.model, Model).limits
        return self._limits[model]

    def call_parts(
        self,
        name: str,
        sizes: Sequence[int],
        make: Callable[[slice], RequestT],
        response: type[ResponseT],
        *,
        max_items: Callable[[Limits], int],
        model: str = "",
        repeated_bytes: int = 0,
    ) -> Operation[list[ResponseT]]:
        """Asks for items part by part; replies in the order of the parts.

        Args:
            name: Of the items, in messages and in the request.
            sizes: Bytes of each item.
            make: Part of the items -> its request.
            response: Class of the replies.
            max_items: Limits -> most items of a request; 0: no limit.
            model: Whose limits hold.
            repeated_bytes: What every request holds besides its items.
        """
        replies: list[ResponseT] = []
        for part in (yield from self.cut(name, sizes, max_items=max_items, model=model, repeated_bytes=repeated_bytes)):
            replies.append((yield from call_part(make(part), response, field=name, offset=part.start)))
        return replies

    def cut(
        self,
        name: str,
        sizes: Sequence[int],
        *,
        max_items: Callable[[Limits], int],
        model: str = "",
        repeated_bytes: int = 0,
    ) -> Operation[list[slice]]:
        """The parts of ``call_parts``; one item needs no limits, so none are asked for."""
        if not sizes:
            raise ValueError(f"{name} is empty, expected at least one")
        if len(sizes) == 1:
            return [slice(0, 1)]
        limits = yield from self.limits(model)
        max_bytes = limits.max_message_bytes and max(1, limits.max_message_bytes - repeated_bytes)
        return list(slices(sizes, max_items=max_items(limits), max_bytes=max_bytes))


def slices(sizes: Sequence[int], *, max_items: int, max_bytes: int) -> Iterator[slice]:
    """Cuts a sequence into runs within both limits, in order.

    An item that is over ``max_bytes`` alone gets a run of its own: the server says what is wrong with it.

    Args:
        sizes: Bytes of each item on the wire.
        max_items: Most items of a run; 0: no limit.
        max_bytes: Most bytes of a request; 0: no limit.

    Yields:
        Slices that cover the sequence.

    Example:
        >>> list(slices([5, 5, 5], max_items=2, max_bytes=0))
        [slice(0, 2, None), slice(2, 3, None)]
    """
    budget = max_bytes - ENVELOPE_BYTES if max_bytes else 0
    start = used = 0
    for position, size in enumerate(sizes):
        full = (max_items and position - start == max_items) or (budget and used + size + ITEM_BYTES > budget)
        if full and position > start:
            yield slice(start, position)
            start, used = position, 0
        used += size + ITEM_BYTES
    if start < len(sizes):
        yield slice(start, len(sizes))


def least(*limits: int) -> int:
    """The smallest of some limits where 0 means that there is none.

    Example:
        >>> least(0, 5, 3), least(0, 0)
        (3, 0)
    """
    return min((limit for limit in limits if limit), default=0)


def with_evidence(limits: Limits, *, evidence: bool, top_k: int) -> int:
    """Most things to ask hits for in one request, as far as evidence goes; 0: no limit."""
    return max(1, limits.max_evidence_hits // max(1, top_k)) if evidence and limits.max_evidence_hits else 0


def text_bytes(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class RoomOperations:
    """Base of the operations of a room."""

    def __init__(self) -> None:
        self._requests = Requests()


def join(replies: Sequence[RecordT], *, added: Sequence[str] = ()) -> RecordT:
    """The replies to the parts of a call as one.

    Lists and arrays follow each other, timings are added up, and the rest is as in the last reply.

    Args:
        replies: In the order of the parts.
        added: Fields with numbers that are added up, too.
    """
    if len(replies) == 1:
        return replies[0]
    values = {
        part.name: _joined([getattr(reply, part.name) for reply in replies], is_added=part.name in added)
        for part in fields(replies[0])  # type: ignore[arg-type]
    }
    return type(replies[0])(**values)


def _joined(values: Sequence[Any], *, is_added: bool) -> Any:
    last = values[-1]
    if is_added or isinstance(last, Timings):
        return sum(values[1:], values[0])
    if isinstance(last, np.ndarray):
        return np.concatenate(values)
    return tuple(chain.from_iterable(values)) if isinstance(last, tuple) else last


def from_fields(fields: Mapping[str, float] | None) -> documents_pb2.SearchFields | None:
    """Fields that are searched, with their weights, as a message; None stays None."""
    return None if fields is None else message_of(documents_pb2.SearchFields, fields=fields)


def warn_of(odd: Iterable[filters_pb2.FilterWarning]) -> None:
    """Tells the caller what is odd about a filter, each once."""
    for text in dict.fromkeys(one.message for one in odd):
        warnings.warn(text, OddFilterWarning, stacklevel=2)


def from_filter(where: filters.Filter | None) -> filters_pb2.Filter | None:
    """A condition on payloads as a message; None stays None."""
    return None if where is None else _from_filter(where)


def _from_filter(where: filters.Filter) -> filters_pb2.Filter:
    match where:
        case filters.AllOf(inner):
            return filters_pb2.Filter(all_of=_filter_list(inner))
        case filters.AnyOf(inner):
            return filters_pb2.Filter(any_of=_filter_list(inner))
        case filters.NoneOf(inner):
            return filters_pb2.Filter(none_of=_filter_list(inner))
        case filters.Equals(field, value):
            condition = filters_pb2.FieldCondition(field=field, equals=_from_scalar(field, value))
        case filters.OneOf(field, values):
            listed = struct_pb2.ListValue(values=[_from_scalar(field, value) for value in values])
            condition = filters_pb2.FieldCondition(field=field, one_of=listed)
        case filters.Range(field, gt, gte, lt, lte):
            condition = _from_range(field, {"gt": gt, "gte": gte, "lt": lt, "lte": lte})
        case filters.Contains(field, value):
            condition = filters_pb2.FieldCondition(field=field, contains=_from_scalar(field, value))
        case filters.Exists(field, exists):
            condition = filters_pb2.FieldCondition(field=field, exists=exists)
        case _:
            expected = "a filter of facets_client.filters, such as Equals('language', 'en')"
            raise TypeError(f"where must be {expected}, got {where!r}")
    return filters_pb2.Filter(field=condition)


def _from_range(field: str, bounds: dict[str, float | str | None]) -> filters_pb2.FieldCondition:
    numbers = {
        name: finite_double(bound, f"the bound for {field}")
        for name, bound in bounds.items()
        if isinstance(bound, int | float)
    }
    strings = {name: bound for name, bound in bounds.items() if isinstance(bound, str)}
    if strings:
        return filters_pb2.FieldCondition(field=field, string_range=filters_pb2.StringRange(**strings))
    return filters_pb2.FieldCondition(field=field, range=filters_pb2.NumberRange(**numbers))


def _filter_list(inner: Sequence[filters.Filter]) -> filters_pb2.FilterList:
    return filters_pb2.FilterList(filters=[_from_filter(item) for item in inner])


def _from_scalar(field: str, value: filters.Scalar) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    return struct_pb2.Value(number_value=finite_double(value, f"the value for {field}"))


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How a server is now."""

    version: str
    start_time: datetime
    num_running: int  # calls worked on, the one that asked among them
    num_queued: int  # calls waiting for admission
    num_streams: int
    num_waiting: dict[str, int]  # model -> texts, or calls, that wait for it
    num_requests: dict[str, int]  # code -> calls answered since the start
    disk_bytes: dict[str, int]  # part of the data directory -> bytes
    free_bytes: int  # left on the disk; 0: not known
    last_backup_time: datetime | None  # None: never, as far as the server knows
    backup_dir: str  # of the server, where take_backup puts them; empty: it takes none
    backups: tuple[Backup, ...]  # the latest 20 there, the newest first
    backup_keep: int  # how many a new one leaves there; 0: all


class ModelOperations(RoomOperations):
    """Models and health."""

    def models(self) -> Operation[list[Model]]:
        """All models, the default first."""
        found = yield from call_pages(
            lambda token: models_pb2.ListModelsRequest(page_token=token),
            models_pb2.ListModelsResponse,
            lambda reply: (reply.models, reply.next_page_token),
        )
        return [from_message(model, Model) for model in found]

    def model(self, name: str = "") -> Operation[Model]:
        """One model with its limits; the default without a name."""
        reply = yield from call(models_pb2.GetModelRequest(name=name), models_pb2.GetModelResponse)
        return from_message(reply.model, Model)

    def status(self) -> Operation[ServerStatus]:
        """How the server is now: version, load, disk, last backup."""
        reply = yield from call(models_pb2.GetServerStatusRequest(), models_pb2.GetServerStatusResponse)
        return from_message(
            reply,
            ServerStatus,
            num_waiting={queue.model: queue.num_waiting for queue in reply.model_queues},
            num_requests={count.code: count.num_requests for count in reply.request_counts},
            disk_bytes={use.part: use.num_bytes for use in reply.disk_uses},
        )

    def take_backup(self) -> Operation[TakenBackup]:
        """Copies the server's data directory into its folder of backups, compares the copy, and lets the oldest go.

        Raises:
            FailedPreconditionError: The server has no such folder, or keeps its documents in PostgreSQL.
        """
        reply = yield from call(models_pb2.TakeBackupRequest(), models_pb2.TakeBackupResponse)
        return from_message(reply, TakenBackup)

    def health(self) -> Operation[dict[str, str]]:
        """Status of the server (under the empty name) and of each service, e.g. ``SERVING``."""
        statuses: dict[str, str] = {}
        for service in ("", *SERVICES):
            try:
                request = health_pb2.HealthCheckRequest(service=service)
                reply = yield from call(request, health_pb2.HealthCheckResponse)
            except NotFoundError:
                statuses[service] = "SERVICE_UNKNOWN"
            else:
                known = reply.status in _SERVING.values()
                statuses[service] = _SERVING.Name(reply.status) if known else "UNKNOWN"
        return statuses
