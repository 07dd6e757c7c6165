"""The rpcs of ``facets.v1`` as the descriptors of the protos know them: nothing is listed by hand.

A request belongs to one rpc alone and stands in the file of its service, so the class of the request is enough to
find where it goes.
"""

import functools
from dataclasses import dataclass
from typing import Generic, TypeVar

from facets_proto.v1.services import SERVICES
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.message import Message

__all__ = ["DEFAULT_TIMEOUT_S", "SERVICES", "TIMEOUTS_S", "RequestT", "ResponseT", "Rpc", "rpc_of"]

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)

DEFAULT_TIMEOUT_S = 30.0
# What differs from the default. One of these may take long on a busy machine, and asking for it again would only add
# to the work; the first question to a collection of papers waits until the server has read all of them.
TIMEOUTS_S = {
    name: 120.0
    for name in (
        "facets.v1.CollectionService.ReindexCollection",
        "facets.v1.DocumentService.UpsertStream",
        "facets.v1.RecommendationService.AddAuthors",
        "facets.v1.RecommendationService.AddPapers",
        "facets.v1.RecommendationService.RankPapers",
        "facets.v1.RecommendationService.RecommendBulk",
    )
}


@dataclass(frozen=True, slots=True)
class Rpc(Generic[RequestT, ResponseT]):
    """One rpc: where it goes, what it takes, what it gives."""

    name: str  # in full, e.g. facets.v1.EmbeddingService.Embed
    request: type[RequestT]
    response: type[ResponseT]

    @property
    def path(self) -> str:
        """Path of the rpc on the wire."""
        service, _, method = self.name.rpartition(".")
        return f"/{service}/{method}"

    @property
    def timeout_s(self) -> float:
        """Seconds for one request where the caller has no wish of his own."""
        return TIMEOUTS_S.get(self.name, DEFAULT_TIMEOUT_S)


def rpc_of(request: type[RequestT], response: type[ResponseT]) -> Rpc[RequestT, ResponseT]:
    """The rpc that takes such a request.

    Args:
        request: Class of the request.
        response: Class of the reply, so that its type is known.

    Raises:
        TypeError: No rpc takes the one and gives the other.
    """
    method = _methods(request.DESCRIPTOR.file).get(request.DESCRIPTOR.full_name)
    if method is not None and method.output_type is response.DESCRIPTOR:
        return Rpc(method.full_name, request, response)
    raise TypeError(f"no rpc takes {request.__name__} and gives {response.__name__}")


@functools.cache
def _methods(file: FileDescriptor) -> dict[str, MethodDescriptor]:
    """Name of a request -> the method that takes it; of several (health: Check, Watch) the first."""
    found: dict[str, MethodDescriptor] = {}
    for service in file.services_by_name.values():
        for method in service.methods:
            found.setdefault(method.input_type.full_name, method)
    return found
