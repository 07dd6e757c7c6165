"""Descriptors of every proto file of ours, for tests that hold the contract against something."""

from importlib import import_module

from facets_proto.generate import PACKAGE_FOLDER
from google.protobuf.descriptor import FileDescriptor, ServiceDescriptor

FILES: list[FileDescriptor] = [
    import_module(f"facets_proto.v1.{path.stem}_pb2").DESCRIPTOR
    for path in sorted((PACKAGE_FOLDER / "v1").glob("*.proto"))
]
SERVICES: list[ServiceDescriptor] = [service for file in FILES for service in file.services_by_name.values()]
