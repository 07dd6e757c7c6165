"""OpenAPI 3.1 description of all routes: rpcs from the descriptors of the protos, other routes from their fields."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from facets_client.core.channel import Rpc, rpcs
from facets_proto import v1
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

import facets
from facets_server.gateway.compatible import COMPATIBLE_ROUTES
from facets_server.gateway.rpc_routes import NDJSON
from facets_server.gateway.uploads import FILE_TYPE, UPLOAD_DESCRIPTION, UPLOAD_PATH

Schema = dict[str, Any]
_OBJECT: Schema = {"type": "object", "additionalProperties": True}
_NUMBER: Schema = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_STRING: Schema = {"type": "string"}
_LONG: Schema = {"type": ["string", "integer"]}
_SCALARS: Mapping[int, Schema] = {
    FieldDescriptor.TYPE_INT32: {"type": "integer"},
    FieldDescriptor.TYPE_UINT32: {"type": "integer"},
    FieldDescriptor.TYPE_INT64: _LONG,
    FieldDescriptor.TYPE_UINT64: _LONG,
    FieldDescriptor.TYPE_DOUBLE: _NUMBER,
    FieldDescriptor.TYPE_FLOAT: _NUMBER,
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_STRING: _STRING,
    FieldDescriptor.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
}
# Messages with a special JSON format.
_WELL_KNOWN: Mapping[str, Schema] = {
    "google.protobuf.Any": _OBJECT,
    "google.protobuf.Struct": _OBJECT,
    "google.protobuf.Value": {},
    "google.protobuf.ListValue": {"type": "array", "items": {}},
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
}
_CONNECT_ERROR: Schema = {
    "type": "object",
    "required": ["code"],
    "properties": {
        "code": {"type": "string", "description": "Code of the Connect protocol, e.g. invalid_argument."},
        "message": _STRING,
        "details": {"type": "array", "items": _OBJECT},
    },
}
_GETS = {
    "/healthz": ("live", "Whether the gateway runs. Needs no key."),
    "/readyz": ("ready", "Whether the server answers; 503 if not. Needs no key."),
    "/health": ("tei.health", "TEI's name of /readyz. Needs no key."),
    "/openapi.json": ("openapi", "This description. Needs no key."),
}


@cache
def comments() -> Mapping[str, str]:
    """Comments of the protos by full name of the service, rpc, message, field or enum value."""
    return dict(json.loads(files(v1).joinpath("comments.json").read_text(encoding="utf-8")))


@cache
def openapi() -> Schema:
    """The description as JSON values."""
    paths: Schema = {path: {"get": _operation(name, text)} for path, (name, text) in _GETS.items()}
    schemas: Schema = {"connect.Error": _CONNECT_ERROR}
    for route in COMPATIBLE_ROUTES:
        request = None
        if route.fields is not None:
            schemas[route.fields.__name__] = route.fields.model_json_schema()
            request = _content(_reference(route.fields.__name__))
        paths[route.path] = {"post" if request else "get": _operation(route.name, route.description, request=request)}
    paths[UPLOAD_PATH] = {"post": _upload_operation()}
    for rpc in rpcs().values():
        paths[rpc.path] = {"post": _rpc_operation(rpc)}
        for message in (rpc.descriptor.input_type, rpc.descriptor.output_type):
            _add_schemas(message, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Facets",
            "version": facets.__version__,
            "description": "Every rpc of Facets as JSON, and routes compatible with OpenAI, TEI and Cohere.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}, {}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(
    name: str, description: str, *, request: Schema | None = None, reply: Schema | None = None, error: Schema = _OBJECT
) -> Schema:
    return {
        "operationId": name,
        "description": description,
        **({"requestBody": {"required": True, **request}} if request else {}),
        "responses": {
            "200": {"description": "The reply.", **(reply or _content(_OBJECT))},
            "default": {"description": "An error.", **_content(error)},
        },
    }


def _rpc_operation(rpc: Rpc) -> Schema:
    method = rpc.descriptor
    comment = comments().get(method.full_name, "")
    content_type = "application/json"
    if rpc.is_stream:
        content_type = "application/x-ndjson"
        comment = f"{comment} One message per line, both ways; an error is the last line.".strip()
    request = _content(_reference(method.input_type.full_name), content_type)
    reply = _content(_reference(method.output_type.full_name), content_type)
    return {
        **_operation(method.full_name, comment, request=request, reply=reply, error=_reference("connect.Error")),
        "summary": comment.partition(". ")[0].rstrip("."),
        "tags": [method.containing_service.name],
    }


def _upload_operation() -> Schema:
    parameters = {
        "collection": ("path", _STRING, "Name of the collection; it is created if it does not exist."),
        "name": ("query", _STRING, "Name of the file, or its path in a folder. Its suffix tells the format."),
        "keep": ("query", {"type": "boolean", "default": False}, "Keep documents that the file no longer contains."),
    }
    file = _content({"type": "string", "contentMediaType": FILE_TYPE}, FILE_TYPE)
    operation = _operation("files.upload", UPLOAD_DESCRIPTION, request=file, reply=_content(_OBJECT, NDJSON))
    listed = [
        {"name": name, "in": place, "required": name != "keep", "schema": schema, "description": text}
        for name, (place, schema, text) in parameters.items()
    ]
    return {**operation, "parameters": listed}


def _content(schema: Schema, content_type: str = "application/json") -> Schema:
    return {"content": {content_type: {"schema": schema}}}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _add_schemas(message: Descriptor, schemas: Schema) -> None:
    name = message.full_name
    if name in schemas:
        return
    if name in _WELL_KNOWN:
        schemas[name] = dict(_WELL_KNOWN[name])
        return
    properties = {field.json_name: _field(field) for field in message.fields}
    schemas[name] = _described({"type": "object", "additionalProperties": False, "properties": properties}, name)
    for field in message.fields:
        if field.message_type is not None:
            _add_schemas(field.message_type, schemas)
        if field.enum_type is not None:
            schemas[field.enum_type.full_name] = _enum(field.enum_type)


def _field(field: FieldDescriptor) -> Schema:
    named = field.message_type or field.enum_type
    schema = _SCALARS[field.type] if named is None else _reference(named.full_name)
    if field.is_repeated:
        schema = {"type": "array", "items": schema}
    members = [] if field.containing_oneof is None else field.containing_oneof.fields
    others = ", ".join(member.json_name for member in members if member is not field)
    return _described(schema, field.full_name, f" Excludes {others}." if others else "")


def _enum(enum: EnumDescriptor) -> Schema:
    names = [value.name for value in enum.values]
    meanings = {name: comments().get(f"{enum.full_name}.{name}") for name in names}
    lines = "".join(f"\n\n{name}: {meaning}" for name, meaning in meanings.items() if meaning)
    return _described({"type": "string", "enum": names}, enum.full_name, lines)


def _described(schema: Schema, name: str, more: str = "") -> Schema:
    return {**schema, "description": (comments().get(name, "") + more).strip()}
