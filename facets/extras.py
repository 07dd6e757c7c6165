"""Says which extra is missing instead of a bare ``No module named 'torch'``."""

import importlib.util

__all__ = ["missing_modules", "require_extra"]


def missing_modules(*modules: str) -> list[str]:
    """Those of the top-level modules that are not installed."""
    return [name for name in modules if not _is_installed(name)]


def require_extra(extra: str, *modules: str) -> None:
    """Checks that the modules of an optional part are installed.

    Args:
        extra: Name of the extra, as in ``pip install 'facets[extra]'``.
        modules: Top-level module names it needs.

    Raises:
        ImportError: Names what is missing and the command that installs it.
    """
    missing = missing_modules(*modules)
    if missing:
        raise ImportError(f"{', '.join(missing)} not installed: pip install 'facets[{extra}]'")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
