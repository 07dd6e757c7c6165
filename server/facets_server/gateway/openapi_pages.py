"""What the description says of the routes that are not rpcs."""

from typing import Any

__all__ = ["FIXED_PATHS", "FIXED_SCHEMAS"]

Schema = dict[str, Any]

_TEXTS: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
_VECTOR: Schema = {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}]}


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
    responses = {"200": _answer("The vectors.", reply), "default": _answer("An error.", _ref(error))}
    return {"post": {"operationId": name, "description": description, "requestBody": body, "responses": responses}}


_STATUS = _object(("status",), status={"type": "string"}, reason={"type": "string"})
_UNREADY = {"200": _answer("Yes.", _STATUS), "503": _answer("No.", _STATUS)}
_ANY: Schema = {"type": "object", "additionalProperties": True}

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
    "/info": _get("tei.info", "TEI's route: the model of /embed.", _ANY),
    "/healthz": _get("live", "Does the gateway run?", _STATUS, security=[]),
    "/readyz": _get("ready", "Does the server behind it answer?", _STATUS, responses=_UNREADY, security=[]),
    "/health": _get("tei.health", "TEI's name of /readyz.", _STATUS, responses=_UNREADY, security=[]),
    "/openapi.json": _get("openapi", "This description.", _ANY, security=[]),
}
