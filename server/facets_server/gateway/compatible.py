"""Parts shared by the routes that follow other APIs: request fields, errors, embedding and reranking."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from facets_proto.v1 import models_pb2, texts_pb2
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from facets_server.gateway.errors import CallError, bad_request
from facets_server.gateway.protobuf_json import parse_json
from facets_server.gateway.rpc_routes import JSON, content_type_of
from facets_server.gateway.upstream import Backend

_TASKS = ("passages", "sentences")  # of models that embed texts, in the order of preference
_VENDOR_MODELS = ("text-embedding-", "embed-", "rerank-", "jina-")
_MAX_FIELD_CHARS = 40


class RequestFields(BaseModel):
    """Fields of a JSON body; unknown ones are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _as_list(value: object) -> object:
    if isinstance(value, list) and any(type(item) in (int, list) for item in value):
        raise ValueError("has token ids, expected texts: the models have their own tokenizers")
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[str], Field(min_length=1), BeforeValidator(_as_list, json_schema_input_type=str | list[str])]
"""One text, or a list of texts."""


class CompatibleRoute(Route):
    """A route of another API, with errors in its format; OpenAPI describes it by name, docstring and fields.

    ``texts`` is the API's name for ``texts`` in messages and field paths of the server, which ``error_body`` gets after
    the error. ``fields`` are those of a POST body; None: a GET route, whose handler gets no fields.
    """

    def __init__(
        self,
        path: str,
        name: str,
        handler: Callable[[Backend, Request, Any], Awaitable[object]],
        error_body: Callable[[CallError, str, str], dict[str, Any]],
        texts: str,
        fields: type[RequestFields] | None = None,
    ) -> None:
        self.description = handler.__doc__ or ""
        self.fields = fields

        async def endpoint(request: Request) -> Response:
            backend: Backend = request.app.state.backend
            try:
                given = fields and await _read_fields(backend, request, fields)
                return JSONResponse(await handler(backend, request, given))
            except CallError as error:
                message, field = (re.sub("^texts", texts, text) for text in (error.message, error.field))
                body = error_body(error, message, field)
                return JSONResponse(body, status_code=error.http_status, headers=error.headers)

        super().__init__(path, endpoint, methods=["POST" if fields else "GET"], name=name)


async def _read_fields(backend: Backend, request: Request, fields_type: type[RequestFields]) -> RequestFields:
    """Reads a JSON body; null counts as unset. The error's ``field`` is the first invalid one."""
    content_type_of(request, JSON)
    values = await backend.reader.body(request, parse_json)
    if not isinstance(values, dict):
        raise bad_request("the body is not a JSON object")
    try:
        return fields_type.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name, *steps = problem["loc"]
        field = str(name)[:_MAX_FIELD_CHARS] + "".join(f"[{step}]" for step in steps)
        message = problem["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
        if problem["type"] == "extra_forbidden":
            message = f"is unknown, expected some of {', '.join(sorted(fields_type.model_fields))}"
        raise bad_request(f"{field}: {message[0].lower()}{message[1:]}", field=field) from error


async def embed(
    backend: Backend, request: Request, texts: Sequence[str], *, dimensions: int | None, model: str, facets: bool
) -> texts_pb2.EmbedResponse:
    """Embeds texts; without ``facets`` at half the work. ``dimensions`` must be None or the model's."""
    message = texts_pb2.EmbedRequest(texts=texts, model=model, include_vectors=True)
    message.include_spans, message.vectors_only = facets, not facets
    reply: texts_pb2.EmbedResponse = await call(backend, request, "/facets.v1.EmbeddingService/Embed", message)
    dim = reply.vectors.shape[1]
    if dimensions not in (None, dim):
        raise bad_request(f"dimensions: is {dimensions}, the model has {dim}", field="dimensions")
    return reply


async def call(backend: Backend, request: Request, path: str, message: Any) -> Any:
    """Calls an rpc whose message names a model; see ``HttpConfig.vendor_models``."""
    try:
        return await backend.call(request, path, message)
    except CallError as error:
        if error.http_status != 404 or not message.model.startswith(_VENDOR_MODELS):
            raise
        if not backend.vendor_models:
            hint = "the setting http.vendor_models takes names of other vendors as the default model"
            raise CallError(error.code, f"{error.message}; {hint}") from error
    message.model = ""
    return await backend.call(request, path, message)


async def text_models(backend: Backend, request: Request) -> list[models_pb2.Model]:
    """The models that embed texts, the default one first."""
    reply = await backend.call(request, "/facets.v1.ModelService/ListModels", models_pb2.ListModelsRequest())
    models = [model for model in reply.models if model.task in _TASKS]
    return sorted(models, key=lambda model: (_TASKS.index(model.task), not model.is_default))
