"""Which services there are: those of every room, and ModelService, which tells what is served, within which limits.

What a service is called and how it is added to a server is read from the generated code of its base class; its health
is that of the tasks whose models it answers with.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from facets_proto.codec import to_message
from facets_proto.v1 import models_pb2, models_pb2_grpc

from facets_server.runtime.call_context import CallContext
from facets_server.runtime.calls import HasQuickCalls, IsQuick
from facets_server.runtime.limits import page_of
from facets_server.runtime.metrics import disk_of
from facets_server.runtime.models import ServedModel
from facets_server.runtime.records import model_to_message, server_status_to_message
from facets_server.runtime.rooms import ServerParts, rooms
from facets_server.runtime.upkeep import take_backup

Handler = Any  # grpc.RpcMethodHandler; its four behaviours have four types


class ModelService(models_pb2_grpc.ModelServiceServicer):
    """The models, the limits, the state of the server."""

    def __init__(self, parts: ServerParts) -> None:
        """Begins the time that the server is up."""
        self._parts = parts
        self._models = parts.models
        self._config = parts.config
        self._started = datetime.now(tz=UTC)

    def ListModels(self, request: models_pb2.ListModelsRequest, call: CallContext) -> models_pb2.ListModelsResponse:
        """All models, the default first."""
        page = page_of(
            self._models.all(),
            size=request.page_size,
            token=request.page_token,
            limit=self._config.limits.max_page_size,
        )
        return models_pb2.ListModelsResponse(
            models=[self._to_proto(served) for served in page.items], next_page_token=page.next_token
        )

    def GetModel(self, request: models_pb2.GetModelRequest, call: CallContext) -> models_pb2.GetModelResponse:
        """One model."""
        return models_pb2.GetModelResponse(model=self._to_proto(self._models.get(request.name)))

    def GetServerStatus(
        self, request: models_pb2.GetServerStatusRequest, call: CallContext
    ) -> models_pb2.GetServerStatusResponse:
        """Load, disk, backups."""
        return server_status_to_message(self._parts, disk_of(self._config.data_dir), self._started)

    def TakeBackup(self, request: models_pb2.TakeBackupRequest, call: CallContext) -> models_pb2.TakeBackupResponse:
        """A copy of the data directory."""
        return to_message(take_backup(self._config), models_pb2.TakeBackupResponse)

    def _to_proto(self, served: ServedModel[Any]) -> models_pb2.Model:
        return model_to_message(served.info, self._config, is_default=self._models.is_default(served))


@dataclass(frozen=True, slots=True)
class Service:
    """One service.

    Attributes:
        servicer: Answers its calls; its class extends the generated ``<Name>Servicer``.
        health: SERVING while this holds; None: no model of its tasks is served, so health does not know the service.
    """

    servicer: object
    health: Callable[[], bool] | None

    @property
    def name(self) -> str:
        """Full name, ``facets.v1.EmbeddingService``."""
        base = self._base()
        messages = sys.modules[base.__module__.removesuffix("_grpc")]
        return str(messages.DESCRIPTOR.services_by_name[base.__name__.removesuffix("Servicer")].full_name)

    def handlers(self) -> dict[str, Handler]:
        """Full name of each method -> what answers it."""
        base, found = self._base(), _Handlers()
        getattr(sys.modules[base.__module__], f"add_{base.__name__}_to_server")(self.servicer, found)
        return {f"/{self.name}/{method}": handler for method, handler in found.by_method.items()}

    def quick_calls(self) -> dict[str, IsQuick]:
        """Full name of each method whose small calls the event loop answers -> which of them."""
        if not isinstance(self.servicer, HasQuickCalls):
            return {}
        return {f"/{self.name}/{method}": is_quick for method, is_quick in self.servicer.quick_calls.items()}

    def _base(self) -> type:
        return next(base for base in type(self.servicer).__mro__ if base.__module__.endswith("_pb2_grpc"))


class _Handlers:
    """Takes what generated code would add to a server."""

    def __init__(self) -> None:
        self.by_method: dict[str, Handler] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """The same handlers, of which a table cannot be made."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """The handlers of a service by the name of the method."""
        self.by_method.update(handlers)


def services(parts: ServerParts) -> list[Service]:
    """Every service of the server."""
    found = [
        Service(servicer, parts.models.health_of(room.tasks)) for room in rooms() for servicer in room.servicers(parts)
    ]
    return [*found, Service(ModelService(parts), parts.models.is_healthy)]
