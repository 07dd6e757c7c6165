"""The rooms of the server: the models each room serves and how, its services, and its stores.

Each room has a module ``room`` with one ``ROOM``. The names of services and methods come from the servicers' generated
base classes.
"""

import sys
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
from facets.storage.database import Schema
from facets.storage.sql import SqlDatabase
from facets_server.runtime.admission import Admission
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics, CallMetrics, RecallMetrics
from facets_server.runtime.models import ModelRegistry, ServedModel

PlaceOf = Callable[[str, str], Path | SqlDatabase]  # task and name of a model -> where its additions are stored
Serve = Callable[[Path, ServerConfig, BatchMetrics, PlaceOf], ServedModel[Any]]  # checkpoint folder -> served model
# Folders with a module ``room``, in the order of the models and services.
_NAMES = ("texts", "documents", "relations", "papers")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerParts:
    """What servicers are built from; once the server has stopped, ``closing`` closes what the rooms have opened."""

    models: ModelRegistry
    engine: CollectionEngine
    admission: Admission
    config: ServerConfig
    closing: ExitStack
    metrics: CallMetrics
    recall: RecallMetrics


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """One room of the server."""

    tasks: tuple[str, ...]  # whose models its services use; health follows these models
    servicers: Callable[[ServerParts], Sequence[object]]  # each a subclass of one generated ``<Name>Servicer``
    serve: Mapping[str, Serve] = field(default_factory=dict)  # how to serve a model of each task of this room
    # File patterns in the data directory -> schemas. A store that refers to another comes before it.
    stores: Mapping[str, Schema] = field(default_factory=dict)


@cache
def rooms() -> tuple[Room, ...]:
    """The rooms, in the order of their models and services."""
    return tuple(import_module(f"facets_server.{name}.room").ROOM for name in _NAMES)


def load_models(
    config: ServerConfig, metrics: BatchMetrics, shared: SqlDatabase | None = None
) -> list[ServedModel[Any]]:
    """Loads the models that the settings name, else the shipped ones, in the order of the rooms.

    ``shared`` is the database for additions at run time; None: files in the data directory.
    """
    serve = {task: how for room in rooms() for task, how in room.serve.items()}

    def place_of(task: str, name: str) -> Path | SqlDatabase:
        return shared or config.data_dir / task / quote(name, safe="")

    folders = [find_model(name) for name in config.models] or _shipped_models()
    served = [serve[task_of(folder)](folder, config, metrics, place_of) for folder in folders]
    return sorted(served, key=lambda model: list(serve).index(model.info.task))


def _shipped_models() -> list[Path]:
    folders = [find_model(DEFAULT_MODEL)]
    for task in TASKS.values():
        try:
            folders.append(find_model(task.default))
        except NotFoundError:
            continue  # not installed: its services report that
    return list(dict.fromkeys(folders))


class Service:
    """One service, with its full name and its handlers by full name of the method.

    ``health``: the service is SERVING while this is true; None: no model serves it, and health does not list it. The
    attribute ``quick_calls`` of a servicer, if any, maps the name of each method that returns a ``PendingReply`` to a
    test for the small requests that the event loop may begin.
    """

    def __init__(self, servicer: object, health: Callable[[], bool] | None) -> None:
        self.health = health
        self.handlers: dict[str, Any] = {}
        base = next(base for base in type(servicer).__mro__ if base.__module__.endswith("_pb2_grpc"))
        # The generated code registers the handlers with this object, as with a server.
        getattr(sys.modules[base.__module__], f"add_{base.__name__}_to_server")(servicer, self)
        quick: dict[str, Callable[[Any], bool]] = getattr(servicer, "quick_calls", {})
        self.quick_calls = {f"/{self.name}/{method}": is_quick for method, is_quick in quick.items()}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Ignores the same handlers without their names."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Keeps the name of the service and its handlers."""
        self.name = service
        self.handlers = {f"/{service}/{method}": handler for method, handler in handlers.items()}


def services(parts: ServerParts) -> list[Service]:
    """The services of all rooms."""
    return [
        Service(servicer, parts.models.health_of(room.tasks)) for room in rooms() for servicer in room.servicers(parts)
    ]
