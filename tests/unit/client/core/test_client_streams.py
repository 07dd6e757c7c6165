"""Streams of both clients: how they are opened, how they break, and what an interrupt may meet."""

import os
import signal
import threading

import grpc
import pytest
from facets_client import DeadlineExceededError, Document, FacetsClient, OverloadedError, UnavailableError
from facets_client.documents.messages import from_document
from fake_server import status_of
from waiting import wait_until

FULL = status_of(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", retry_after_s=0.02)
DISK_FULL = status_of(grpc.StatusCode.RESOURCE_EXHAUSTED, "no room", reason="DISK_FULL")
STARTING = status_of(grpc.StatusCode.UNAVAILABLE, "starting")


@pytest.fixture
def blocking(server):
    with FacetsClient(server.target, timeout_s=10) as made:
        yield made


def test_grpc_does_not_retry_the_opening_of_a_stream(blocking, world):
    """It may send the second message while it repeats the first one, and then aborts the process."""
    world.faults["UpsertStream"].extend([FULL] * 3)
    for number in (1, 2, 3):
        with pytest.raises(OverloadedError, match="full"):
            blocking.open_upsert_session("news")
        assert world.count("UpsertStream") == number
    blocking.open_upsert_session("news").close()


@pytest.mark.parametrize("status", [FULL, STARTING])
def test_the_client_retries_the_opening_of_a_stream(client, world, status):
    world.faults["UpsertStream"].extend([status] * 4)
    acks = list(client.upsert_stream("news", [Document(f"d{i}", "text") for i in range(9)], batch_size=2))
    assert [ack.sequence for ack in acks] == [1, 2, 3, 4, 5]
    assert world.count("UpsertStream") == 5


def test_a_stream_that_says_nothing_ends_in_time(make_client, world):
    world.silent = True
    with pytest.raises(DeadlineExceededError):
        list(make_client(timeout_s=0.3).upsert_stream("news", [Document("d", "text")]))


def test_interrupted_streams_close(server, world):
    world.pace = threading.Semaphore(2)

    def interrupt():
        wait_until(lambda: not world.pace.acquire(blocking=False))
        threading.Event().wait(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    with FacetsClient(server.target, timeout_s=60) as client:
        session = client.open_upsert_session("news")
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            while True:
                session.send([from_document(Document("d", "text"))])
                session.receive_ack()
        session.close()
    world.pace.release(100)


def test_every_read_after_the_end_of_a_stream_raises_its_error(blocking, world):
    world.break_after_acks.append(0)
    session = blocking.open_upsert_session("news")
    session.send([from_document(Document("d", "text"))])
    for _ in range(2):
        with pytest.raises(UnavailableError, match="stopping"):
            session.receive_ack()
