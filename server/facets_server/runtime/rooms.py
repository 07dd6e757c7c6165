"""The table of the rooms, and what each says to the server: whose models it serves and how, its services, its stores.

Each room has a module ``room`` with one ``ROOM``.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from facets.documents import CollectionEngine
from facets.errors import NotFoundError
from facets.model.loading import DEFAULT_MODEL, TASKS, task_of
from facets.model.shipped import find_model
from facets.storage import Schema, SqlDatabase
from facets_server.runtime.admission import Admission
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics, CallMetrics, RecallMetrics
from facets_server.runtime.models import ModelRegistry, ServedModel

PlaceOf = Callable[[str, str], Path | SqlDatabase]  # task and name of a model -> where what is added to it is kept
Serve = Callable[[Path, ServerConfig, BatchMetrics, PlaceOf], ServedModel[Any]]  # folder of a checkpoint -> its model
# Folders of the server with a module ``room``, in the order of the models and services. A new task is a line here.
_NAMES = (
    "texts",
    "documents",
    "relations",
    "papers",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerParts:
    """What servicers are made of.

    Attributes:
        models: Everything that is served.
        engine: The documents.
        admission: Who may open a stream.
        config: Checked settings.
        closing: What a room opens is closed when the server has stopped.
        metrics: Where calls are counted.
        recall: Where checked searches are counted.
    """

    models: ModelRegistry
    engine: CollectionEngine
    admission: Admission
    config: ServerConfig
    closing: ExitStack
    metrics: CallMetrics
    recall: RecallMetrics


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """One room of the server.

    Attributes:
        tasks: Whose models its services answer with, keys of ``facets.model.loading.TASKS``; health follows these.
        servicers: Each class extends one generated ``<Name>Servicer``.
        serve: How the models of a task are served; of the other tasks another room does that.
        stores: Pattern of files in the data directory -> what they hold. What points at another store stands before it.
    """

    tasks: tuple[str, ...]
    servicers: Callable[[ServerParts], Sequence[object]]
    serve: Mapping[str, Serve] = field(default_factory=dict)
    stores: Mapping[str, Schema] = field(default_factory=dict)


def task_folder(data_dir: Path, task: str, name: str) -> Path:
    """Where a model keeps what is added to it at run time."""
    return data_dir / task / quote(name, safe="")


@cache
def rooms() -> tuple[Room, ...]:
    """The rooms, in the order of their models and services."""
    return tuple(import_module(f"facets_server.{name}.room").ROOM for name in _NAMES)


def load_models(
    config: ServerConfig, metrics: BatchMetrics, shared: SqlDatabase | None = None
) -> list[ServedModel[Any]]:
    """Loads the models the settings name, else those that are shipped; in the order of the rooms.

    Args:
        config: Checked settings.
        metrics: Of the batches.
        shared: Where servers keep what is added at run time; None: each in its data directory.

    Raises:
        NotFoundError: There is no such model.
        CheckpointError: A folder is damaged.
        StorageError: What was added to a model at run time cannot be read.
    """
    serve = {task: how for room in rooms() for task, how in room.serve.items()}

    def place_of(task: str, name: str) -> Path | SqlDatabase:
        return shared or task_folder(config.data_dir, task, name)

    served = [serve[task_of(folder)](folder, config, metrics, place_of) for folder in _folders(config.models)]
    return sorted(served, key=lambda one: list(serve).index(one.info.task))


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
