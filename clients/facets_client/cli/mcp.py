"""``facets mcp``: tools for assistants."""

from typing import Annotated

import typer
from typer import Argument, Option

from facets_client.cli.failures import CommandError, command_error, server_failure
from facets_client.cli.settings import settings_of
from facets_client.core.extras import require_extra
from facets_client.errors import FacetsClientError

_ADDRESS = "127.0.0.1:8765"


def mcp(
    context: typer.Context,
    address: Annotated[
        str | None, Argument(metavar="HOST:PORT", help=f"With --http: where to listen.  [default: {_ADDRESS}]")
    ] = None,
    http: Annotated[bool, Option("--http", help="Serve streamable HTTP instead of standard input and output.")] = False,
    collection: Annotated[
        str, Option("--collection", "-c", envvar="FACETS_COLLECTION", help="Collection of calls that name none.")
    ] = "documents",
    write: Annotated[bool, Option("--write", help="Also offer a tool that stores documents.")] = False,
) -> None:
    """Serve documents to assistants by the Model Context Protocol (MCP).

    Assistants start this command themselves; docs/use/mcp.md shows the settings of each.

    \b
    Examples:
      facets mcp --collection handbook
      facets mcp --http 127.0.0.1:8765 --write
    """
    if address is not None and not http:
        raise typer.BadParameter(f"expected --http before {address!r}")
    host, _, port = (address or _ADDRESS).rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise typer.BadParameter(f"--http expects HOST:PORT, got {address!r}")
    require_extra("mcp", "mcp")
    from facets_client.mcp import FacetsMcpServer

    settings = settings_of(context)

    def explain(error: BaseException) -> str | None:
        if isinstance(error, FacetsClientError):
            error = server_failure(error, settings.server)
        failure = command_error(error)
        return failure.as_text() if failure else None

    server = FacetsMcpServer(settings.connect, explain, collection=collection, write=write)
    if not http:
        server.run()
        return
    try:
        server.listen(host.strip("[]"), int(port), settings.note)
    except OSError as error:
        raise CommandError(f"--http {host}:{port}: {error.strerror}") from error
