"""The table of rpcs, read from the descriptors: a new rpc is a route at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2

__all__ = ["Rpc", "proto_files", "proto_sources", "rpcs"]

_PACKAGE = "facets_proto.v1"


@dataclass(frozen=True, slots=True)
class Rpc:
    """One rpc.

    Attributes:
        descriptor: What the proto file says of it.
        request: Class of its request.
        reply: Class of its reply.
    """

    descriptor: MethodDescriptor
    request: type[Message]
    reply: type[Message]

    @property
    def path(self) -> str:
        """Its path in gRPC and here: ``/facets.v1.EmbeddingService/Embed``."""
        service = self.descriptor.containing_service
        assert service is not None
        return f"/{service.full_name}/{self.descriptor.name}"

    @property
    def is_stream(self) -> bool:
        """True when requests or replies are a stream."""
        return bool(self.descriptor.client_streaming or self.descriptor.server_streaming)


@cache
def proto_files() -> tuple[FileDescriptor, ...]:
    """Descriptors of our proto files, by name."""
    names = sorted(entry.name for entry in files(_PACKAGE).iterdir() if entry.name.endswith("_pb2.py"))
    return tuple(import_module(f"{_PACKAGE}.{name.removesuffix('.py')}").DESCRIPTOR for name in names)


def proto_sources() -> list[str]:
    """The texts of our proto files."""
    return [entry.read_text(encoding="utf-8") for entry in files(_PACKAGE).iterdir() if entry.name.endswith(".proto")]


@cache
def rpcs() -> Mapping[str, Rpc]:
    """Path -> rpc, of all our services and of health's ``Check``."""
    methods: list[Any] = [  # not typed where they come from
        method
        for file in proto_files()
        for service in file.services_by_name.values()
        for method in service.methods_by_name.values()
    ]
    methods.append(health_pb2.DESCRIPTOR.services_by_name["Health"].methods_by_name["Check"])
    found = (Rpc(method, _class_of(method.input_type), _class_of(method.output_type)) for method in methods)
    return {rpc.path: rpc for rpc in found}


def _class_of(descriptor: object) -> type[Message]:
    return message_factory.GetMessageClass(descriptor)  # type: ignore[arg-type]
