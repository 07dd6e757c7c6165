"""The description of all routes, OpenAPI 3.1; of rpcs it says what descriptors and comments of the protos say.

The generated code has no comments, so the proto files are read: one statement a line, as `buf format` leaves them. A
test holds the result against protoc's own.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

import facets
from facets_server.gateway.transcoding import Rpc, proto_sources, rpcs

_OPENS = re.compile(r"(message|enum|service|oneof)\s+(\w+)\s*\{")
_RPC = re.compile(r"rpc\s+(\w+)\s*\(")
_FIELD = re.compile(r"(?:repeated |optional )?[\w.]+(?:<[^>]*>)?\s+(\w+)\s*=\s*\d+")
_VALUE = re.compile(r"(\w+)\s*=\s*\d+")
Schema = dict[str, Any]
_TEXTS: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
_VECTOR: Schema = {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}]}
_ANY: Schema = {"type": "object", "additionalProperties": True}
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
def proto_comments() -> Mapping[str, str]:
    """Full name of a service, rpc, message, field or enum value -> its comment in one line."""
    found: dict[str, str] = {}
    for text in proto_sources():
        found.update(_comments_of(text))
    return found


def _comments_of(text: str) -> Iterator[tuple[str, str]]:
    package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    scopes = [package.group(1) if package is not None else ""]
    is_oneof = [False]
    comment: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("//"):
            comment.append(line.removeprefix("//").strip())
            continue
        name = _name_in(line)
        # The fields of a oneof belong to its message.
        scope = next(place for place, inside in zip(reversed(scopes), reversed(is_oneof), strict=True) if not inside)
        if name and comment:
            yield f"{scope}.{name}", " ".join(filter(None, comment))
        if line.endswith("{"):
            scopes.append(f"{scope}.{name}")
            is_oneof.append(line.startswith("oneof "))
        elif line.startswith("}"):
            scopes.pop()
            is_oneof.pop()
        comment = []


def _name_in(line: str) -> str:
    """What a line declares; empty: nothing."""
    opens = _OPENS.match(line)
    if opens is not None:
        return opens.group(2)
    found = _RPC.match(line) or _FIELD.match(line) or _VALUE.match(line)
    return found.group(1) if found is not None else ""


def _answer(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def _get(name: str, description: str, schema: Schema, **more: Any) -> Schema:
    operation = {"operationId": name, "description": description, "responses": {"200": _answer("Yes.", schema)}}
    return {"get": {**operation, **more}}


def _post(name: str, description: str, request: str, reply: Schema, error: str) -> Schema:
    body = {"required": True, "content": {"application/json": {"schema": _ref(request)}}}
    responses = {"200": _answer("The answer.", reply), "default": _answer("An error.", _ref(error))}
    return {"post": {"operationId": name, "description": description, "requestBody": body, "responses": responses}}


_STATUS = _object(("status",), status={"type": "string"}, reason={"type": "string"})
_UNREADY = {"200": _answer("Yes.", _STATUS), "503": _answer("No.", _STATUS)}

FIXED_SCHEMAS: dict[str, Schema] = {
    "connect.Error": _object(
        ("code",),
        code={"type": "string", "description": "As in the Connect protocol, e.g. invalid_argument."},
        message={"type": "string"},
        details={"type": "array", "items": _ANY},
    ),
    "openai.EmbeddingsRequest": {
        **_object(
            ("input",),
            input=_TEXTS,
            model={"type": "string", "description": "Name of a model; empty: the first of /v1/models."},
            encoding_format={"type": "string", "enum": ["float", "base64"]},
            dimensions={"type": "integer", "description": "Only the model's own."},
            user={"type": "string", "description": "Not used."},
            facets={"type": "boolean", "description": "Our own: give the facets of each text, too."},
        ),
        "additionalProperties": False,
    },
    "openai.Embeddings": _object(
        ("object", "data", "model", "usage"),
        object={"const": "list"},
        data={
            "type": "array",
            "items": _object(
                ("object", "index", "embedding"),
                object={"const": "embedding"},
                index={"type": "integer"},
                embedding=_VECTOR,
                facets={"type": "array", "items": _VECTOR},
                facet_spans={"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            ),
        },
        model={"type": "string"},
        usage=_object(
            ("prompt_tokens", "total_tokens"), prompt_tokens={"type": "integer"}, total_tokens={"type": "integer"}
        ),
    ),
    "openai.Models": _object(("object", "data"), object={"const": "list"}, data={"type": "array", "items": _ANY}),
    "openai.Error": _object(("error",), error=_ANY),
    "tei.EmbedRequest": {
        **_object(
            ("inputs",),
            inputs=_TEXTS,
            normalize={"type": "boolean", "default": True},
            truncate={"type": "boolean"},
            truncation_direction={"enum": ["Right", "right"]},
            prompt_name={"type": ["string", "null"]},
            dimensions={"type": ["integer", "null"]},
        ),
        "additionalProperties": False,
    },
    "tei.RerankRequest": {
        **_object(
            ("query", "texts"),
            query={"type": "string"},
            texts={"type": "array", "items": {"type": "string"}, "minItems": 1},
            raw_scores={"type": "boolean", "default": False, "description": "The score of search, not its confidence."},
            return_text={"type": "boolean", "default": False},
            truncate={"type": "boolean"},
            truncation_direction={"enum": ["Right", "right"]},
        ),
        "additionalProperties": False,
    },
    "rerank.Request": {
        **_object(
            ("query", "documents"),
            model={"type": "string", "description": "Name of a model; empty: the one of collections."},
            query={"type": "string"},
            documents={
                "type": "array",
                "items": {"anyOf": [{"type": "string"}, _object(("text",), text={"type": "string"})]},
                "minItems": 1,
            },
            top_n={"type": "integer", "minimum": 1},
            return_documents={"type": "boolean", "default": False},
            max_tokens_per_doc={"type": "integer", "description": "Not used: documents are read whole."},
            max_chunks_per_doc={"type": "integer", "description": "Not used."},
        ),
        "additionalProperties": False,
    },
    "rerank.Reply": _object(
        ("id", "model", "results", "meta", "usage"),
        id={"type": "string"},
        model={"type": "string"},
        results={
            "type": "array",
            "items": _object(
                ("index", "relevance_score"),
                index={"type": "integer"},
                relevance_score={"type": "number"},
                document=_object(("text",), text={"type": "string"}),
            ),
        },
        meta=_ANY,
        usage=_object(("total_tokens",), total_tokens={"type": "integer"}),
    ),
    "rerank.Error": _object(("message",), message={"type": "string"}),
    "tei.Error": _object(("error", "error_type"), error={"type": "string"}, error_type={"type": "string"}),
}

FIXED_PATHS: dict[str, Schema] = {
    "/v1/embeddings": _post(
        "openai.embeddings",
        "OpenAI's route: one vector a text.",
        "openai.EmbeddingsRequest",
        _ref("openai.Embeddings"),
        "openai.Error",
    ),
    "/v1/models": _get("openai.models", "OpenAI's route: models that embed texts.", _ref("openai.Models")),
    "/embed": _post(
        "tei.embed",
        "TEI's route: one vector a text, by the first of /v1/models.",
        "tei.EmbedRequest",
        {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        "tei.Error",
    ),
    "/rerank": _post(
        "tei.rerank",
        "TEI's route: texts in the order in which they answer a query.",
        "tei.RerankRequest",
        {
            "type": "array",
            "items": _object(
                ("index", "score"), index={"type": "integer"}, score={"type": "number"}, text={"type": "string"}
            ),
        },
        "tei.Error",
    ),
    "/v1/rerank": _post(
        "rerank",
        "Cohere's and Jina's route: documents in the order in which they answer a query.",
        "rerank.Request",
        _ref("rerank.Reply"),
        "rerank.Error",
    ),
    "/info": _get("tei.info", "TEI's route: the model of /embed.", _ANY),
    "/healthz": _get("live", "Does the gateway run?", _STATUS, security=[]),
    "/readyz": _get("ready", "Does the server behind it answer?", _STATUS, responses=_UNREADY, security=[]),
    "/health": _get("tei.health", "TEI's name of /readyz.", _STATUS, responses=_UNREADY, security=[]),
    "/openapi.json": _get("openapi", "This description.", _ANY, security=[]),
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
            "description": "Every rpc of Facets as JSON, and routes of OpenAI, TEI and Cohere.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}, {}],
        "paths": {**FIXED_PATHS, **paths},
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
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
