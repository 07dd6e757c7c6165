"""Files sent over HTTP: stored for the caller, refused before they are read, ended with the caller."""

import json
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from facets_server.gateway import uploads
from facets_server.runtime.config import SecurityConfig, ServerConfig
from server_gateway_fakes import listening
from waiting import wait_until

FILE_TYPE = {"content-type": "application/octet-stream"}
CSV = b"text,year\nA cat in the sun.,1921\nA dog and the sea.,1990\n"


class Gateway:
    """A gateway before a server with a fake model; files are kept in a folder of its own."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"

    def send(self, body: object = CSV, *, key: str = "none", deadline_ms: str = "60000", **parameters: str):
        headers = {**FILE_TYPE, "connect-timeout-ms": deadline_ms, "authorization": f"Bearer {key}"}
        path = f"{self.url}/v1/collections/notes/files"
        return httpx.post(path, params=parameters, content=body, headers=headers, timeout=30, trust_env=False)

    def begin(self, *, key: str = "none", length: int = 1000, sent: bytes = b"text\n") -> socket.socket:
        """A connection on which a part of a file has been sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        lines = ["POST /v1/collections/notes/files?name=a.csv HTTP/1.1", "Host: localhost"]
        lines += [f"Content-Length: {length}", "Content-Type: application/octet-stream"]
        lines += [f"Authorization: Bearer {key}", "", ""]
        connection.sendall("\r\n".join(lines).encode() + sent)
        return connection

    @property
    def kept(self) -> list[Path]:
        return list(self.folder.iterdir())


@pytest.fixture
def serve(make_server, tmp_path, monkeypatch):
    """Starts a server and its gateway: ``serve(keys=..., max_upload_bytes=...)``."""
    with ExitStack() as stack:

        def start(keys: str = "", **http: object):
            (tmp_path / "keys").write_text(keys)
            (tmp_path / "uploads").mkdir()
            monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "uploads"))
            security = SecurityConfig(api_keys_file=tmp_path / "keys" if keys else None)
            running = make_server(config=ServerConfig(security=security))
            port = stack.enter_context(listening(target=f"127.0.0.1:{running.server.port}", security=security, **http))
            return Gateway(port, tmp_path / "uploads"), running

        yield start


def received(connection: socket.socket, end: bytes) -> bytes:
    """What arrives up to a piece with ``end``."""
    data = b""
    while end not in data and (piece := connection.recv(65536)):
        data += piece
    return data


def last_line(reply: httpx.Response) -> dict:
    assert reply.headers["content-type"] == "application/x-ndjson", reply.text
    return json.loads(reply.text.splitlines()[-1])


def test_a_file_owns_its_documents(serve):
    gateway, running = serve()

    def stored() -> list[str]:
        return [item.id for item in running.engine.list_documents("notes").documents]

    result = last_line(gateway.send(name="sent/a.csv"))["result"]
    assert result.pop("index_revision") > 0 and "text from 'text'" in result.pop("notes")[0]
    counts = {"num_changed": 0, "num_unchanged": 0, "num_removed": 0, "num_rejected": 0, "num_documents": 2}
    assert result == {"name": "sent/a.csv", "num_added": 2, **counts, "rejected": []}
    assert running.engine.list_documents("notes").documents[0].payload == {"year": 1921}
    shorter = CSV.partition(b"A dog")[0] + b" ,1990\n"
    kept = last_line(gateway.send(shorter, name="sent/a.csv", keep="true"))["result"]
    assert (kept["num_unchanged"], kept["num_removed"], kept["num_rejected"]) == (1, 0, 1)
    (rejected,) = kept["rejected"]
    assert (rejected["file"], rejected["line"], rejected["reason"]) == ("sent/a.csv", 3, "empty_text")
    assert stored() == ["sent/a.csv#2", "sent/a.csv#3"]
    assert last_line(gateway.send(CSV[:31], name="sent/a.csv"))["result"]["num_removed"] == 1
    assert stored() == ["sent/a.csv#2"]
    assert gateway.kept == []


def test_a_deadline_holds(serve):
    gateway, running = serve()
    running.model.gate.clear()
    error = last_line(gateway.send(name="a.csv", deadline_ms="1200"))["error"]
    running.model.gate.set()
    assert error["code"] == "deadline_exceeded" and gateway.kept == []


