"""Finds checkpoint folders and loads them, each by the task it names."""

import sys
from importlib import import_module
from pathlib import Path

from facets.errors import CheckpointError, NotFoundError
from facets.model.checkpoint import read_config
from facets.model.facet_model import FacetModel

__all__ = ["DEFAULT_MODEL", "LOADERS", "find_model", "load"]

DEFAULT_MODEL = "facets-en"

# Task of a checkpoint -> module and function that load its folder. By name,
# because the rooms of the tasks import this one; a new task is one line here.
LOADERS = {
    "sentences": ("facets.model.facet_model", "load_facet_model"),
    "relations": ("facets.relations.model", "load_relation_model"),
    "papers": ("facets.papers.model", "load_paper_model"),
}


def load(name_or_path: str | Path | None = None, *, device: str = "cpu") -> FacetModel:
    """Loads a model, offline.

    Args:
        name_or_path: A shipped model's name, or a checkpoint folder; None is the default model.
        device: ``cpu``, ``cuda``, ``cuda:1`` ...

    Returns:
        The model, ready to encode; a ``PaperModel`` where ``task`` is ``papers``, a ``RelationModel`` where it is
        ``relations``.

    Raises:
        NotFoundError: No model of that name, no such folder.
        CheckpointError: The folder is incomplete or damaged.
    """
    folder = find_model(DEFAULT_MODEL if name_or_path is None else name_or_path)
    task = read_config(folder).task
    if task not in LOADERS:
        raise CheckpointError(f"{folder}: expected a task of {', '.join(LOADERS)}, got {task!r}")
    module, function = LOADERS[task]
    model: FacetModel = getattr(import_module(module), function)(folder, device=device)
    return model


def find_model(name_or_path: str | Path) -> Path:
    """Folder of a model: the path itself, or the shipped model of that name.

    Shipped models lie in ``models/`` of a source checkout, or in ``share/facets/models`` of the
    environment that a wheel was installed into.

    Raises:
        NotFoundError: Neither exists; the message lists the shipped models.
    """
    path = Path(name_or_path)
    if path.is_dir():
        return path
    roots = [Path(__file__).parents[2] / "models", Path(sys.prefix) / "share" / "facets" / "models"]
    for root in roots:
        for folder in (root / path, root / "baselines" / path):
            if len(path.parts) == 1 and (folder / "config.json").is_file():
                return folder
    shipped = sorted({f.parent.name for root in roots for f in root.glob("**/config.json")})
    raise NotFoundError(
        f"no model {str(name_or_path)!r}: expected a checkpoint folder or one of {', '.join(shipped) or 'none here'}",
        resource_type="model",
        resource_name=str(name_or_path),
    )
