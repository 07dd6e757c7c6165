"""The room of relations."""

from pathlib import Path

from facets.model.loading import load
from facets.relations.additions import SCHEMA
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets_server.relations.entities import EntityFinders
from facets_server.relations.served import ServedRelations
from facets_server.relations.service import RelationService
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.rooms import PlaceOf, Room, ServerParts


def _serve(folder: Path, _: ServerConfig, __: BatchMetrics, place_of: PlaceOf) -> ServedRelations:
    model = load(folder, RelationModel)
    return ServedRelations(model, RelationEngine(model, data_dir=place_of(model.task, model.name)))


def _servicers(parts: ServerParts) -> list[object]:
    models, config = parts.models.of(ServedRelations, "relations"), parts.config
    return [RelationService(models, EntityFinders(config.relations), config.limits)]


ROOM = Room(
    tasks=("relations",),
    serve={"relations": _serve},
    servicers=_servicers,
    stores={"relations/*/relations.sqlite3": SCHEMA},
)
