"""Starting, overload, draining, crashing and coming back."""

import os
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

import grpc
import pytest
from facets_proto.v1 import documents_pb2, documents_pb2_grpc, texts_pb2, texts_pb2_grpc
from server_process import TOY_WORDS, run_server

pytestmark = pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs server processes of its own")

BATCH_SIZE = 20


def create(channel, name="docs"):
    stub = documents_pb2_grpc.CollectionServiceStub(channel)
    stub.CreateCollection(documents_pb2.CreateCollectionRequest(name=name), timeout=30)


def text_of(number):
    words = [TOY_WORDS[(number * (k + 3) + k) % len(TOY_WORDS)] for k in range(12)]
    return f"{' '.join(words)} {number}"


def batch_of(sequence):
    first = (sequence - 1) * BATCH_SIZE
    documents = [documents_pb2.Document(id=f"{first + i:06d}", text=text_of(first + i)) for i in range(BATCH_SIZE)]
    return documents_pb2.UpsertStreamRequest(
        batch=documents_pb2.UpsertStreamBatch(sequence=sequence, documents=documents)
    )


def opening(token=""):
    return documents_pb2.UpsertStreamRequest(open=documents_pb2.UpsertStreamOpen(collection="docs", resume_token=token))


def count(channel):
    stub = documents_pb2_grpc.DocumentServiceStub(channel)
    return stub.CountDocuments(documents_pb2.CountDocumentsRequest(collection="docs"), timeout=30).num_documents


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="a thread is named by Linux alone")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_server_whichever_thread_gets_it(spawn, number):
    server = spawn()
    threads = sorted(int(path.name) for path in Path(f"/proc/{server.process.pid}/task").iterdir())
    os.kill(next(thread for thread in threads if thread != server.process.pid), number)
    assert server.process.wait(30) == 0


def test_nothing_acknowledged_is_lost_and_nothing_twice_when_killed_in_a_stream(spawn):
    num_batches, kill_after = 60, 15
    server = spawn()
    create(server.channel)
    stub = documents_pb2_grpc.DocumentServiceStub(server.channel)
    replies = stub.UpsertStream(iter([opening(), *(batch_of(s) for s in range(1, num_batches + 1))]), timeout=120)
    token = next(replies).opened.resume_token
    acknowledged = 0
    with pytest.raises(grpc.RpcError) as raised:
        for reply in replies:
            acknowledged = reply.ack.sequence
            if acknowledged == kill_after:
                server.kill()
    assert raised.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    assert kill_after <= acknowledged < num_batches

    again = spawn()
    assert acknowledged * BATCH_SIZE <= count(again.channel) <= num_batches * BATCH_SIZE
    stub = documents_pb2_grpc.DocumentServiceStub(again.channel)
    probe = stub.UpsertStream(iter([opening(token)]), timeout=60)
    stored = next(probe).opened.last_acked_sequence
    assert list(probe) == []
    assert stored >= acknowledged
    requests = [opening(token), *(batch_of(s) for s in range(stored + 1, num_batches + 1))]
    acks = list(stub.UpsertStream(iter(requests), timeout=120))[1:]
    assert [reply.ack.sequence for reply in acks] == list(range(stored + 1, num_batches + 1))
    assert count(again.channel) == num_batches * BATCH_SIZE
    listed, page_token = [], ""
    while True:
        page = stub.ListDocuments(
            documents_pb2.ListDocumentsRequest(collection="docs", page_size=1000, page_token=page_token), timeout=30
        )
        listed += [(document.id, document.text) for document in page.documents]
        page_token = page.next_page_token
        if not page_token:
            break
    assert listed == [(f"{i:06d}", text_of(i)) for i in range(num_batches * BATCH_SIZE)]


def refused(code, data_dir, model, *, port=0, environment=None):
    """The one line of standard error of a server that ends at once, with this exit code."""
    arguments = ("--port", str(port), "--data-dir", str(data_dir), "--model", str(model))
    ended = run_server(*arguments, environment=environment)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (code, 1), ended.stderr
    return ended.stderr


def test_a_busy_port_is_one_sentence_and_code_2(toy_model, tmp_path):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port}" in refused(2, tmp_path / "d", toy_model, port=port)


def test_a_data_directory_in_use_is_one_sentence_and_code_1(spawn, toy_model, tmp_path):
    spawn(data_dir=tmp_path / "data")
    assert "in use" in refused(1, tmp_path / "data", toy_model)


def test_a_damaged_or_missing_checkpoint_is_one_sentence_and_code_1(toy_model, tmp_path):
    damaged = shutil.copytree(toy_model, tmp_path / "model")
    (damaged / "model.safetensors").write_bytes((damaged / "model.safetensors").read_bytes()[:1000])
    for folder in (damaged, tmp_path / "no-such-model"):
        refused(1, tmp_path / "d", folder)


def test_wrong_settings_and_a_damaged_database_are_one_sentence(toy_model, tmp_path):
    data = tmp_path / "d"
    data.mkdir()
    ended = run_server("--port", "99999", "--data-dir", str(data), "--model", str(toy_model))
    assert ended.returncode == 2
    from facets.documents import CollectionEngine

    CollectionEngine.open(data).close()
    for name, value in (("READER", str(toy_model)), ("ENGINE_STORE", "postgres://localhost/d")):
        refused(2, data, toy_model, environment={f"FACETS_SERVER_{name}": value})
    database = max((file for file in data.iterdir() if file.is_file()), key=lambda file: file.stat().st_size)
    database.write_bytes(b"garbage" * 2000)
    refused(1, data, toy_model)


def test_sigterm_ends_the_process_in_time_whatever_runs(spawn):
    server = spawn(environment={"FACETS_SERVER_DRAIN_S": "3"})
    stub = texts_pb2_grpc.EmbeddingServiceStub(server.channel)
    texts = [f"{'(' * 32_000}{i}" for i in range(400)]  # minutes of tokenizing, and the caller keeps waiting
    calls = [stub.Explain.future(texts_pb2.ExplainRequest(texts=texts)) for _ in range(4)]
    silent = [stub.EmbedStream(iter(threading.Event().wait, None)) for _ in range(8)]
    assert len(stub.Embed(texts_pb2.EmbedRequest(texts=["cat"]), timeout=60).token_stats) == 1
    started = time.monotonic()
    server.terminate()
    assert server.process.wait(30) == 0
    assert time.monotonic() - started < 5
    assert not any(call.done() and call.code() is grpc.StatusCode.OK for call in calls)
    assert "Traceback" not in server.log()
    del silent