@pytest.mark.parametrize(
    ("parameters", "headers", "status", "message"),
    [
        ({}, {}, 400, "name"),
        ({"name": "../.."}, {}, 400, "name"),
        ({"name": "x" * 2000}, {}, 400, "the limit is 1024"),
        ({"name": "a.csv", "force": "1"}, {}, 400, "'force' is unknown"),
        ({"name": "a.csv", "keep": "yes"}, {}, 400, "keep must be true or false"),
        ({"name": "a.csv"}, {"content-type": "text/plain"}, 415, "expected application/octet-stream"),
        ({"name": "a.csv"}, {"content-length": "5000"}, 413, "limit of 4000 bytes"),
        ({"name": "a.csv"}, {"authorization": "Bearer nobody"}, 401, "the key is unknown"),
        ({"name": "a.csv"}, {"authorization": "Bearer reader"}, 403, 'role "read"'),
        ({"name": "a.csv"}, {"authorization": "Bearer other"}, 403, "this collection"),
    ],
)
def test_what_is_wrong_is_said_before_the_body_is_read(shared_gateway, parameters, headers, status, message):
    url = httpx.URL("/v1/collections/notes/files", params=parameters)
    given = {**FILE_TYPE, "authorization": "Bearer writer", "host": "localhost", "content-length": "10", **headers}
    lines = [f"POST {url.raw_path.decode()} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    with socket.create_connection(("127.0.0.1", shared_gateway.port), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode())  # the body never comes
        reply = received(connection, b"}")
    assert int(reply.split()[1]) == status
    assert message in json.loads(reply.partition(b"\r\n\r\n")[2])["message"]


@pytest.fixture(scope="module")
def shared_gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "keys").write_text("reader read\nother write others\nwriter write\n")
    security = SecurityConfig(api_keys_file=folder / "keys")
    with listening(security=security, max_upload_bytes=4000) as port:
        yield Gateway(port, folder)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("../../etc/pass.txt", "etc/pass.txt"),
        ("C:\\notes\\a.txt", "C:/notes/a.txt"),
        ("/a\r\nSet-Cookie: x.txt", r"a\r\nSet-Cookie: x.txt"),
        ("gpj.\u202ecod.txt", r"gpj.\u202ecod.txt"),
        ("a\0b\ud7ff\u2028.txt", "a\\x00b\ud7ff\\u2028.txt"),
    ],
)
def test_a_name_is_only_a_label(serve, name, label):
    gateway, running = serve()
    assert last_line(gateway.send(b"A cat in the sun.", name=name))["result"]["name"] == label
    assert [document.id for document in running.engine.list_documents("notes").documents] == [label]


def test_a_broken_file_and_a_file_over_the_limit_are_refused_and_leave_nothing(serve):
    gateway, _ = serve(max_upload_bytes=4000)
    reply = gateway.send(b"no PDF", name="a.pdf")
    assert reply.status_code == 400 and "a.pdf" in reply.json()["message"]
    reply = gateway.send(iter([b"x" * 3000, b"x" * 3000]), name="a.txt")  # without a length in the headers
    assert reply.status_code == 413 and "4000 bytes" in reply.json()["message"]
    assert gateway.kept == []


def test_each_key_has_a_share_of_the_places_and_its_end_frees_them(serve):
    gateway, _ = serve(keys="one write\ntwo\nthree\n")
    with ExitStack() as stack:
        held = [stack.enter_context(gateway.begin(key="one")) for _ in range(uploads.MAX_UPLOADS_OF_CALLER)]
        wait_until(lambda: len(gateway.kept) == len(held))
        reply = gateway.send(name="a.csv", key="one")
        assert (reply.status_code, reply.headers["retry-after"]) == (429, "2")
        assert last_line(gateway.send(name="a.csv", key="two"))["result"]["num_documents"] == 2
        held += [stack.enter_context(gateway.begin(key="three")) for _ in range(uploads.MAX_UPLOADS - len(held))]
        wait_until(lambda: len(gateway.kept) == len(held))
        assert gateway.send(name="a.csv", key="two").status_code == 429
    wait_until(lambda: not gateway.kept)
    assert gateway.send(name="a.csv", key="one").status_code == 200


def test_a_slow_sender_is_ended(serve):
    gateway, _ = serve(read_timeout_s=0.3)
    with gateway.begin() as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 408 ")
    assert gateway.kept == []


def children() -> set[str]:
    """Processes that this one started: readers of files, and those of other tests."""
    return {child for file in Path("/proc/self/task").glob("*/children") for child in file.read_text().split()}


def test_work_and_the_reader_end_with_their_caller(serve):
    gateway, running = serve()
    others = children()
    running.model.gate.clear()
    body = b"text\n" + b"A cat in the sun.\n" * 200_000
    with gateway.begin(length=len(body), sent=body) as connection:
        assert b'{"progress":{"num_documents":0}}' in received(connection, b"progress")
        assert len(children() - others) == 1 and len(gateway.kept) == 1
    started = time.monotonic()
    wait_until(lambda: not gateway.kept and not children() - others)
    assert time.monotonic() - started < 2
    running.model.gate.set()


def test_a_full_disk_is_named(serve, monkeypatch):
    gateway, _ = serve()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    reply = gateway.send(name="a.csv")
    assert reply.status_code == 507 and "full" in reply.json()["message"]
