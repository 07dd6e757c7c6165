"""OpenAPI 3.1 description of all routes: rpcs from the descriptors of the protos, other routes from their fields."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from facets_proto import v1
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

import facets
from facets_server.gateway.compatible import RequestFields
from facets_server.gateway.openai import EmbeddingsRequest
from facets_server.gateway.protobuf_json import Rpc, rpcs
from facets_server.gateway.tei import CohereRerankRequest, TeiEmbedRequest, TeiRerankRequest

Schema = dict[str, Any]
_OBJECT: Schema = {"type": "object", "additionalProperties": True}
_NUMBER: Schema = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_STRING: Schema = {"type": "string"}
_LONG: Schema = {"type": ["string", "integer"]}
_SCALARS: Mapping[int, Schema] = {
    FieldDescriptor.CPPTYPE_INT32: {"type": "integer"},
    FieldDescriptor.CPPTYPE_UINT32: {"type": "integer"},
    FieldDescriptor.CPPTYPE_INT64: _LONG,
    FieldDescriptor.CPPTYPE_UINT64: _LONG,
    FieldDescriptor.CPPTYPE_DOUBLE: _NUMBER,
    FieldDescriptor.CPPTYPE_FLOAT: _NUMBER,
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_STRING: _STRING,
}
# Messages with a special JSON format.
_WELL_KNOWN: Mapping[str, Schema] = {
    "google.protobuf.Any": _OBJECT,
    "google.protobuf.Struct": _OBJECT,
    "google.protobuf.Value": {},
    "google.protobuf.ListValue": {"type": "array", "items": {}},
    "google.protobuf.Duration": {"type": "string", "examples": ["1.5s"]},
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
# Path -> operation id, description and request.
_COMPATIBLE_POSTS: Mapping[str, tuple[str, str, type[RequestFields]]] = {
    "/v1/embeddings": ("openai.embeddings", "OpenAI: one vector per text.", EmbeddingsRequest),
    "/embed": ("tei.embed", "TEI: one vector per text, by the first of /v1/models.", TeiEmbedRequest),
    "/rerank": ("tei.rerank", "TEI: texts ranked by how well they answer a query.", TeiRerankRequest),
    "/v1/rerank": ("rerank", "Cohere and Jina: documents ranked by how well they answer a query.", CohereRerankRequest),
}
_GETS = {
    "/v1/models": ("openai.models", "OpenAI: the models that embed texts."),
    "/info": ("tei.info", "TEI: the model of /embed."),
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
    for path, (name, text, fields) in _COMPATIBLE_POSTS.items():
        schemas[fields.__name__] = fields.model_json_schema()
        request = _json_content({"$ref": f"#/components/schemas/{fields.__name__}"})
        paths[path] = {"post": _operation(name, text, request=request)}
    for rpc in rpcs().values():
        paths[rpc.path] = {"post": _rpc_operation(rpc)}
        for message in (rpc.descriptor.input_type, rpc.descriptor.output_type):
            schemas.update(_schemas_of(message, schemas))
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


def _operation(name: str, description: str, *, request: Schema | None = None, reply: Schema | None = None) -> Schema:
    operation: Schema = {
        "operationId": name,
        "description": description,
        "responses": {
            "200": {"description": "The reply.", "content": reply or _json_content(_OBJECT)},
            "default": {"description": "An error.", "content": _json_content(_OBJECT)},
        },
    }
    if request is not None:
        operation["requestBody"] = {"required": True, "content": request}
    return operation


def _rpc_operation(rpc: Rpc) -> Schema:
    comment = comments().get(rpc.descriptor.full_name, "")
    content_type = "application/json"
    if rpc.is_stream:
        content_type = "application/x-ndjson"
        comment = f"{comment} One message per line, both ways; an error is the last line.".strip()
    request = {content_type: {"schema": _reference(rpc.descriptor.input_type)}}
    reply = {content_type: {"schema": _reference(rpc.descriptor.output_type)}}
    operation = _operation(rpc.descriptor.full_name, comment, request=request, reply=reply)
    operation["responses"]["default"]["content"] = _json_content({"$ref": "#/components/schemas/connect.Error"})
    return {
        **operation,
        "tags": [rpc.descriptor.containing_service.name],
        "summary": comment.partition(". ")[0].rstrip("."),
    }


def _json_content(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _reference(described: Descriptor | EnumDescriptor) -> Schema:
    return {"$ref": f"#/components/schemas/{described.full_name}"}


def _schemas_of(message: Descriptor, known: Mapping[str, Schema]) -> Schema:
    """Schemas of a message and of all nested types, except the known ones."""
    schemas: Schema = {}
    waiting = [message]
    while waiting:
        current = waiting.pop()
        if current.full_name in known or current.full_name in schemas:
            continue
        if current.full_name in _WELL_KNOWN:
            schemas[current.full_name] = dict(_WELL_KNOWN[current.full_name])
            continue
        properties = {field.json_name: _field(field) for field in current.fields}
        schema = {"type": "object", "additionalProperties": False, "properties": properties}
        schemas[current.full_name] = _described(schema, comments().get(current.full_name, ""))
        waiting += [field.message_type for field in current.fields if field.message_type is not None]
        for field in current.fields:
            if field.enum_type is not None:
                schemas[field.enum_type.full_name] = _enum(field.enum_type)
    return schemas


def _field(field: FieldDescriptor) -> Schema:
    if field.message_type is not None or field.enum_type is not None:
        schema = _reference(field.message_type or field.enum_type)  # type: ignore[arg-type]
    elif field.type == FieldDescriptor.TYPE_BYTES:
        schema = {"type": "string", "contentEncoding": "base64"}
    else:
        schema = _SCALARS[field.cpp_type]
    if field.is_repeated:
        schema = {"type": "array", "items": schema}
    comment = comments().get(field.full_name, "")
    others = (
        []
        if field.containing_oneof is None
        else [other for other in field.containing_oneof.fields if other is not field]
    )
    if others:
        comment = f"{comment} Excludes {', '.join(other.json_name for other in others)}.".strip()
    return _described(schema, comment)


def _enum(enum: EnumDescriptor) -> Schema:
    return _described({"type": "string", "enum": [value.name for value in enum.values]}, "\n\n".join(_enum_lines(enum)))


def _enum_lines(enum: EnumDescriptor) -> Iterator[str]:
    for name, label in [
        (enum.full_name, ""),
        *((f"{enum.full_name}.{value.name}", value.name) for value in enum.values),
    ]:
        comment = comments().get(name, "")
        if comment:
            yield f"{label}: {comment}" if label else comment


def _described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description} if description else schema
