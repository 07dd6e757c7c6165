"""The room of papers."""

from pathlib import Path

from facets.model.loading import load
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.store import SCHEMA
from facets_server.papers.collection_papers import CollectionPapers
from facets_server.papers.served import ServedPapers
from facets_server.papers.service import RecommendationService
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.rooms import PlaceOf, Room, ServerParts


def _serve(folder: Path, _: ServerConfig, __: BatchMetrics, place_of: PlaceOf) -> ServedPapers:
    model = load(folder, PaperModel)
    return ServedPapers(model, PaperEngine(model, data_dir=place_of(model.task, model.name)))


def _servicers(parts: ServerParts) -> list[object]:
    models, limits = parts.models.of(ServedPapers, "papers"), parts.config.limits
    papers = CollectionPapers(parts.engine, max_papers=limits.max_ranked_papers)
    return [RecommendationService(models, papers, limits)]


ROOM = Room(
    tasks=("papers",),
    serve={"papers": _serve},
    servicers=_servicers,
    stores={"papers/*/recommendation.sqlite3": SCHEMA},
)
