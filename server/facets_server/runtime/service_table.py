"""Which services there are: those of every room, each with the health of the task whose models it answers with.

What a service is called and how it is added to a server is read from the generated code of its base class.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from facets_server.runtime.model_service import ModelService
from facets_server.runtime.quick_calls import HasQuickCalls, IsQuick
from facets_server.runtime.room import ServerParts
from facets_server.runtime.rooms import ROOMS

__all__ = ["Service", "services"]

Handler = Any  # grpc.RpcMethodHandler; its four behaviours have four types


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
        Service(servicer, parts.models.health_of(room.tasks)) for room in ROOMS for servicer in room.servicers(parts)
    ]
    return [*found, Service(ModelService(parts), parts.models.is_healthy)]
