"""Model folders -> models to serve, each by the task its checkpoint names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from facets.errors import NotFoundError
from facets.model.checkpoint import read_config
from facets.model.contract import TextModel
from facets.model.facet_model import FacetModel
from facets.model.loading import DEFAULT_MODEL, TASKS, find_model, load
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets_server.papers.served import ServedPapers
from facets_server.relations.served import ServedRelations
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.model_registry import Served

__all__ = ["LoadedModels", "load_models", "task_folder"]


@dataclass(frozen=True, slots=True)
class LoadedModels:
    """What ``create_server`` takes.

    Attributes:
        texts: Models for sentences.
        others: Models of the other tasks.
    """

    texts: Sequence[TextModel]
    others: Sequence[Served]


def load_models(config: ServerConfig) -> LoadedModels:
    """Loads the models the settings name, else those that are shipped.

    Raises:
        NotFoundError: There is no such model.
        CheckpointError: A folder is damaged.
        StorageError: What was added to a model at run time cannot be read.
    """
    texts: list[TextModel] = []
    others: list[Served] = []
    for folder in _folders(config.models):
        task = read_config(folder).task
        if task in _SERVE:
            others.append(_SERVE[task](folder, config.data_dir))
        else:
            texts.append(load(folder, FacetModel))
    return LoadedModels(texts, others)


def _folders(names: Sequence[str]) -> list[Path]:
    if names:
        return [find_model(name) for name in names]
    folders = [find_model(DEFAULT_MODEL)]
    for task in _SERVE:
        try:
            folders.append(find_model(TASKS[task].default))
        except NotFoundError:
            continue  # not installed: its services say so
    return folders


def _relations(folder: Path, data_dir: Path) -> ServedRelations:
    model = load(folder, RelationModel)
    engine = RelationEngine(model, data_dir=task_folder(data_dir, model.task, model.name))
    return ServedRelations(engine, model)


def _papers(folder: Path, data_dir: Path) -> ServedPapers:
    model = load(folder, PaperModel)
    engine = PaperEngine(model, data_dir=task_folder(data_dir, model.task, model.name))
    return ServedPapers(engine, model)


# Task -> how a checkpoint folder becomes a served model; what is not here is a model of texts.
_SERVE: dict[str, Callable[[Path, Path], Served]] = {"relations": _relations, "papers": _papers}


def task_folder(data_dir: Path, task: str, name: str) -> Path:
    """Where a model keeps what is added to it at run time."""
    return data_dir / task / quote(name, safe="")
