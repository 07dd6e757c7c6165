"""What a room says about itself to the server: whose models it serves, how a folder becomes one, its services.

Each room has a module ``room`` with one ``ROOM``; ``facets_server.runtime.rooms`` is the table of them.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from facets.documents import CollectionEngine
from facets.storage import Schema
from facets_server.runtime.admission import Admission
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics, CallMetrics, RecallMetrics
from facets_server.runtime.model_registry import ModelRegistry
from facets_server.runtime.served_model import ServedModel

__all__ = ["Room", "Serve", "ServerParts", "task_folder"]

Serve = Callable[[Path, ServerConfig, BatchMetrics], ServedModel[Any]]  # the folder of a checkpoint -> its model


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
