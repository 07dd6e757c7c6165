"""Messages that never end, of ten callers at once: the memory of the server stays below what is promised."""

import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from server_process import ROOT, ServerProcess

h2_connection = pytest.importorskip("h2.connection")
h2_events = pytest.importorskip("h2.events")
h2_exceptions = pytest.importorskip("h2.exceptions")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs a server process of its own"),
]
UPSERT = "/facets.v1.DocumentService/Upsert"
EMBED_STREAM = "/facets.v1.EmbeddingService/EmbedStream"
MESSAGE_BYTES = 40 * 2**20 - 1000
SECONDS = 25.0
MB = 2**20


class GrpcAttacker(threading.Thread):
    """Begins messages on one connection, sends all of each but its last byte, and begins again when a call is ended."""

    def __init__(self, port: int, method: str, num_calls: int) -> None:
        super().__init__(daemon=True)
        self._method, self._num_calls = method, num_calls
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.settimeout(0.02)
        self._left: dict[int, int] = {}
        self._until = time.monotonic() + SECONDS

    def run(self) -> None:
        connection = h2_connection.H2Connection()
        connection.initiate_connection()
        with suppress(OSError, h2_exceptions.ProtocolError):
            while time.monotonic() < self._until:
                while len(self._left) < self._num_calls:
                    self._begin(connection)
                self._send(connection)
                self._socket.settimeout(None)
                self._socket.sendall(connection.data_to_send())
                self._socket.settimeout(0.02)
                with suppress(TimeoutError):
                    self._receive(connection)
        self._socket.close()

    def _begin(self, connection: object) -> None:
        stream = connection.get_next_available_stream_id()
        headers = {":method": "POST", ":scheme": "http", ":path": self._method, ":authority": "localhost"}
        connection.send_headers(stream, [*headers.items(), ("content-type", "application/grpc"), ("te", "trailers")])
        connection.send_data(stream, struct.pack(">BI", 0, MESSAGE_BYTES))
        self._left[stream] = MESSAGE_BYTES - 1

    def _send(self, connection: object) -> None:
        for stream, left in list(self._left.items()):
            window = min(left, connection.local_flow_control_window(stream), 2**20)
            while window > 0:
                part = min(window, connection.max_outbound_frame_size)
                connection.send_data(stream, bytes(part))
                self._left[stream] -= part
                window -= part

    def _receive(self, connection: object) -> None:
        for event in connection.receive_data(self._socket.recv(2**16)):
            if isinstance(event, (h2_events.StreamEnded, h2_events.StreamReset)):
                self._left.pop(event.stream_id, None)


def memory_of(pid: int) -> int:
    """Bytes that a process holds and does not share; 0 once it has ended."""
    with suppress(OSError):
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0
    return 0


def children_of(pid: int) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((path / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                yield int(path.name)


def promised_bytes() -> int:
    """What SECURITY.md says that calls take of memory at most, beside models and documents."""
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    found = re.search(r"at most ([0-9.]+) GiB in addition to models and documents", page)
    assert found
    return int(float(found[1]) * 2**30)


def test_messages_that_never_end_take_no_more_memory_than_promised(spawn: Callable[..., ServerProcess]) -> None:
    server = spawn()
    before = memory_of(server.process.pid)
    attackers = [GrpcAttacker(server.port, method, num_calls=10) for method in [UPSERT] * 8 + [EMBED_STREAM] * 2]
    for attacker in attackers:
        attacker.start()
    most = 0
    while any(attacker.is_alive() for attacker in attackers):
        most = max(most, memory_of(server.process.pid) - before)
        time.sleep(0.05)
    assert 200 * MB < most < promised_bytes(), f"{most / MB:.0f} MiB"
    server.wait_until_serving()
