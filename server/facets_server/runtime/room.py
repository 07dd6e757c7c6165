"""What a room says about itself to the server: whose models it serves, how a folder becomes one, its services.

Each room has a module ``room`` with one ``ROOM``; ``facets_server.runtime.rooms`` is the table of them.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from facets.documents import CollectionEngine
from facets_server.runtime.admission import Admission
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.model_registry import ModelRegistry
from facets_server.runtime.served_model import ServedModel

__all__ = ["Room", "ServerParts", "task_folder"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerParts:
    """What servicers are made of.

    Attributes:
        models: Everything that is served.
        engine: The documents.
        admission: Who may open a stream.
        config: Checked settings.
        closing: What a room opens is closed when the server has stopped.
    """

    models: ModelRegistry
    engine: CollectionEngine
    admission: Admission
    config: ServerConfig
    closing: ExitStack


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """One room of the server.

    Attributes:
        task: Whose models its services answer with, a key of ``facets.model.loading.TASKS``; health follows these.
        serve: Folder of a checkpoint of that task -> model to serve; None: another room serves them.
        servicers: Each class extends one generated ``<Name>Servicer``.
    """

    task: str
    servicers: Callable[[ServerParts], Sequence[object]]
    serve: Callable[[Path, ServerConfig, BatchMetrics], ServedModel[Any]] | None = None


def task_folder(data_dir: Path, task: str, name: str) -> Path:
    """Where a model keeps what is added to it at run time."""
    return data_dir / task / quote(name, safe="")
