"""The description of all routes, OpenAPI 3.1; of rpcs it says what descriptors and comments of the protos say."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

import facets
from facets_server.gateway.openapi_pages import FIXED_PATHS, FIXED_SCHEMAS
from facets_server.gateway.proto_comments import proto_comments
from facets_server.gateway.rpcs import Rpc, rpcs

__all__ = ["openapi"]

Schema = dict[str, Any]

_ERROR = {"$ref": "#/components/schemas/connect.Error"}
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_SCALARS: Mapping[int, Schema] = {
    FieldDescriptor.CPPTYPE_INT32: {"type": "integer"},
    FieldDescriptor.CPPTYPE_UINT32: {"type": "integer"},
    FieldDescriptor.CPPTYPE_INT64: {"type": ["string", "integer"]},
    FieldDescriptor.CPPTYPE_UINT64: {"type": ["string", "integer"]},
    FieldDescriptor.CPPTYPE_DOUBLE: _NUMBER,
    FieldDescriptor.CPPTYPE_FLOAT: _NUMBER,
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
}
# Messages whose JSON is not that of their fields.
_WELL_KNOWN: Mapping[str, Schema] = {
    "google.protobuf.Any": {"type": "object", "additionalProperties": True},
    "google.protobuf.Duration": {"type": "string", "examples": ["1.5s"]},
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Struct": {"type": "object", "additionalProperties": True},
    "google.protobuf.Value": {},
    "google.protobuf.ListValue": {"type": "array", "items": {}},
}


@cache
def openapi() -> Schema:
    """The description as JSON values; the same for every gateway."""
    schemas: dict[str, Schema] = dict(FIXED_SCHEMAS)
    paths = {path: {"post": _operation(rpc)} for path, rpc in rpcs().items()}
    for rpc in rpcs().values():
        for message in (rpc.descriptor.input_type, rpc.descriptor.output_type):
            _describe(message, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Facets",
            "version": facets.__version__,
            "description": "Every rpc of Facets as JSON, and the routes of OpenAI and TEI for embeddings.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}, {}],
        "paths": {**FIXED_PATHS, **paths},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(rpc: Rpc) -> Schema:
    comment = proto_comments().get(rpc.descriptor.full_name, "")
    content = "application/x-ndjson" if rpc.is_stream else "application/json"
    request, reply = (_body(content, message) for message in (rpc.descriptor.input_type, rpc.descriptor.output_type))
    if rpc.is_stream:
        comment = f"{comment} A message a line, both ways; an error is the last line.".strip()
    service = rpc.descriptor.containing_service
    return {
        "operationId": rpc.descriptor.full_name,
        "tags": [service.name],
        "summary": comment.partition(". ")[0].rstrip("."),
        "description": comment,
        "requestBody": {"required": True, "content": request},
        "responses": {
            "200": {"description": "The reply.", "content": reply},
            "default": {"description": "An error.", "content": {"application/json": {"schema": _ERROR}}},
        },
    }


def _body(content: str, message: Descriptor) -> Schema:
    return {content: {"schema": _reference(message)}}


def _reference(described: Descriptor | EnumDescriptor) -> Schema:
    return {"$ref": f"#/components/schemas/{described.full_name}"}


def _describe(message: Descriptor, schemas: dict[str, Schema]) -> None:
    """Adds a message and all that it holds."""
    if message.full_name in schemas:
        return
    if message.full_name in _WELL_KNOWN:
        schemas[message.full_name] = dict(_WELL_KNOWN[message.full_name])
        return
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": {}}
    schemas[message.full_name] = schema
    _comment(schema, message.full_name)
    for field in message.fields:
        if field.message_type is not None and not _is_map(field):
            _describe(field.message_type, schemas)
        if field.enum_type is not None:
            schemas.setdefault(field.enum_type.full_name, _enum(field.enum_type))
        schema["properties"][field.json_name] = _field(field, lambda nested: _describe(nested, schemas))


def _field(field: FieldDescriptor, describe: Callable[[Descriptor], None]) -> Schema:
    if _is_map(field):
        value = _entry_of(field).fields_by_name["value"]
        if value.message_type is not None:
            describe(value.message_type)
        schema: Schema = {"type": "object", "additionalProperties": _single(value)}
    elif field.is_repeated:
        schema = {"type": "array", "items": _single(field)}
    else:
        schema = _single(field)
    oneof = field.containing_oneof
    comment = proto_comments().get(field.full_name, "")
    if oneof is not None and len(oneof.fields) > 1:
        others = ", ".join(other.json_name for other in oneof.fields if other is not field)
        comment = f"{comment} Not together with {others}.".strip()
    return {**schema, "description": comment} if comment else schema


def _single(field: FieldDescriptor) -> Schema:
    if field.message_type is not None:
        return _reference(field.message_type)
    if field.enum_type is not None:
        return _reference(field.enum_type)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return {"type": "string", "contentEncoding": "base64"}
    return dict(_SCALARS.get(field.cpp_type, {"type": "string"}))


def _enum(enum: EnumDescriptor) -> Schema:
    values = [(value.name, proto_comments().get(f"{enum.full_name}.{value.name}", "")) for value in enum.values]
    lines = [f"{name}: {comment}" if comment else name for name, comment in values]
    schema: Schema = {"type": "string", "enum": [name for name, _ in values]}
    _comment(schema, enum.full_name, *lines)
    return schema


def _comment(schema: Schema, name: str, *more: str) -> None:
    lines = [line for line in (proto_comments().get(name, ""), *more) if line]
    if lines:
        schema["description"] = "\n\n".join(lines)


def _entry_of(field: FieldDescriptor) -> Descriptor:
    assert field.message_type is not None  # maps are lists of messages
    return field.message_type


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)
