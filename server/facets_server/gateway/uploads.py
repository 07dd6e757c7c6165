"""The upload route: keeps a file in a temporary folder, reads it and stores its documents for the caller."""

import asyncio
import errno
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import grpc
from facets_client.documents.files import Columns, DocumentFiles
from facets_client.documents.results import AddedFiles
from facets_client.errors import FacetsClientError
from facets_client.load.formats import InputFile, safe_label
from facets_client.load.rows import ReadOptions
from facets_client.load.source import InputError
from starlette.requests import Request
from starlette.responses import Response

from facets_server.gateway.errors import CallError, bad_request
from facets_server.gateway.protobuf_json import json_line
from facets_server.gateway.request_body import discard
from facets_server.gateway.rpc_routes import NDJSON, LineResponse, content_type_of, with_last_error
from facets_server.gateway.upstream import Backend, Caller, caller_of
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import PermissionDeniedError
from facets_server.runtime.fair_queue import FairLock

UPLOAD_PATH = "/v1/collections/{collection}/files"
UPLOAD_DESCRIPTION = (
    'Stores the documents of a file, or of a ZIP archive of files. Each line of the reply is {"progress": '
    '{"num_documents"}}, about once a second, and the last one {"result": {"name", "num_added", "num_changed", '
    '"num_unchanged", "num_removed", "num_rejected", "num_documents", "rejected": [{"file", "line", "id", '
    '"reason", "message"}], "notes", "index_revision"}} or {"error"}.'
)
FILE_TYPE = "application/octet-stream"  # web pages of other origins cannot send it without permission
MAX_UPLOADS, MAX_UPLOADS_OF_CALLER = 4, 2  # at a time
_STORES = "/facets.v1.DocumentService/UpsertStream"  # the rpc whose rights an upload needs
_PROGRESS_S = 1.0
_MAX_NAME_BYTES = 1024
_MAX_NOTES = 20


class Uploads:
    """The handler of the route. ``max_bytes`` limits one file."""

    def __init__(self, backend: Backend, max_bytes: int) -> None:
        self._backend = backend
        self._max_bytes = max_bytes
        num_reserved = MAX_UPLOADS - MAX_UPLOADS_OF_CALLER
        self._places = FairLock(MAX_UPLOADS, num_reserved=num_reserved, max_waiting=0, refusal=_too_many)

    async def store(self, request: Request) -> Response:
        """Answers with lines of JSON; an error before the first line has an HTTP status of its own."""
        body = request.stream()
        try:
            return await self._store(request, body)
        except CallError:
            await discard(body)
            raise

    async def _store(self, request: Request, body: AsyncIterator[bytes]) -> Response:
        content_type_of(request, FILE_TYPE)
        key = self._backend.reader.check_key(request)
        upload = _Upload.of(request)
        try:
            key.check_method(_STORES)
            key.check_collection(upload.collection)
        except PermissionDeniedError as error:
            raise CallError.of_facets(error) from error
        lines = self._lines(request, body, upload, key.caller)
        first = await anext(lines)
        return LineResponse(with_last_error(first, lines), media_type=NDJSON)

    async def _lines(
        self, request: Request, body: AsyncIterator[bytes], upload: "_Upload", caller: str
    ) -> AsyncGenerator[bytes, None]:
        with self._places.acquire(CallContext(caller=caller)), TemporaryDirectory(prefix="facets-upload-") as folder:
            path = Path(folder, "file")
            await self._keep_body(request, body, path)
            notes, num_documents = list[str](), deque([0], maxlen=1)
            files = DocumentFiles([InputFile(str(path), upload.label)], Columns(), ReadOptions(note=notes.append))
            adding = asyncio.ensure_future(self._add(files, upload, num_documents.append))
            try:
                while not (await asyncio.wait({adding}, timeout=_PROGRESS_S))[0]:
                    yield json_line({"progress": {"num_documents": num_documents[-1]}})
                with _client_errors():
                    added = adding.result()
                yield json_line({"result": _result(upload.label, added, notes)})
            finally:
                adding.cancel()
                await asyncio.wait({adding})

    async def _add(self, files: DocumentFiles, upload: "_Upload", on_progress: Callable[[int], None]) -> AddedFiles:
        async with asyncio.timeout_at(upload.until), self._backend.upstream.client(upload.caller) as client:
            return await client.add_files(
                files, collection=upload.collection, keep=upload.keep, on_progress=on_progress
            )

    async def _keep_body(self, request: Request, body: AsyncIterator[bytes], path: Path) -> None:
        try:
            with path.open("xb") as file:
                async with aclosing(self._backend.reader.pieces(request, body, self._max_bytes)) as pieces:
                    async for piece in pieces:
                        await asyncio.to_thread(file.write, piece)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            message = "the disk for temporary files is full: free space on it, or start the server with another TMPDIR"
            raise CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, message, http_status=507) from error


class _Upload(NamedTuple):
    collection: str
    label: str  # name of the file, as its documents keep it
    keep: bool  # also the documents that the file no longer contains
    caller: Caller
    until: float | None  # deadline on the clock of the event loop

    @classmethod
    def of(cls, request: Request) -> "_Upload":
        given = request.query_params
        unknown = sorted({*given} - {"name", "keep"})
        if unknown:
            raise bad_request(f"parameter {unknown[0][:40]!r} is unknown, expected name and keep")
        if given.get("keep", "false") not in ("true", "false"):
            raise bad_request(f"parameter keep must be true or false, got {given['keep'][:40]!r}")
        caller = caller_of(request, timeout_s=None)
        until = None if caller.timeout_s is None else asyncio.get_running_loop().time() + caller.timeout_s
        keep = given.get("keep") == "true"
        return cls(request.path_params["collection"], _label_of(given.get("name", "")), keep, caller, until)


def _too_many() -> CallError:
    limits = f"{MAX_UPLOADS_OF_CALLER} of one caller and {MAX_UPLOADS} of all"
    message = f"too many uploads at a time, expected at most {limits}: try again"
    headers = {"Retry-After": "2", "Connection": "close"}
    return CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, message, headers=headers)


def _label_of(name: str) -> str:
    """The name of a file as its documents keep it: a relative path without control characters."""
    parts = name.replace("\\", "/").split("/")
    label = safe_label("/".join(part for part in parts if part not in ("", ".", "..")))
    if not label:
        raise bad_request(f"parameter name must be the name of the file, such as report.pdf, got {name[:40]!r}")
    if (num_bytes := len(label.encode())) > _MAX_NAME_BYTES:
        raise bad_request(f"parameter name has {num_bytes} bytes, the limit is {_MAX_NAME_BYTES}")
    return label


def _result(name: str, added: AddedFiles, notes: Sequence[str]) -> dict[str, object]:
    values = asdict(added)
    num_documents = added.num_added + added.num_changed + added.num_unchanged
    return {"name": name, "num_documents": num_documents, **values, "notes": notes[:_MAX_NOTES]}


@contextmanager
def _client_errors() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        message = "the file could not be stored within the deadline"
        raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, message) from error
    except FacetsClientError as error:
        if isinstance(error.__cause__, grpc.RpcError):
            raise CallError.of_grpc(error.__cause__) from error
        raise CallError(error.code, error.details) from error
    except InputError as error:
        raise bad_request(f"{error}; {error.hint}" if error.hint else str(error)) from error
    except ImportError as error:
        raise CallError(grpc.StatusCode.UNIMPLEMENTED, str(error)) from error
