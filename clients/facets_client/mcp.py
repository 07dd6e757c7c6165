"""Tools for assistants by the Model Context Protocol (MCP); needs the extra ``mcp``.

Docstrings of tools and descriptions of fields are written for the assistant, which reads them.
"""

import socket
from collections.abc import Callable
from inspect import signature
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_jsonable_python

from facets_client.client import FacetsClient
from facets_client.core.drawing import count_of
from facets_client.core.extras import DISTRIBUTION, version_of
from facets_client.documents.results import in_text, is_sure, path_of
from facets_client.errors import NotFoundError
from facets_client.generated import types

_INSTRUCTIONS = """\
Facets searches collections of the user's own documents. Search before you answer a question about them, and cite the
source of what you use. Each hit has the sentence that answers and a confidence. If search finds nothing relevant, tell
the user so instead of guessing. The default collection is {collection!r}.
"""
_READ = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
_PASSAGE_CHARS = 1200
_PAGE_CHARS = 20_000
_MAX_ITEMS = 100

CollectionName = Annotated[str, Field(description="Name of the collection. Empty: the default collection.")]
DocumentId = Annotated[str, Field(description="Id of a document of the collection, as search gives it.")]


class Hit(BaseModel):
    """A document, or a part of one, that answers the query."""

    id: str
    source: str = Field(description="Title, headings above the passage, and page, to cite.")
    answer: str = Field(description="The sentence or table row that answers.")
    passage: str = Field(description="The text around the answer.")
    start: int = Field(description="First character of the part in the document, for get_document.")
    confidence: float | None = Field(description="Probability that the hit answers the query, 0 to 1.")


class Page(BaseModel):
    """A stretch of a document."""

    text: str
    num_chars: int = Field(description="Characters of the whole document.")
    next_start: int | None = Field(description="Where the rest begins; null: this is the end.")
    payload: dict[str, Any] = Field(description="Further fields of the document, such as title or url.")


class NewDocument(BaseModel):
    """A document to store."""

    id: str = Field(min_length=1, description="Identity in the collection, such as a file name or URL.")
    text: str = Field(min_length=1)
    payload: dict[str, Any] = Field({}, description="Further fields, such as title, author or url.")


