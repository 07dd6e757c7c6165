"""One vector a text, and its facets on demand: what the routes of OpenAI and of TEI answer with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from facets_proto.v1 import common_pb2, models_pb2, texts_pb2
from numpy.typing import NDArray

from facets_server.gateway.failures import CallFailedError
from facets_server.gateway.upstream import Caller, Upstream

__all__ = ["EmbeddedTexts", "embed", "listed_models", "renamed"]

_EMBED = "/facets.v1.EmbeddingService/Embed"
_LIST = "/facets.v1.ModelService/ListModels"
_TASKS = ("passages", "sentences")


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """Texts as vectors.

    Attributes:
        model: Name of the model that answered.
        vectors: ``[texts, D]``, float32.
        facets: Of each text ``[its facets, D]``, float32.
        spans: Of each text where its facets stand, ``(start, end)``; none where facets have no place.
        num_tokens: Tokens read of all texts.
    """

    model: str
    vectors: NDArray[np.float32]
    facets: list[NDArray[np.float32]]
    spans: list[list[tuple[int, int]]]
    num_tokens: int


async def embed(upstream: Upstream, texts: Sequence[str], model: str, caller: Caller) -> EmbeddedTexts:
    """Embeds texts.

    Args:
        upstream: The gRPC server.
        texts: At least one.
        model: Name of the model; empty: the first of ``listed_models``, whose vectors are best compared.
        caller: For whom.

    Raises:
        CallFailedError: The server refuses them.
    """
    if not model:
        model = next((found.name for found in await listed_models(upstream, caller)), "")
    request = texts_pb2.EmbedRequest(texts=texts, model=model, include_vectors=True, include_spans=True)
    data = await upstream.call(_EMBED, request.SerializeToString(), caller)
    reply = texts_pb2.EmbedResponse.FromString(data)
    facets = _array(reply.facet_embeddings)
    are_there: list[NDArray[np.bool_]] = list(np.any(facets, axis=2))  # a short text has fewer than K
    spans = [[(span.start, span.end) for span in found.spans] for found in reply.facet_spans]
    return EmbeddedTexts(
        model=reply.model.name,
        vectors=_array(reply.vectors),
        facets=[of_text[there] for of_text, there in zip(facets, are_there, strict=True)],
        spans=[
            [span for span, is_there in zip(of_text, there, strict=True) if is_there]
            for of_text, there in zip(spans, are_there, strict=True)
        ]
        if spans
        else [],
        num_tokens=sum(stats.num_tokens for stats in reply.token_stats),
    )


async def listed_models(upstream: Upstream, caller: Caller) -> list[models_pb2.Model]:
    """The models that embed texts, first the one that answers where none is named.

    Raises:
        CallFailedError: The server refuses the call.
    """
    data = await upstream.call(_LIST, models_pb2.ListModelsRequest().SerializeToString(), caller)
    models = models_pb2.ListModelsResponse.FromString(data).models
    of_texts = (model for model in models if model.task in _TASKS)
    return sorted(of_texts, key=lambda model: (_TASKS.index(model.task), not model.is_default))


def renamed(failure: CallFailedError, name: str) -> str:
    """The message of a failure in which the texts are called as the route calls them."""
    rest = failure.message.removeprefix("texts")
    return name + rest if rest != failure.message else failure.message


def _array(array: common_pb2.FacetArray) -> NDArray[np.float32]:
    return np.frombuffer(array.data, dtype="<f4").reshape(tuple(array.shape))
