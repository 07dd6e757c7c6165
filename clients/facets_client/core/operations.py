"""What the operations of every room start from: cutting what a caller has into requests that the server takes.

An operation is written once: how inputs are cut into requests that the server takes, and how replies are put
together. ``python -m facets_client.generate`` makes the methods of both clients from it: name, arguments, types and
docstring are the operation's.
"""

from collections.abc import Callable, Iterator, Sequence

from facets_proto.v1 import models_pb2
from grpc_health.v1 import health_pb2

from facets_client.core.channel import SERVICES, RequestT, ResponseT
from facets_client.core.commands import Operation, call, call_pages, call_part
from facets_client.core.convert import to_health, to_model, to_status
from facets_client.core.results import Limits, Model, ServerStatus
from facets_client.errors import NotFoundError

# Room for the fields of a request beside its items, and for keys and lengths on the wire.
ENVELOPE_BYTES = 4_096
ITEM_BYTES = 16


class Requests:
    """Requests within the server's limits, which are asked for once per model."""

    def __init__(self) -> None:
        self._limits: dict[str, Limits] = {}

    def limits(self, model: str = "") -> Operation[Limits]:
        """Limits for requests to a model; the default model without a name."""
        if model not in self._limits:
            reply = yield from call(models_pb2.GetModelRequest(name=model), models_pb2.GetModelResponse)
            self._limits[model] = to_model(reply.model).limits
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


class ModelOperations(RoomOperations):
    """Models and health."""

    def models(self) -> Operation[list[Model]]:
        """All models, the default first."""
        found = yield from call_pages(
            lambda token: models_pb2.ListModelsRequest(page_token=token),
            models_pb2.ListModelsResponse,
            lambda reply: (reply.models, reply.next_page_token),
        )
        return [to_model(model) for model in found]

    def model(self, name: str = "") -> Operation[Model]:
        """One model with its limits; the default without a name."""
        reply = yield from call(models_pb2.GetModelRequest(name=name), models_pb2.GetModelResponse)
        return to_model(reply.model)

    def status(self) -> Operation[ServerStatus]:
        """How the server is now: version, load, disk, last backup."""
        reply = yield from call(models_pb2.GetServerStatusRequest(), models_pb2.GetServerStatusResponse)
        return to_status(reply)

    def health(self) -> Operation[dict[str, str]]:
        """Status of the server (under the empty name) and of each service, e.g. ``SERVING``."""
        statuses: dict[str, str] = {}
        for service in ("", *SERVICES):
            try:
                request = health_pb2.HealthCheckRequest(service=service)
                statuses[service] = to_health((yield from call(request, health_pb2.HealthCheckResponse)))
            except NotFoundError:
                statuses[service] = "SERVICE_UNKNOWN"
        return statuses
