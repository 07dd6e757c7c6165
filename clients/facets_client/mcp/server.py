"""The MCP server: which tools it offers, how they fail, and its two transports."""

import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import ValidationError

from facets_client.client import FacetsClient
from facets_client.core.extras import DISTRIBUTION, version_of
from facets_client.errors import NotFoundError
from facets_client.mcp.tools import Tools

_INSTRUCTIONS = """\
Facets searches collections of the user's own documents. Search before you answer a question about them, and cite the
title and page of what you use. Each hit has the sentence that answers and a confidence. If search finds nothing
relevant, tell the user so instead of guessing. The default collection is {collection!r}.
"""
_READ = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


class FacetsMcpServer(MCPServer[Any]):  # type: ignore[misc]
    """Server of the tools over a Facets server.

    Args:
        connect: Makes the client of a call.
        explain: The sentence that tells the user what went wrong; None: a bug.
        collection: Name of the collection for calls that name none.
        write: Whether to offer ``add_documents``; the other tools only read.
    """

    def __init__(
        self,
        connect: Callable[[], FacetsClient],
        explain: Callable[[BaseException], str | None],
        *,
        collection: str,
        write: bool,
    ) -> None:
        super().__init__(
            "facets",
            title="Facets",
            version=version_of(DISTRIBUTION),
            instructions=_INSTRUCTIONS.format(collection=collection),
            log_level="ERROR",
        )
        self._explain = explain
        tools = Tools(connect, collection=collection)
        reading = (tools.search, tools.list_collections, tools.get_document, tools.summarize)
        for tool in (*reading, tools.extract_relations, tools.recommend_reviewers):
            self.add_tool(tool, annotations=_READ)
        if write:
            self.add_tool(tools.add_documents, annotations=_WRITE)

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Runs a tool; a failure that the caller can act on is a ToolError with one sentence."""
        known = (self._tool_input_schema(name) or {}).get("properties", arguments)
        unknown = sorted(arguments.keys() - known.keys())
        if unknown:
            raise ToolError(f"unknown argument {unknown[0]!r}, expected some of {', '.join(known)}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            sentence = _first_problem(cause) if isinstance(cause, ValidationError) else cause and self._explain(cause)
            if not sentence:
                raise
            if isinstance(cause, NotFoundError) and cause.resource_type == "collection":
                sentence += ": list_collections names those that do"
            raise ToolError(sentence) from cause

    def listen(self, host: str, port: int) -> None:
        """Serves streamable HTTP at ``/mcp`` until a signal; OSError when the port cannot be used.

        On loopback, requests must name this machine as host, so that web pages cannot reach it by a name of theirs.
        """
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        app = self.streamable_http_app(host=host)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[bound])


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name, *steps = map(str, problem["loc"])
    message = problem["msg"].replace("Input should", "must", 1).removeprefix("Value error, ")
    return f"{name}{''.join(f'[{step}]' for step in steps)}: {message[0].lower()}{message[1:]}"
