"""Loads models according to the task that their checkpoint names."""

from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Protocol, Self, TypeVar, overload

from facets.devices import compute_device
from facets.errors import CheckpointError, InvalidInputError
from facets.extras import require_extra
from facets.model.checkpoint import read_settings
from facets.model.contract import Model, ModelInfo
from facets.model.facet_model import FacetModel
from facets.model.shipped import ENCODER_PREFIX, find_model


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """How the models of a task are loaded."""

    model: str  # "module:class"; a string, because the task packages import this module
    default: str  # the shipped model used when the caller names none


# A new task with its own model class needs a line here.
TASKS = {
    "sentences": TaskEntry("facets.model.facet_model:FacetModel", "facets-en"),
    "passages": TaskEntry("facets.model.passage_model:PassageModel", "facets-passages-small-en"),
    "relations": TaskEntry("facets.relations.model:RelationModel", "facets-relations-en"),
    "papers": TaskEntry("facets.papers.model:PaperModel", "facets-papers-en"),
}
DEFAULT_MODEL = TASKS["sentences"].default


class _Loadable(Model, Protocol):
    @classmethod
    def describe(cls, folder: Path) -> ModelInfo: ...

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self: ...


ModelT = TypeVar("ModelT", bound=_Loadable)


@overload
def load(name_or_path: None = None, *, device: str = "cpu") -> FacetModel: ...
@overload
def load(
    name_or_path: str | Path,
    *,
    device: str = "cpu",
    allow_downloads: bool = False,
    trust_remote_code: bool = False,
    backend: str = "torch",
) -> Model: ...
@overload
def load(
    name_or_path: str | Path | None,
    kind: type[ModelT],
    *,
    device: str = "cpu",
    allow_downloads: bool = False,
    trust_remote_code: bool = False,
    backend: str = "torch",
) -> ModelT: ...
def load(
    name_or_path: str | Path | None = None,
    kind: type[_Loadable] | None = None,
    *,
    device: str = "cpu",
    allow_downloads: bool = False,
    trust_remote_code: bool = False,
    backend: str = "torch",
) -> Model:
    """Loads a model, offline unless ``allow_downloads``.

    ``name_or_path``: name of a shipped model, a checkpoint folder, or ``sentence-transformers:`` followed by the name
    or folder of any sentence-transformers encoder, which becomes a model of passages; None: the default model of
    ``kind``. ``kind``: expected class of the model: ``FacetModel``, ``PassageModel``, ``RelationModel`` or
    ``PaperModel``; None: any, and ``FacetModel`` when ``name_or_path`` is None too. ``device``: ``cpu``, ``cuda``,
    ``cuda:1`` and so on, or ``auto``: ``cuda`` if there is one.

    The other arguments are for encoders only. ``allow_downloads``: download an encoder that is not in the local cache.
    ``trust_remote_code``: run the Python code that the encoder brings. ``backend``: ``torch``, ``onnx`` or
    ``openvino``.

    Raises:
        ImportError: The ``model`` extra, or for encoders ``backbone``, is not installed.
        NotFoundError: There is no model of that name, no such folder, or the model is not installed.
        CheckpointError: The folder is incomplete or damaged, or needs ``trust_remote_code``.
        InvalidInputError: The model is for another task than ``kind``.
        ConfigError: There is no such device.

    Example:
        >>> from facets.model import FacetModel, load
        >>> load().name, load("facets-en", FacetModel).num_facets
        ('facets-en', 10)
    """
    expected = _task_of(kind or FacetModel)
    device = compute_device(device)
    if str(name_or_path).startswith(ENCODER_PREFIX):
        if kind is not None and expected != "passages":
            raise InvalidInputError(f"{name_or_path}: expected a model for {expected}, encoders are for passages")
        require_extra("backbone", "sentence_transformers")
        from facets.model.sentence_transformer import load_sentence_transformer

        return load_sentence_transformer(
            str(name_or_path).removeprefix(ENCODER_PREFIX),
            device=device,
            allow_downloads=allow_downloads,
            trust_remote_code=trust_remote_code,
            backend=backend,
        )
    folder = find_model(TASKS[expected].default if name_or_path is None else name_or_path)
    task = task_of(folder)
    if kind is not None and task != expected:
        raise InvalidInputError(f"{folder}: expected a model for {expected}, got one for {task}")
    model_class: type[_Loadable] = kind or resolve_name(TASKS[task].model)
    return model_class.from_folder(folder, device=device)


def describe(folder: Path) -> ModelInfo:
    """The description of the model in a checkpoint folder; its weights are not loaded. Raises as ``load``."""
    model_class: type[_Loadable] = resolve_name(TASKS[task_of(folder)].model)
    return model_class.describe(folder)


def task_of(folder: Path) -> str:
    """The task that a checkpoint names, a key of ``TASKS``; raises CheckpointError."""
    task = read_settings(folder).get("task")
    if task not in TASKS:
        raise CheckpointError(f"{folder}: expected a task of {', '.join(TASKS)}, got {task!r}")
    return str(task)


def _task_of(kind: type[_Loadable]) -> str:
    wanted = f"{kind.__module__}:{kind.__qualname__}"
    for task, entry in TASKS.items():
        if entry.model == wanted:
            return task
    raise TypeError(f"kind must be one of {', '.join(entry.model for entry in TASKS.values())}, got {wanted}")
