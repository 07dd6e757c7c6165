"""Bulk loading: what is stored, what is rejected, and what happens when something breaks in the middle."""

import json
import threading

import pytest
from facets_client import FacetsClient, NotFoundError, ServerError, UnavailableError
from facets_client.core.records import Record, RecordSource, Rejection
from facets_client.core.rejected import RejectedFile
from facets_client.documents import bulk_index as bulk_index_module
from facets_client.documents.bulk_index import BulkIndexer, IndexSettings, check_records
from facets_client.documents.index_state import IndexState, InputIdentity, StateFile, default_state_path
from facets_client.documents.record_batches import batches
from fake_server import FakeServer
from fake_world import Pace
from waiting import wait_until


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(bulk_index_module, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(bulk_index_module, "_LONGEST_PAUSE_S", 0.05)
    monkeypatch.setattr(bulk_index_module, "_SAVE_EVERY_S", 0.0)


@pytest.fixture
def client(server):
    with FacetsClient(server.target, timeout_s=5) as made:
        yield made


class Loader:
    """Loads a file as the command does, from the saved place."""

    def __init__(self, client, tmp_path):
        self.client = client
        self.input = tmp_path / "input.jsonl"
        self.state_file = StateFile(tmp_path / "state" / "state.json")
        self.rejected = tmp_path / "rejected.jsonl"
        self.progress = []

    def write(self, lines):
        self.input.write_bytes(b"".join(lines))

    def run(self, **settings):
        self.progress = []
        with RecordSource(str(self.input)) as source:
            identity = InputIdentity("input", source.size, source.head_digest, ("id", "text"), "news", "")
            saved = self.state_file.load()
            state = saved if saved and saved.identity == identity else IndexState(identity)
            self.started_at = state
            self.indexer = BulkIndexer(
                self.client,
                source,
                state=state,
                state_file=self.state_file,
                rejected=RejectedFile(self.rejected, keep_bytes=state.rejected_bytes),
                settings=IndexSettings(**{"batch_size": 4, "max_wait_s": 2, **settings}),
                on_progress=self.on_progress,
            )
            return self.indexer.run()

    def on_progress(self, progress):
        self.progress.append(progress)

    def rejections(self):
        return [json.loads(line) for line in self.rejected.read_text().splitlines()]


@pytest.fixture
def loader(client, tmp_path):
    return Loader(client, tmp_path)


def lines(number, start=0):
    return [
        json.dumps({"id": f"d{i:04}", "text": f"text {i}", "n": i}).encode() + b"\n"
        for i in range(start, start + number)
    ]


def test_everything_is_stored_with_its_payload(loader, world):
    loader.write(lines(50))
    report = loader.run()
    assert (report.num_records, report.num_indexed, report.num_rejected) == (50, 50, 0)
    assert report.index_revision == world.revision
    assert sorted(world.documents["news"]) == [f"d{i:04}" for i in range(50)]
    assert world.documents["news"]["d0007"].payload["n"] == 7
    assert set(world.stores.values()) == {1}
    assert not loader.rejected.exists()
    assert not loader.state_file.path.exists()
    assert loader.progress[-1].num_indexed == 50
    assert loader.progress[-1].raw_position == loader.input.stat().st_size


def test_bad_records_are_listed_and_their_neighbours_stored(loader, world):
    all_lines = lines(12)
    all_lines[1] = b'{"id": "x", "text": "caf\xe9"}\n'
    all_lines[2] = b"\n"
    all_lines[3] = b'{"id": "refused", "text": "REFUSE me"}\n'
    all_lines[5] = all_lines[4]
    all_lines[6] = json.dumps({"id": "long", "text": "x" * 1_001}).encode() + b"\n"
    all_lines[7] = json.dumps({"id": "big", "text": "ok", "payload": "x" * 60_000}).encode() + b"\n"
    all_lines[8] = b'{"id": "half", "text": "\\ud800"}\n'
    all_lines[11] = all_lines[11][:15]
    loader.write(all_lines)
    report = loader.run()
    assert (report.num_records, report.num_indexed, report.num_rejected) == (11, 4, 7)
    assert sorted(world.documents["news"]) == ["d0000", "d0004", "d0009", "d0010"]
    assert [(item["line"], item["id"], item["reason"]) for item in loader.rejections()] == [
        (2, "", "invalid_utf8"),
        (4, "refused", "invalid_input"),
        (6, "d0004", "duplicate_id"),
        (7, "long", "text_too_long"),
        (8, "big", "document_too_long"),
        (9, "half", "invalid_document"),
        (12, "", "invalid_json"),
    ]
    assert "line 5" in loader.rejections()[2]["message"]
    assert loader.rejections()[1]["message"] == "text is refused"


def test_an_input_without_one_good_record(loader, world):
    loader.write([b"nonsense\n"] * 2_500)
    report = loader.run()
    assert (report.num_indexed, report.num_rejected) == (0, 2_500)
    assert world.num_streams == 0
    assert [item["line"] for item in loader.rejections()] == list(range(1, 2_501))


def test_an_empty_input(loader):
    loader.write([])
    assert loader.run().num_records == 0


@pytest.mark.parametrize("ack_is_lost", [False, True])
def test_a_broken_stream_is_opened_again_and_nothing_is_lost(loader, world, ack_is_lost):
    world.break_before_ack = ack_is_lost
    world.break_after_acks.extend([2, 0, 1])
    all_lines = lines(60)
    all_lines[30] = b'{"id": "refused", "text": "REFUSE"}\n'
    loader.write(all_lines)
    report = loader.run()
    assert (report.num_indexed, report.num_rejected, report.num_reconnects) == (59, 1, 3)
    assert len(world.documents["news"]) == 59
    assert world.num_streams == 4
    assert len(world.streams) == 1  # one stream, resumed by its token
    assert [item["id"] for item in loader.rejections()] == ["refused"]
    assert any(progress.waiting for progress in loader.progress)


def test_a_server_that_restarts_and_has_forgotten_the_stream(loader, server, world):
    world.pace = Pace(3)
    loader.write(lines(60))
    reports = []
    thread = threading.Thread(target=lambda: reports.append(loader.run(max_wait_s=20)))
    thread.start()
    world.pace.wait_until_used_up()
    server.server.stop(None)
    world.pace.release(100)
    world.streams.clear()
    again = FakeServer(world, port=server.port)
    thread.join(timeout=30)
    assert not thread.is_alive()
    again.stop()
    assert reports[0].num_indexed == 60
    assert len(world.documents["news"]) == 60


def test_a_server_that_stays_away_ends_the_load_and_the_next_one_goes_on(loader, world):
    loader.write(lines(60))
    world.break_after_acks.extend([4] + [0] * 100)
    with pytest.raises(UnavailableError):
        loader.run(max_wait_s=0.1)
    saved = loader.state_file.load()
    assert saved.num_indexed == saved.num_records == saved.line == 16
    assert saved.resume_token
    world.break_after_acks.clear()
    report = loader.run()
    assert loader.started_at.line == 16
    assert (report.num_records, report.num_indexed) == (60, 60)
    assert len(world.documents["news"]) == 60


def test_interruption_keeps_the_place_and_the_rejections(loader, world, monkeypatch):
    all_lines = lines(60)
    for i in (3, 17, 21, 45):
        all_lines[i] = b"nonsense\n"
    loader.write(all_lines)

    def interrupt(progress):
        if progress.line >= 20:
            raise KeyboardInterrupt

    loader.on_progress = interrupt
    with pytest.raises(KeyboardInterrupt):
        loader.run()
    saved = loader.state_file.load()
    assert 20 <= saved.line < 60
    assert saved.rejected_bytes == loader.rejected.stat().st_size
    with loader.rejected.open("a") as stream:  # as if killed between writing a rejection and saving the place
        stream.write('{"line": 99}\n')
    loader.on_progress = loader.progress.append
    report = loader.run()
    assert (report.num_records, report.num_indexed, report.num_rejected) == (60, 56, 4)
    assert [item["line"] for item in loader.rejections()] == [4, 18, 22, 46]
    assert len(world.documents["news"]) == 56


def test_overload_is_waited_for(loader, world):
    from fake_world import status_of
    from grpc import StatusCode

    world.faults["UpsertStream"].extend([status_of(StatusCode.RESOURCE_EXHAUSTED, "full", retry_after_s=0.02)] * 7)
    loader.write(lines(8))
    assert loader.run(max_wait_s=30).num_indexed == 8


def test_a_failing_store_ends_the_load_with_its_place(loader, world):
    from fake_world import status_of
    from grpc import StatusCode

    world.faults["UpsertStream"].append(status_of(StatusCode.ABORTED, "the disk is full"))
    loader.write(lines(8))
    with pytest.raises(ServerError, match="disk is full"):
        loader.run()
    assert loader.run().num_indexed == 8


def test_an_unknown_collection(loader, world):
    world.collections.clear()
    loader.write(lines(8))
    with pytest.raises(NotFoundError):
        loader.run()


def test_limit_counts_over_interruptions(loader, world):
    loader.write(lines(60))
    assert loader.run(limit=10).num_indexed == 10
    world.break_after_acks.extend([1] + [0] * 100)
    with pytest.raises(UnavailableError):
        loader.run(limit=10, max_wait_s=0.05)
    world.break_after_acks.clear()
    assert loader.run(limit=10).num_records == 10
    assert len(world.documents["news"]) == 10


def test_the_window_bounds_what_is_read_ahead(loader, world):
    world.pace = Pace(0)
    loader.write(lines(1_000))
    thread = threading.Thread(target=loader.run, kwargs={"window": 100})
    thread.start()
    wait_until(lambda: world.num_streams > 0)
    threading.Event().wait(0.3)
    assert len(loader.indexer._pending) <= world.window
    world.pace.release(10_000)
    thread.join(timeout=30)
    assert len(world.documents["news"]) == 1_000


def test_dry_run_sends_nothing(loader, world):
    all_lines = lines(10)
    all_lines[2] = b"nonsense\n"
    loader.write(all_lines)
    with RecordSource(str(loader.input)) as source:
        identity = InputIdentity("input", None, "", ("id", "text"), "news", "")
        report = check_records(
            source,
            IndexState(identity),
            rejected=RejectedFile(loader.rejected),
            settings=IndexSettings(),
        )
    assert (report.num_records, report.num_indexed, report.num_rejected) == (10, 9, 1)
    assert loader.rejections()[0]["line"] == 3
    assert world.calls == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 99}', b'{"version": 1, "identity": {}}'])
