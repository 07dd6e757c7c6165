"""Names of the distributions, and errors for missing optional dependencies."""

import importlib.util

DISTRIBUTION = "multifacet-client"
INSTALL_LOCAL = "pip install 'multifacet[local]'"  # server, models, readers of files


def version_of(distribution: str) -> str:
    """Installed version; empty: not installed."""
    import importlib.metadata

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def require_extra(extra: str, *modules: str) -> None:
    """Raises ImportError, with the command that installs the extra, if one of its modules is missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"{', '.join(missing)} not installed: pip install '{DISTRIBUTION}[{extra}]'")
