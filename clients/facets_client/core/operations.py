"""What the operations of every room start from, and the operations about models and health.

An operation is written once: how inputs are cut into requests that the server takes, and how replies are put
together. ``python -m facets_client.generate`` makes the methods of both clients from it: name, arguments, types and
docstring are the operation's.
"""

from facets_proto.v1 import models_pb2
from grpc_health.v1 import health_pb2

from facets_client.core.commands import Operation, call, call_pages
from facets_client.core.convert import to_health, to_model, to_status
from facets_client.core.requests import Requests
from facets_client.core.results import Model, ServerStatus
from facets_client.core.rpc import SERVICES
from facets_client.errors import NotFoundError

__all__ = ["ModelOperations", "RoomOperations"]


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
