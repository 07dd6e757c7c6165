"""Serves the metrics to Prometheus over HTTP, on a separate event loop.

The server of ``prometheus_client`` holds a thread for each connection, even if it never sends a request.
"""

import asyncio
import http
import re
import socket
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from facets.errors import ConfigError, FacetsError
from facets_server.runtime.errors import DeadlineExceededError
from facets_server.runtime.hosts import is_loopback, is_name_of
from facets_server.runtime.messages import WaitLimit

MAX_CONNECTIONS = 32  # waiting for a request, and as many again being answered
MAX_HEAD_BYTES = 8192
HEAD_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 10.0

_REQUEST = re.compile(rb"(GET|HEAD) (/|/metrics)(?:\?\S*)? HTTP/1\.[01]")
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]*?)[ \t]*\r\n", re.IGNORECASE)
_Reply = tuple[int, bytes]


class MetricsServer:
    """Serves a registry, without keys, on ``port``."""

    def __init__(
        self, registry: CollectorRegistry, host: str, port: int, *, allowed_hosts: Collection[str] = ()
    ) -> None:
        """Binds the port (0: any free one) and answers from now on.

        ``allowed_hosts``: accepted Host names besides addresses; empty: on loopback this machine's names, else any.

        Raises:
            ConfigError: The port cannot be used.
        """
        name = host.strip("[]")
        family = socket.AF_INET6 if ":" in name else socket.AF_INET
        try:
            self._socket = socket.create_server((name, port), family=family, dualstack_ipv6=name == "::")
        except OSError as error:
            raise ConfigError(f"metrics_port {port} on {host} cannot be used: {error.strerror}") from error
        self.port = int(self._socket.getsockname()[1])
        self._registry = registry
        self._is_local = is_loopback(host)
        self._allowed_hosts = frozenset(allowed_hosts)
        self._heads = WaitLimit("the head of the request", most=MAX_CONNECTIONS, timeout_s=HEAD_TIMEOUT_S)
        self._answers = WaitLimit("the reading of the answer", most=MAX_CONNECTIONS, timeout_s=ANSWER_TIMEOUT_S)
        self._collector = ThreadPoolExecutor(1, thread_name_prefix="metrics")  # collecting reads disks and sockets
        self._collecting: asyncio.Future[bytes] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="metrics-port", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result()

    def close(self) -> None:
        """Closes the port."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._collector.shutdown(wait=False)

    async def _begin(self) -> None:
        self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=MAX_HEAD_BYTES)

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(0)  # else drain does not wait for the caller
        try:
            status, body, is_head = 200, b"", False
            try:
                head = await self._heads.wait(reader.readuntil(b"\r\n\r\n"))
                is_head = head.startswith(b"HEAD ")
                status, body = await self._answer(head)
            except asyncio.LimitOverrunError:
                status = 431
            except DeadlineExceededError:
                status = 408
            await self._answers.wait(_send(writer, status, body, is_head=is_head))
        except (FacetsError, OSError, asyncio.IncompleteReadError):
            pass  # too many connections, or the client is too slow or gone
        finally:
            writer.transport.abort()

    async def _answer(self, head: bytes) -> _Reply:
        if not _REQUEST.match(head):
            return 400, b""
        hosts = _HOST.findall(head)
        if len(hosts) != 1 or not is_name_of(
            hosts[0].decode("latin-1"), self._allowed_hosts, only_local=self._is_local, or_address=True
        ):
            return 421, b""
        if self._collecting is None or self._collecting.done():  # concurrent requests share the answer
            self._collecting = self._loop.run_in_executor(self._collector, generate_latest, self._registry)
        return 200, await asyncio.shield(self._collecting)


async def _send(writer: asyncio.StreamWriter, status: int, body: bytes, *, is_head: bool) -> None:
    phrase = http.HTTPStatus(status).phrase
    kind = CONTENT_TYPE_LATEST if status == 200 else "text/plain; charset=utf-8"
    body = body or f"{phrase}\n".encode()
    head = (f"HTTP/1.1 {status} {phrase}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close")
    writer.write("\r\n".join((*head, "", "")).encode() + (b"" if is_head else body))
    await writer.drain()
    writer.write_eof()
