"""The description holds every route, and says what the proto files say."""

import importlib.resources
from pathlib import Path

import pytest
from facets_proto.generate import PACKAGE_FOLDER
from facets_server.gateway.openapi import openapi, proto_comments
from facets_server.gateway.transcoding import rpcs
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet
from server_gateway_fakes import browser


def test_every_route_is_described():
    page = browser()
    found = page.client.get("/openapi.json").json()
    assert found["openapi"] == "3.1.0"
    assert set(rpcs()) <= set(found["paths"])
    for path, methods in found["paths"].items():
        method = next(iter(methods)).upper()
        other = page.client.request("GET" if method == "POST" else "POST", path)
        assert other.status_code == 405, path
        assert method in other.headers["allow"]


def test_every_reference_leads_somewhere():
    names = set(openapi()["components"]["schemas"])

    def references(value: object) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*(references(part) for part in value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    assert {reference.removeprefix("#/components/schemas/") for reference in references(openapi())} <= names


def test_every_rpc_field_and_value_is_described_in_words():
    schemas = openapi()["components"]["schemas"]
    ours = {name: schema for name, schema in schemas.items() if name.startswith("facets.v1.")}
    assert len(ours) > 50
    bare = [
        f"{name}.{field}"
        for name, schema in ours.items()
        for field, described in schema.get("properties", {}).items()
        if not described.get("description")
    ]
    assert bare == []
    assert all(openapi()["paths"][path]["post"]["description"] for path in rpcs() if path.startswith("/facets.v1."))


def test_comments_are_those_that_protoc_reads(tmp_path: Path):
    protoc = pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools (extra dev) reads the protos")
    import google.rpc

    well_known = importlib.resources.files("grpc_tools") / "_proto"
    google_apis = Path(next(iter(google.rpc.__path__))).parents[1]
    folders = [f"-I{folder}" for folder in (PACKAGE_FOLDER.parent, well_known, google_apis)]
    sources = [str(path) for path in (PACKAGE_FOLDER / "v1").glob("*.proto")]
    out = tmp_path / "descriptors"
    arguments = ["protoc", *folders, "--include_source_info", f"--descriptor_set_out={out}", *sources]
    assert protoc.main(arguments) == 0
    expected = {}
    for file in FileDescriptorSet.FromString(out.read_bytes()).file:
        names = dict(_names(file))
        for location in file.source_code_info.location:
            comment = " ".join(location.leading_comments.split())
            if comment and tuple(location.path) in names:
                expected[names[tuple(location.path)]] = comment
    assert len(expected) > 300
    assert dict(proto_comments()) == expected


def _names(file):
    """Path of protoc -> full name."""
    for i, service in enumerate(file.service):
        yield (6, i), f"{file.package}.{service.name}"
        for j, method in enumerate(service.method):
            yield (6, i, 2, j), f"{file.package}.{service.name}.{method.name}"
    for i, enum in enumerate(file.enum_type):
        yield from _enum((5, i), enum, file.package)
    for i, message in enumerate(file.message_type):
        yield from _message((4, i), message, file.package)


def _message(path: tuple[int, ...], message: DescriptorProto, scope: str):
    name = f"{scope}.{message.name}"
    yield path, name
    for i, field in enumerate(message.field):
        yield (*path, 2, i), f"{name}.{field.name}"
    for i, oneof in enumerate(message.oneof_decl):
        yield (*path, 8, i), f"{name}.{oneof.name}"
    for i, nested in enumerate(message.nested_type):
        yield from _message((*path, 3, i), nested, name)
    for i, enum in enumerate(message.enum_type):
        yield from _enum((*path, 4, i), enum, name)


def _enum(path: tuple[int, ...], enum, scope: str):
    name = f"{scope}.{enum.name}"
    yield path, name
    for i, value in enumerate(enum.value):
        yield (*path, 2, i), f"{name}.{value.name}"
