"""Model folders -> models to serve, each by the room of the task its checkpoint names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from facets.errors import NotFoundError
from facets.model.loading import DEFAULT_MODEL, TASKS, task_of
from facets.model.shipped import find_model
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.rooms import ROOMS
from facets_server.runtime.served_model import ServedModel

__all__ = ["load_models"]

_SERVE = {task: serve for room in ROOMS for task, serve in room.serve.items()}


def load_models(config: ServerConfig, metrics: BatchMetrics) -> list[ServedModel[Any]]:
    """Loads the models the settings name, else those that are shipped; in the order of the rooms.

    Raises:
        NotFoundError: There is no such model.
        CheckpointError: A folder is damaged.
        StorageError: What was added to a model at run time cannot be read.
    """
    served = [_load(folder, config, metrics) for folder in _folders(config.models)]
    return sorted(served, key=lambda one: list(_SERVE).index(one.info.task))


def _load(folder: Path, config: ServerConfig, metrics: BatchMetrics) -> ServedModel[Any]:
    return _SERVE[task_of(folder)](folder, config, metrics)


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
