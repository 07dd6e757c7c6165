"""Loading what is compared: models by name, and what is there of the baselines."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from facets.errors import ConfigError, NotFoundError
from facets_lab.evaluation.task import Named

__all__ = ["if_installed", "load_systems"]

logger = logging.getLogger(__name__)

_NamedT = TypeVar("_NamedT", bound=Named)
_T = TypeVar("_T")


def load_systems(
    names_or_paths: Sequence[str], baselines: Sequence[str], load: Callable[[str | None], _NamedT]
) -> list[_NamedT]:
    """Models in the given order, or the shipped one, then the baselines that are there and not among them.

    Args:
        names_or_paths: What is asked for.
        baselines: Names of shipped models; one that is missing is left out, with a warning.
        load: Loads one; None is the shipped one.

    Raises:
        ConfigError: Two have the same name.
        NotFoundError: One that was asked for does not exist.
        CheckpointError: One is damaged.
        InvalidInputError: One is for another task.
    """
    models: dict[str, _NamedT] = {}
    for name_or_path in names_or_paths or (None,):
        model = load(name_or_path)
        if model.name in models:
            raise ConfigError(f"models must have distinct names, got {model.name!r} twice")
        models[model.name] = model
    for name in baselines:
        if name in models:
            continue
        try:
            models[name] = load(name)
        except NotFoundError as error:
            logger.warning("the baseline %s is left out: %s", name, error)
    return list(models.values())


def if_installed(name: str, make: Callable[[], _T]) -> list[_T]:
    """What ``make`` gives, or nothing, with a warning, when a package of it is missing."""
    try:
        return [make()]
    except ImportError as error:
        logger.warning("the baseline %s is left out: %s", name, error)
        return []
