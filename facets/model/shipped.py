"""Finds models by name: in ``models/`` of a checkout, or in the Python package of a shipped model."""

import os
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

from facets.errors import NotFoundError
from facets.extras import DISTRIBUTION

# Entry point group of model packages: model = "module whose folder holds a folder of that name".
PACKAGE_GROUP = "facets.models"

# The models that have their own package.
SHIPPED = (
    "facets-en",
    "facets-pairs-en",
    "facets-papers-en",
    "facets-passages-en",
    "facets-passages-small-en",
    "facets-reader-en",
    "facets-relations-en",
)
DEFAULT_READER = "facets-reader-en"
DEFAULT_PAIR_READER = "facets-pairs-en"
# Before the name or folder of a sentence-transformers encoder.
ENCODER_PREFIX = "sentence-transformers:"
CHECKOUT = Path(__file__).parents[2] / "models"


def served_name(name: str) -> str:
    """The name by which a loaded model is known, e.g. in requests.

    Example:
        >>> served_name("facets-en"), served_name("sentence-transformers:intfloat/multilingual-e5-small")
        ('facets-en', 'multilingual-e5-small')
    """
    return Path(name).name if name.startswith(ENCODER_PREFIX) else name


def package_of(name: str) -> str:
    """Name of the distribution of a shipped model."""
    return f"{DISTRIBUTION}-model-{name.removeprefix('facets-')}"


def find_model(name_or_path: str | Path) -> Path:
    """Folder of a model: the path itself, or the model of that name in a checkout's ``models/`` or in a package.

    Raises NotFoundError, which says what to install or which models are available.
    """
    name = str(name_or_path)
    if os.path.isdir(name):  # False, too, for what cannot be a path
        return Path(name)
    if name not in _available():
        _available.cache_clear()  # it may have been installed since
    folder = _available().get(name)
    if folder is None:
        raise NotFoundError(_missing(name), resource_type="model", resource_name=name)
    return folder


def borrowed_folder(folder: Path, place: str) -> Path:
    """Folder of another model whose parts a model uses; ``place``: its path relative to ``folder``, in ``config.json``.

    If there is no such folder, as with separately installed packages, the model of that name is used instead. Raises
    NotFoundError with what to install.
    """
    beside = (folder / place).resolve()
    name = Path(place).name
    if beside.is_dir() or (name not in SHIPPED and name not in _available()):
        return beside
    return find_model(name)


@cache  # looking into all installed packages takes 15 ms
def _available() -> dict[str, Path]:
    """Folders of the models in a checkout and in installed packages, by name; the checkout takes precedence."""
    folders: dict[str, Path] = {}
    for entry in entry_points(group=PACKAGE_GROUP):
        try:
            folder = Path(str(files(entry.module))) / entry.name
        except ModuleNotFoundError:  # the package was only partly removed
            continue
        if (folder / "config.json").is_file():
            folders.setdefault(entry.name, folder)
    for pattern in ("baselines/*/config.json", "*/config.json"):
        folders.update((file.parent.name, file.parent) for file in CHECKOUT.glob(pattern))
    return folders


def _missing(name: str) -> str:
    if name in SHIPPED:
        return f"the model {name} is not installed: pip install {package_of(name)}"
    if name.count("/") == 1 and not name.startswith((".", "/")):
        return f"no folder {name!r}: for an encoder of that name write {ENCODER_PREFIX}{name}"
    available = _available()
    others = [other for other in SHIPPED if other not in available]
    names = ", ".join(sorted(available)) or "none here"
    return f"no model {name!r}: expected a checkpoint folder, {ENCODER_PREFIX}NAME or one of {names}" + (
        f"; pip install {package_of(others[0])} brings {others[0]}" if others else ""
    )
