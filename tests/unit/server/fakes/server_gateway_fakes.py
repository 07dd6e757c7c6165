"""A gateway in front of a fake gRPC server, in this process or on a port."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import uvicorn
from facets_server.gateway.app import create_app
from facets_server.gateway.errors import CallError
from facets_server.gateway.server import make_server
from facets_server.gateway.upstream import Caller, Upstream
from facets_server.runtime.config import AdmissionConfig, HttpConfig, SecurityConfig, ServerConfig
from facets_server.runtime.hosts import listen
from google.protobuf.message import Message
from starlette.testclient import TestClient
from waiting import wait_until

Answer = Message | CallError | Exception


class FakeUpstream:
    """Answers each rpc as the test says.

    Attributes:
        answers: Path -> reply or error, or a function of the request's bytes that gives one.
        calls: Path, request and caller of each call.
    """

    def __init__(self, answers: dict[str, Answer | Callable[[bytes], Answer]] | None = None) -> None:
        self.answers = answers or {}
        self.calls: list[tuple[str, bytes, Caller]] = []

    async def call(self, path: str, request: bytes, caller: Caller) -> bytes:
        self.calls.append((path, request, caller))
        answer = self.answers[path]
        answer = answer(request) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return answer.SerializeToString()

    async def stream(self, path: str, requests: AsyncIterator[bytes], caller: Caller) -> AsyncIterator[bytes]:
        async for request in requests:
            yield await self.call(path, request, caller)


class Browser:
    """An HTTP client of an application in this process.

    Attributes:
        upstream: The fake gRPC server.
        client: The client.
    """

    def __init__(self, upstream: FakeUpstream, config: ServerConfig) -> None:
        self.upstream = upstream
        app = create_app(upstream, config)  # type: ignore[arg-type]
        self.client = TestClient(app, base_url="http://localhost", client=("192.0.2.7", 5000))


def browser(answers: dict | None = None, *, host: str = "127.0.0.1", **http: object) -> Browser:
    return Browser(FakeUpstream(answers), ServerConfig(host=host, http=HttpConfig(port=0, **http)))


@contextmanager
def listening(
    *,
    security: SecurityConfig | None = None,
    max_memory_bytes: int = 2**29,
    target: str = "127.0.0.1:1",
    **http: object,
) -> Iterator[int]:
    """A gateway on a port, which it yields. Without a target there is no gRPC server behind it."""
    config = ServerConfig(
        http=HttpConfig(port=0, **http),
        security=security or SecurityConfig(),
        admission=AdmissionConfig(max_memory_bytes=max_memory_bytes),
        drain_s=1.0,
    )
    bound = listen(config.host, 0, "http.port", timeout_s=config.http.read_timeout_s)
    gateways: list[uvicorn.Server] = []

    async def serve() -> None:
        upstream = Upstream(target)
        gateways.append(make_server(upstream, config))
        await gateways[0].serve([bound])
        await upstream.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        wait_until(lambda: gateways)
        yield bound.getsockname()[1]
    finally:
        gateways[0].should_exit = True
        thread.join(30)
        assert not thread.is_alive()
