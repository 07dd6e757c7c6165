"""ModelService: what the server serves, within which limits, and how it is."""

from datetime import UTC, datetime
from typing import Any

from facets_proto.v1 import models_pb2, models_pb2_grpc

from facets_server.runtime.call_context import CallContext
from facets_server.runtime.paging import page_of
from facets_server.runtime.replies import model_to_proto, server_status_to_proto
from facets_server.runtime.room import ServerParts
from facets_server.runtime.served_model import ServedModel
from facets_server.runtime.usage import disk_of

__all__ = ["ModelService"]


class ModelService(models_pb2_grpc.ModelServiceServicer):
    """The models, the limits, the state of the server."""

    def __init__(self, parts: ServerParts) -> None:
        """Begins the time that the server is up."""
        self._parts = parts
        self._models = parts.models
        self._config = parts.config
        self._started = datetime.now(tz=UTC)

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

    def GetServerStatus(
        self, request: models_pb2.GetServerStatusRequest, call: CallContext
    ) -> models_pb2.GetServerStatusResponse:
        """Load, disk, last backup."""
        return server_status_to_proto(self._parts, disk_of(self._config.data_dir), self._started)

    def _to_proto(self, served: ServedModel[Any]) -> models_pb2.Model:
        return model_to_proto(served.info, self._config, is_default=self._models.is_default(served))
