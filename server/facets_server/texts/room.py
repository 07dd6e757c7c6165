"""The room of texts."""

from pathlib import Path

from facets.model.facet_model import FacetModel
from facets.model.loading import load
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.room import Room, ServerParts
from facets_server.texts.served import ServedTexts
from facets_server.texts.service import EmbeddingService, SimilarityService, SummarizationService

__all__ = ["ROOM"]


def _serve(folder: Path, config: ServerConfig, metrics: BatchMetrics) -> ServedTexts:
    return ServedTexts(load(folder, FacetModel), config.batcher, metrics)


def _servicers(parts: ServerParts) -> list[object]:
    models, limits = parts.models.of("sentences", ServedTexts), parts.config.limits
    return [
        EmbeddingService(models, parts.admission, limits, parts.config.admission.max_stream_window),
        SimilarityService(models, limits),
        SummarizationService(models, limits),
    ]


ROOM = Room(task="sentences", serve=_serve, servicers=_servicers)
