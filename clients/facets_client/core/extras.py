"""What package indexes call the client and its extras, and which one is missing where a part needs it."""

import importlib.metadata
import importlib.util

DISTRIBUTION = "multifacet-client"
INSTALL_SERVER = "pip install 'multifacet[server,models]'"


def version_of(distribution: str) -> str:
    """The version that is installed; empty: none is."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def install_command(extra: str) -> str:
    """What a user types to get an extra of the client.

    Example:
        >>> install_command("files")
        "pip install 'multifacet-client[files]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def require_extra(extra: str, *modules: str) -> None:
    """Checks that the top-level modules of an optional part are installed.

    Raises:
        ImportError: Names what is missing and the command that installs it.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"{', '.join(missing)} not installed: {install_command(extra)}")
