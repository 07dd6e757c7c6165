"""The room of texts."""

from pathlib import Path

from facets.devices import compute_device
from facets.documents import RelevanceCurve
from facets.model.facet_model import FacetModel
from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.rooms import PlaceOf, Room, ServerParts
from facets_server.texts.passages import ServedPassages
from facets_server.texts.served import ServedSentences, ServedTexts, text_models
from facets_server.texts.service import EmbeddingService, SimilarityService, SummarizationService, TopicService


def _serve_sentences(folder: Path, config: ServerConfig, metrics: BatchMetrics, _: PlaceOf) -> ServedTexts:
    model = load(folder, FacetModel, device=config.device)
    return ServedSentences(model, config.batcher, metrics, relevance=RelevanceCurve.read(folder, model.revision))


def _serve_passages(folder: Path, config: ServerConfig, metrics: BatchMetrics, _: PlaceOf) -> ServedTexts:
    model = PassageModel.shared(folder, device=compute_device(config.device))  # shared with models of papers
    return ServedPassages(model, config.batcher, metrics, relevance=RelevanceCurve.read(folder, model.revision))


def _servicers(parts: ServerParts) -> list[object]:
    limits = parts.config.limits
    models = {"sentences": text_models(parts.models, *_TASKS), "passages": text_models(parts.models, *_TASKS[::-1])}
    return [
        EmbeddingService(models["sentences"], parts.admission, limits),
        SimilarityService(models, limits),
        SummarizationService(models["sentences"], limits),
        TopicService(text_models(parts.models, "sentences"), limits),
    ]


_TASKS = ("sentences", "passages")
ROOM = Room(tasks=_TASKS, serve={"sentences": _serve_sentences, "passages": _serve_passages}, servicers=_servicers)
