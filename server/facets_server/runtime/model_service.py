"""ModelService: what the server serves and within which limits."""

from typing import Any

from facets_proto.v1 import models_pb2, models_pb2_grpc

from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.model_registry import ModelRegistry
from facets_server.runtime.paging import page_of
from facets_server.runtime.replies import model_to_proto
from facets_server.runtime.served_model import ServedModel

__all__ = ["ModelService"]


class ModelService(models_pb2_grpc.ModelServiceServicer):
    """The models and the limits."""

    def __init__(self, models: ModelRegistry, config: ServerConfig) -> None:
        self._models = models
        self._config = config

    def ListModels(self, request: models_pb2.ListModelsRequest, call: CallContext) -> models_pb2.ListModelsResponse:
        """All models, the default first."""
        page = page_of(
            self._models.all(),
            size=request.page_size,
            token=request.page_token,
            limit=self._config.limits.max_page_size,
        )
        return models_pb2.ListModelsResponse(
            models=[self._to_proto(served) for served in page.items], next_page_token=page.next_token
        )

    def GetModel(self, request: models_pb2.GetModelRequest, call: CallContext) -> models_pb2.GetModelResponse:
        """One model."""
        return models_pb2.GetModelResponse(model=self._to_proto(self._models.get(request.name)))

    def _to_proto(self, served: ServedModel[Any]) -> models_pb2.Model:
        return model_to_proto(served.info, self._config, is_default=self._models.is_default(served))
