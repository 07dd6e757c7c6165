"""Imports of large packages: a missing one is reported with its extra instead of a bare ``No module named 'torch'``."""

import gc
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

# Name of the library on package indexes, where `facets` is another project.
DISTRIBUTION = "multifacet"


def install_command(extra: str) -> str:
    """The command that installs an extra.

    Example:
        >>> install_command("model")
        "pip install 'multifacet[model]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def missing_modules(*modules: str) -> list[str]:
    """The top-level modules that are not installed."""
    return [name for name in modules if not _is_installed(name)]


def require_extra(extra: str, *modules: str) -> None:
    """Raises ImportError if a module of an extra is missing; the message has the command that installs it."""
    missing = missing_modules(*modules)
    if missing:
        raise ImportError(f"{', '.join(missing)} not installed: {install_command(extra)}")


@contextmanager
def quick_imports() -> Iterator[None]:
    """Pauses the garbage collector, which takes a seventh of the time of large imports and finds nothing there."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                gc.freeze()  # with the next call: makes everything old without looking at it
                gc.unfreeze()
            gc.enable()


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
