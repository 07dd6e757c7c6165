"""Which services there are: those of every room, each with the health of the task whose models it answers with.

What a service is called and how it is added to a server is read from the generated code of its base class.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from facets_server.runtime.model_service import ModelService
from facets_server.runtime.room import ServerParts
from facets_server.runtime.rooms import ROOMS

__all__ = ["Service", "services"]


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

    def add_to(self, server: grpc.Server) -> None:
        """Adds the servicer to a server."""
        base = self._base()
        getattr(sys.modules[base.__module__], f"add_{base.__name__}_to_server")(self.servicer, server)

    def _base(self) -> type:
        return next(base for base in type(self.servicer).__mro__ if base.__module__.endswith("_pb2_grpc"))


def services(parts: ServerParts) -> list[Service]:
    """Every service of the server."""
    found = [
        Service(servicer, parts.models.health_of(room.tasks)) for room in ROOMS for servicer in room.servicers(parts)
    ]
    return [*found, Service(ModelService(parts.models, parts.config), parts.models.is_healthy)]
