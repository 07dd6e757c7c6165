"""What package indexes call the client and the server; `facets` there is somebody else's."""

__all__ = ["DISTRIBUTION", "INSTALL_SERVER", "install_command"]

DISTRIBUTION = "multifacet-client"
INSTALL_SERVER = "pip install 'multifacet[server,models]'"


def install_command(extra: str) -> str:
    """What a user types to get an extra of the client.

    Example:
        >>> install_command("plot")
        "pip install 'multifacet-client[plot]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"
