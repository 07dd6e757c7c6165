"""What all sets of routes are made of."""

from abc import ABC, abstractmethod

from starlette.routing import Route

from facets_server.gateway.bodies import BodyReader
from facets_server.gateway.upstream import Upstream

__all__ = ["RouteSet"]


class RouteSet(ABC):
    """Routes that answer with calls of the gRPC server."""

    def __init__(self, upstream: Upstream, reader: BodyReader, *, timeout_s: float) -> None:
        """Makes no call yet.

        Args:
            upstream: The gRPC server.
            reader: Reads bodies.
            timeout_s: Deadline of calls that name none.
        """
        self._upstream = upstream
        self._reader = reader
        self._timeout_s = timeout_s

    @abstractmethod
    def routes(self) -> list[Route]:
        """The routes."""
