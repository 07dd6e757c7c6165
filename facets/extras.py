"""Says which extra is missing instead of a bare ``No module named 'torch'``."""

import importlib.util

# What package indexes call the library; `facets` there is somebody else's.
DISTRIBUTION = "multifacet"


def install_command(extra: str) -> str:
    """What a user types to get an extra.

    Example:
        >>> install_command("model")
        "pip install 'multifacet[model]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def missing_modules(*modules: str) -> list[str]:
    """Those of the top-level modules that are not installed."""
    return [name for name in modules if not _is_installed(name)]


def require_extra(extra: str, *modules: str) -> None:
    """Checks that the modules of an optional part are installed.

    ``extra``: name of the extra, as ``install_command`` takes it.

    Raises:
        ImportError: Names what is missing and the command that installs it.
    """
    missing = missing_modules(*modules)
    if missing:
        raise ImportError(f"{', '.join(missing)} not installed: {install_command(extra)}")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