def test_a_damaged_state_file_is_no_state(tmp_path, content):
    path = tmp_path / "state.json"
    path.write_bytes(content)
    assert StateFile(path).load() is None


def test_state_survives_saving(tmp_path):
    identity = InputIdentity("/a/b.jsonl", 17, "digest", ("id", "text"), "news", "2026")
    state = IndexState(identity, 1, 2, 3, 4, 5, 6, "token")
    file = StateFile(tmp_path / "deep" / "state.json")
    file.save(state)
    assert file.load() == state


def test_each_input_collection_and_server_has_a_state_of_its_own(tmp_path):
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    base = {"target": "a:1", "collection": "c", "name": "/x"}
    other = [{**base, "target": "b:1"}, {**base, "collection": "d"}, {**base, "name": "/y"}]
    paths = {default_state_path(environment, **which) for which in [base, *other]}
    assert len(paths) == 4
    assert all(path.is_relative_to(tmp_path) for path in paths)


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"window": 0}, {"limit": -1}, {"max_wait_s": -1}])
def test_wrong_settings(wrong):
    with pytest.raises(ValueError, match="must be"):
        IndexSettings(**wrong)


def test_batches_keep_every_record_once_in_order_within_the_limits():
    items = []
    for i in range(1, 400):
        good = Record(f"d{i % 390}", "x" * (i * 37 % 900 + 1), {}, i, i * 10)
        items.append(Rejection(i, i * 10, "invalid_json", "no") if i % 7 == 0 else good)
    made = list(batches(iter(items), batch_size=16, max_message_bytes=8_000))
    seen = sorted(
        [record.line for batch in made for record in batch.records]
        + [rejection.line for batch in made for rejection in batch.rejections]
    )
    assert seen == list(range(1, 400))
    for batch in made:
        assert len(batch.documents) == len(batch.records) <= 16
        assert sum(document.ByteSize() for document in batch.documents) < 8_000
        assert batch.num_records == len(batch.records) + len(batch.rejections)
    assert [batch.line for batch in made] == sorted(batch.line for batch in made)
    duplicates = [r for batch in made for r in batch.rejections if r.reason == "duplicate_id"]
    assert [rejection.line for rejection in duplicates] == [i for i in range(391, 400) if i % 7 and (i - 390) % 7]
