"""What gRPC and HTTP do with callers that are silent or send too much."""

import asyncio
import socket

import grpc
import pytest
from facets_server.runtime.config import AdmissionConfig, LimitsConfig
from server_gateway_fakes import listening
from waiting import wait_until

EMBED = "/facets.v1.EmbeddingService/Embed"


class Grpc:
    """Calls that have sent no message."""

    def __init__(self, port: int) -> None:
        self.port = port

    def silent(self, num: int) -> list[str]:
        """Opens so many, and says how those ended that were ended."""

        async def run() -> list[str]:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{self.port}") as channel:
                calls = [channel.stream_unary(EMBED)() for _ in range(num)]
                await channel.channel_ready()
                await asyncio.wait([asyncio.ensure_future(call.code()) for call in calls], timeout=30)
                return [(await call.code()).name for call in calls]

        return asyncio.run(run())

    def large(self, num_bytes: int) -> str:
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel, pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary(EMBED)(b"x" * num_bytes, timeout=30)
        return raised.value.code().name


class Http:
    """Connections that have sent half a head."""

    def __init__(self, port: int, path: str) -> None:
        self.port = port
        self.path = path

    def silent(self, num: int) -> list[str]:
        connections = [socket.create_connection(("127.0.0.1", self.port), timeout=30) for _ in range(num)]
        for connection in connections:
            connection.sendall(f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\n".encode())
        return [status_of(connection) for connection in connections]

    def large(self, num_bytes: int) -> str:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        head = f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {num_bytes}\r\n\r\n".encode() + b"x" * num_bytes)
        return status_of(connection)


def status_of(connection: socket.socket) -> str:
    """Of the answer; empty: it was closed without one."""
    with connection:
        try:
            return connection.recv(100).decode()[9:12]
        except ConnectionResetError:
            return ""


@pytest.fixture
def listeners(make_server, monkeypatch):
    """Each with at most four silent ones, for half a second, and 5,000 bytes of a body."""
    monkeypatch.setattr(AdmissionConfig, "max_silent_calls", 4)
    server = make_server(
        admission=AdmissionConfig(message_timeout_s=0.5), limits=LimitsConfig(max_message_bytes=5000)
    ).server
    with listening(max_connections=4, read_timeout_s=0.5, max_body_bytes=5000) as port:
        yield {"gRPC": Grpc(server.port), "HTTP": Http(port, EMBED)}


@pytest.mark.parametrize(
    ("name", "gives_way", "too_slow", "too_large"),
    [("gRPC", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"), ("HTTP", "", "408", "413")],
)
def test_listeners_hold_their_bounds(listeners, name, gives_way, too_slow, too_large):
    listener = listeners[name]
    assert listener.silent(2) == [too_slow] * 2
    ends = listener.silent(12)
    assert ends.count(too_slow) <= 4 and ends.count(gives_way) >= 8
    wait_until(lambda: listener.large(6000) == too_large)
