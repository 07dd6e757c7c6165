"""Says which extra is missing instead of a bare ``No module named 'pypdf'``."""

import importlib.util

from facets_client.core.distribution import install_command

__all__ = ["require_extra"]


def require_extra(extra: str, *modules: str) -> None:
    """Checks that the modules of an optional part are installed.

    Args:
        extra: Name of the extra.
        modules: Top-level module names it needs.

    Raises:
        ImportError: Names what is missing and the command that installs it.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"{', '.join(missing)} not installed: {install_command(extra)}")
