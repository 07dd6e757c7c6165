"""The gateway before a server that only remembers what it was asked."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from facets_server.gateway.app import create_app
from facets_server.gateway.failures import CallFailedError
from facets_server.gateway.serving import Gateway, listen
from facets_server.gateway.upstream import Caller
from facets_server.runtime.config import HttpConfig, SecurityConfig, ServerConfig
from facets_server.runtime.limits import AdmissionConfig
from google.protobuf.message import Message
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

Answer = Message | CallFailedError | Exception


class FakeUpstream:
    """Answers each rpc as the test says.

    Attributes:
        answers: Path -> reply, or what fails; a function of the request's bytes gives either.
        asked: Path, request and caller of each call so far.
        waits: Calls wait for it when it is set.
        cancelled: Set once a waiting call has been cancelled.
    """

    def __init__(self, answers: dict[str, Answer | Callable[[bytes], Answer]] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[tuple[str, bytes, Caller]] = []
        self.waits = False
        self.cancelled = threading.Event()

    async def call(self, path: str, request: bytes, caller: Caller) -> bytes:
        self.asked.append((path, request, caller))
        if self.waits:
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()
        return self._answer(path, request)

    async def stream(self, path: str, requests: AsyncIterator[bytes], caller: Caller) -> AsyncIterator[bytes]:
        async for request in requests:
            self.asked.append((path, request, caller))
            yield self._answer(path, request)

    async def close(self) -> None:
        pass

    def _answer(self, path: str, request: bytes) -> bytes:
        answer = self.answers[path]
        answer = answer(request) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return answer.SerializeToString()


class Browser:
    """A client of an application in this process, and the application's metrics."""

    def __init__(self, upstream: FakeUpstream, config: ServerConfig) -> None:
        self.upstream = upstream
        self.registry = CollectorRegistry()
        app = create_app(upstream, config, registry=self.registry)  # type: ignore[arg-type]
        self.client = TestClient(app, base_url="http://localhost", client=("192.0.2.7", 5000))

    def metric(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0


def browser(answers: dict | None = None, *, host: str = "127.0.0.1", **http: object) -> Browser:
    return Browser(FakeUpstream(answers), ServerConfig(host=host, http=HttpConfig(port=0, **http)))


@contextmanager
def listening(
    *,
    security: SecurityConfig | None = None,
    max_request_bytes: int = 2**28,
    target: str = "127.0.0.1:1",
    **http: object,
) -> Iterator[int]:
    """A gateway on a port of its own, before a server that is not there or at a target; gives the port."""
    config = ServerConfig(
        http=HttpConfig(port=0, **http),
        security=security or SecurityConfig(),
        admission=AdmissionConfig(max_request_bytes=max_request_bytes),
        drain_s=1.0,
    )
    gateway = Gateway(target, config)
    bound = listen(config.host, config.http)
    thread = threading.Thread(target=lambda: asyncio.run(gateway.serve(bound)), daemon=True)
    thread.start()
    try:
        yield bound.getsockname()[1]
    finally:
        gateway.stop()
        thread.join(30)
        assert not thread.is_alive()
