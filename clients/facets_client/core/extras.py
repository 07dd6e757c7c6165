"""Name of the client's distribution, and errors for missing optional dependencies."""

import importlib.metadata
import importlib.util

DISTRIBUTION = "multifacet-client"
INSTALL_SERVER = "pip install 'multifacet[server,models]'"


def version_of(distribution: str) -> str:
    """Installed version; empty: not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def install_command(extra: str) -> str:
    """The command that installs an extra of the client.

    Example:
        >>> install_command("files")
        "pip install 'multifacet-client[files]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def require_extra(extra: str, *modules: str) -> None:
    """Checks that the modules of an optional part are installed.

    Raises:
        ImportError: Names what is missing and the command that installs it.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"{', '.join(missing)} not installed: {install_command(extra)}")
