"""Model folders -> models to serve, each by the task its checkpoint names."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote

from facets.errors import NotFoundError
from facets.model.loading import DEFAULT_MODEL, find_model, load
from facets.papers.engine import PaperEngine
from facets.relations.contract import RelationModel
from facets.relations.engine import RelationEngine
from facets_server.papers.served import ServedPapers
from facets_server.relations.served import ServedRelations
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.model_registry import Served
from facets_server.texts.served import FacetModel, facts_of

__all__ = ["LoadedModels", "load_models", "task_folder"]

# Served besides the default model when no model is named, as far as they are installed.
_SHIPPED_TASK_MODELS = ("facets-relations-en", "facets-papers-en")


@dataclass(frozen=True, slots=True)
class LoadedModels:
    """What ``create_server`` takes.

    Attributes:
        texts: Models for sentences.
        others: Models of the other tasks.
    """

    texts: Sequence[FacetModel]
    others: Sequence[Served]


def load_models(config: ServerConfig) -> LoadedModels:
    """Loads the models the settings name, else those that are shipped.

    Raises:
        NotFoundError: There is no such model.
        CheckpointError: A folder is damaged.
        StorageError: What was added to a model at run time cannot be read.
    """
    texts: list[FacetModel] = []
    others: list[Served] = []
    for folder in _folders(config.models):
        model = load(folder)
        if model.task == "relations":
            others.append(_relations(model, config.data_dir))
        elif model.task == "papers":
            others.append(_papers(model, config.data_dir))
        else:
            texts.append(model)
    return LoadedModels(texts, others)


def _folders(names: Sequence[str]) -> list[Path]:
    if names:
        return [find_model(name) for name in names]
    folders = [find_model(DEFAULT_MODEL)]
    for name in _SHIPPED_TASK_MODELS:
        try:
            folders.append(find_model(name))
        except NotFoundError:
            continue  # not installed: its services say so
    return folders


def _relations(model: FacetModel, data_dir: Path) -> ServedRelations:
    scorer = RelationEngine(cast(RelationModel, model), data_dir=task_folder(data_dir, model.task, model.name))
    return ServedRelations(scorer, facts_of(model))


def _papers(model: FacetModel, data_dir: Path) -> ServedPapers:
    engine = PaperEngine(model, data_dir=task_folder(data_dir, model.task, model.name))
    return ServedPapers(engine, facts_of(model))


def task_folder(data_dir: Path, task: str, name: str) -> Path:
    """Where a model keeps what is added to it at run time."""
    return data_dir / task / quote(name, safe="")
