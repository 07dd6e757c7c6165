"""Model folders -> models to serve, each by the task its checkpoint names."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from facets.errors import CheckpointError, NotFoundError
from facets.model.checkpoint import read_config
from facets.model.facet_model import FacetModel
from facets.model.loading import DEFAULT_MODEL, TASKS, find_model, load
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets_server.papers.served import ServedPapers
from facets_server.relations.served import ServedRelations
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.served_model import ServedModel
from facets_server.texts.served import ServedTexts

__all__ = ["load_models", "task_folder"]


Serve = Callable[[Path, ServerConfig, BatchMetrics], ServedModel[Any]]


def load_models(config: ServerConfig, metrics: BatchMetrics) -> list[ServedModel[Any]]:
    """Loads the models the settings name, else those that are shipped; models of texts first.

    Raises:
        NotFoundError: There is no such model.
        CheckpointError: A folder is damaged.
        StorageError: What was added to a model at run time cannot be read.
    """
    served = [_serve_of(folder)(folder, config, metrics) for folder in _folders(config.models)]
    return sorted(served, key=lambda one: list(_SERVE).index(one.info.task))


def _serve_of(folder: Path) -> Serve:
    task = read_config(folder).task
    if task not in _SERVE:
        raise CheckpointError(f"{folder}: expected a task of {', '.join(_SERVE)}, got {task!r}")
    return _SERVE[task]


def _folders(names: Sequence[str]) -> list[Path]:
    if names:
        return [find_model(name) for name in names]
    folders = [find_model(DEFAULT_MODEL)]
    for task in TASKS:
        try:
            folders.append(find_model(TASKS[task].default))
        except NotFoundError:
            continue  # not installed: its services say so
    return list(dict.fromkeys(folders))


def _texts(folder: Path, config: ServerConfig, metrics: BatchMetrics) -> ServedTexts:
    return ServedTexts(load(folder, FacetModel), config.batcher, metrics)


def _relations(folder: Path, config: ServerConfig, metrics: BatchMetrics) -> ServedRelations:
    model = load(folder, RelationModel)
    return ServedRelations(model, RelationEngine(model, data_dir=task_folder(config.data_dir, model.task, model.name)))


def _papers(folder: Path, config: ServerConfig, metrics: BatchMetrics) -> ServedPapers:
    model = load(folder, PaperModel)
    return ServedPapers(model, PaperEngine(model, data_dir=task_folder(config.data_dir, model.task, model.name)))


# Task of a checkpoint -> how its folder becomes a served model. A new task is a line here.
_SERVE: dict[str, Serve] = {"sentences": _texts, "relations": _relations, "papers": _papers}


def task_folder(data_dir: Path, task: str, name: str) -> Path:
    """Where a model keeps what is added to it at run time."""
    return data_dir / task / quote(name, safe="")