class FacetsMcpServer(MCPServer[Any]):  # type: ignore[misc]  # its types are skipped, see pyproject.toml
    """Serves the tools. Each call makes a client of its own, so that a restarted Facets server is found again.

    ``explain`` returns the sentence that tells the user what went wrong; None: a bug. ``collection`` is the default
    one. The tools only read, except for ``add_documents``, which ``write`` offers.
    """

    def __init__(
        self,
        connect: Callable[[], FacetsClient],
        explain: Callable[[BaseException], str | None],
        *,
        collection: str,
        write: bool,
    ) -> None:
        instructions, version = _INSTRUCTIONS.format(collection=collection), version_of(DISTRIBUTION)
        super().__init__("facets", title="Facets", version=version, instructions=instructions, log_level="ERROR")
        self._connect = connect
        self._explain = explain
        self._collection = collection
        tools: list[Callable[..., CallToolResult]]
        tools = [self.search, self.list_collections, self.get_document, self.recommend_reviewers]
        tools += [self.add_documents] if write else []
        self._arguments = {tool.__name__: list(signature(tool).parameters) for tool in tools}
        for tool in tools:
            self.add_tool(tool, annotations=_WRITE if tool == self.add_documents else _READ)

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Runs a tool; a failure that the caller can act on is a ToolError with one sentence."""
        known = self._arguments.get(name, list(arguments))
        for argument in arguments:
            if argument not in known:
                raise ToolError(f"unknown argument {argument!r}, expected some of {', '.join(known)}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            sentence = _first_problem(cause) if isinstance(cause, ValidationError) else cause and self._explain(cause)
            if not sentence:
                raise
            if isinstance(cause, NotFoundError) and cause.resource_type == "collection":
                sentence += "; list_collections names those that exist"
            raise ToolError(sentence) from cause

    def listen(self, host: str, port: int, note: Callable[[str], None]) -> None:
        """Serves streamable HTTP at ``/mcp`` until a signal, and notes its URL; OSError when the port cannot be used.

        On loopback, requests must name this machine as host, so that web pages cannot reach it by a name of theirs.
        """
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        note(f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}/mcp")
        app = self.streamable_http_app(host=host)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[bound])

    def search(
        self,
        query: Annotated[str, Field(min_length=1, max_length=10_000, description="A question, or words to look for.")],
        collection: CollectionName = "",
        top_k: Annotated[int, Field(ge=1, le=20, description="Number of documents.")] = 5,
    ) -> Annotated[CallToolResult, list[Hit]]:
        """Find the documents of a collection that answer a question, each with the sentence that answers.

        Cite the sources that you use. If nothing relevant is found, say so; do not guess.
        """
        name = collection or self._collection
        with self._connect() as client:
            (found,) = client.search(name, [query], top_k=top_k)
        hits = [_hit(hit) for hit in found if is_sure(hit)]
        if not hits:
            return _result(f"Nothing relevant was found: no document of collection {name!r} answers the query.", [])
        heads = [f"{hit.source} (id {hit.id}{_sure(hit)})" for hit in hits]
        lines = [f"{head}\nAnswer: {hit.answer}\nPassage: {hit.passage}" for head, hit in zip(heads, hits, strict=True)]
        return _result("\n\n".join(lines), hits)

    def list_collections(self) -> Annotated[CallToolResult, list[types.Collection]]:
        """List the collections of documents that can be searched."""
        with self._connect() as client:
            found = client.list_collections()[:_MAX_ITEMS]
        lines = [f"{collection.name}: {count_of(collection.num_documents, 'document')}" for collection in found]
        return _result("\n".join(lines) or "There is no collection.", found)

    def get_document(
        self,
        id: DocumentId,
        collection: CollectionName = "",
        start: Annotated[int, Field(ge=0, description="First character to read.")] = 0,
    ) -> Annotated[CallToolResult, Page]:
        """Read a document, at most 20,000 characters a call; next_start says where to continue."""
        document = self._document(id, collection)
        num_chars, end = len(document.text), start + _PAGE_CHARS
        next_start = end if end < num_chars else None
        text = document.text[start:end]
        more = f"\n\n(continues at start={end} of {num_chars})" if next_start else ""
        page = Page(text=text, num_chars=num_chars, next_start=next_start, payload=dict(document.payload))
        return _result(text + more, page)

    def recommend_reviewers(
        self,
        title: Annotated[str, Field(min_length=1, description="Title of the paper.")],
        abstract: str = "",
        top_k: Annotated[int, Field(ge=1, le=50)] = 10,
        excluded: Annotated[tuple[str, ...], Field(description="Names to leave out, such as the authors.")] = (),
    ) -> Annotated[CallToolResult, list[types.RankedCandidate]]:
        """Find researchers who could review a paper, with the papers of theirs that are closest to it."""
        options = types.PaperOptions(top_k=top_k, excluded_ids=excluded, evidence=True)
        with self._connect() as client:
            (found,) = client.recommend_authors([types.Paper(title, abstract)], options)
        lines = []
        for author in found:
            papers = author.evidence.nearest_papers if author.evidence else ()
            lines.append(f"{author.name or author.id}{_sure(author)}: {'; '.join(paper.title for paper in papers)}")
        return _result("\n".join(lines) or "No reviewer was found.", found)

    def add_documents(
        self,
        documents: Annotated[list[NewDocument], Field(min_length=1, max_length=_MAX_ITEMS)],
        collection: CollectionName = "",
    ) -> Annotated[CallToolResult, int]:
        """Store documents. Replaces those with the same id, and creates the collection if it does not exist."""
        name = collection or self._collection
        with self._connect() as client:
            new = [types.Document(**document.model_dump()) for document in documents]
            client.add(new, collection=name, progress=False)
        return _result(f"Stored {count_of(len(documents), 'document')} in collection {name!r}.", len(documents))

    def _document(self, id: str, collection: str) -> types.Document:
        name = collection or self._collection
        with self._connect() as client:
            found = client.get_documents(name, [id])
        if not found.documents:
            raise ValueError(f"collection {name!r} has no document {id!r}: search gives ids")
        return found.documents[0]


def _hit(hit: types.SearchHit) -> Hit:
    answer, in_passage = hit.answer, in_text(hit)[0]
    row = "; ".join(map(": ".join, zip(answer.columns, answer.cells, strict=True))) if answer else ""
    first = max(0, in_passage.start - _PASSAGE_CHARS // 2) if in_passage else 0
    return Hit(
        id=hit.id,
        source=path_of(hit) or hit.id,
        answer=(row or (answer.text if answer else ""))[:_PASSAGE_CHARS],
        passage=hit.text[first : first + _PASSAGE_CHARS].strip(),
        start=hit.part.start,
        confidence=hit.confidence,
    )


def _sure(found: Hit | types.RankedCandidate) -> str:
    return "" if found.confidence is None else f", confidence {found.confidence:.2f}"


def _result(text: str, value: object) -> CallToolResult:
    """``text`` is for assistants that do not read structured results."""
    structured = to_jsonable_python(value)
    structured = structured if isinstance(value, Page) else {"result": structured}
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structured)


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name, *steps = problem["loc"]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    message = problem["msg"].replace("Input should", "must", 1).removeprefix("Value error, ")
    return f"{name}{path}: {message[0].lower()}{message[1:]}"
