"""Bulk loading: what is stored, what is rejected, and what happens when something breaks in the middle."""

import json

import pytest
from facets_client import FacetsClient, UnavailableError
from facets_client.documents.bulk import IndexTask
from facets_client.documents.files import Columns, DocumentFiles
from facets_client.load import runner
from facets_client.load.formats import InputFile
from facets_client.load.rows import ReadOptions
from facets_client.load.runner import BulkRunner, BulkSettings
from facets_client.load.state import Place, RejectedFile, StateFile


@pytest.fixture
def client(server):
    with FacetsClient(server.target, timeout_s=5) as made:
        yield made


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(runner, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(runner, "LONGEST_PAUSE_S", 0.05)
    monkeypatch.setattr(runner, "SAVE_EVERY_S", 0.0)


class Loader:
    """Loads a file as the command does, from the saved place."""

    def __init__(self, client, tmp_path):
        self.client = client
        self.input = tmp_path / "input.jsonl"
        self.state_file = StateFile(tmp_path / "state" / "state.json", {"input": "input.jsonl"})
        self.rejected = tmp_path / "rejected.jsonl"
        self.progress = []

    def write(self, lines):
        self.input.write_bytes(b"".join(lines))

    def run(self, **settings):
        self.progress = []
        bulk = BulkSettings(**{"batch_size": 4, "max_wait_s": 2, **settings})
        columns = Columns(text=("text",), id="id")
        with DocumentFiles([InputFile(str(self.input), "input.jsonl")], columns, ReadOptions()) as files:
            saved = self.state_file.load()
            self.started_at = saved[0] if saved else Place()
            self.task = IndexTask(self.client, files.read, "news", settings=bulk)
            return BulkRunner(
                self.task,
                files,
                bulk,
                rejected=RejectedFile(self.rejected, keep_bytes=self.started_at.rejected_bytes),
                state_file=self.state_file,
                place=self.started_at,
                on_progress=self.on_progress,
            ).run()

    def on_progress(self, place, position, waiting):
        self.progress.append((place, position))

    def rejections(self):
        return [json.loads(line) for line in self.rejected.read_text().splitlines()]


@pytest.fixture
def loader(client, tmp_path):
    return Loader(client, tmp_path)


def counts(report):
    return report.place.num_records, report.place.num_done, report.place.num_rejected


def lines(number, start=0):
    return [
        json.dumps({"id": f"d{i:04}", "text": f"text {i}", "n": i}).encode() + b"\n"
        for i in range(start, start + number)
    ]


def test_bad_records_are_listed_and_their_neighbours_stored(loader, world):
    all_lines = lines(12)
    all_lines[1] = b'{"id": "x", "text": "caf\xe9"}\n'
    all_lines[2] = b"\n"
    all_lines[3] = b'{"id": "refused", "text": "REFUSE me"}\n'
    all_lines[5] = all_lines[4]
    all_lines[6] = b"\n"
    all_lines[7] = json.dumps({"id": "big", "text": "ok", "payload": "x" * 60_000}).encode() + b"\n"
    all_lines[8] = b'{"id": "half", "text": "\\ud800"}\n'
    all_lines[11] = all_lines[11][:15]
    loader.write(all_lines)
    report = loader.run()
    assert counts(report) == (10, 4, 6)
    assert sorted(world.documents["news"]) == ["d0000", "d0004", "d0009", "d0010"]
    assert [(item["line"], item["id"], item["reason"]) for item in loader.rejections()] == [
        (2, "", "invalid_utf8"),
        (4, "refused", "invalid_input"),
        (6, "d0004", "duplicate_id"),
        (8, "big", "document_too_long"),
        (9, "half", "invalid_document"),
        (12, "", "invalid_json"),
    ]
    assert "line 5" in loader.rejections()[2]["message"]
    assert loader.rejections()[1]["message"] == "text is refused"


@pytest.mark.parametrize("ack_is_lost", [False, True])
def test_a_broken_stream_is_opened_again_and_nothing_is_lost(loader, world, ack_is_lost):
    world.break_before_ack = ack_is_lost
    world.break_after_acks.extend([2, 0, 1])
    all_lines = lines(60)
    all_lines[30] = b'{"id": "refused", "text": "REFUSE"}\n'
    loader.write(all_lines)
    report = loader.run()
    assert (*counts(report), report.num_reconnects) == (60, 59, 1, 3)
    assert len(world.documents["news"]) == 59
    assert world.num_streams == 4
    assert [item["id"] for item in loader.rejections()] == ["refused"]


def test_a_server_that_stays_away_ends_the_load_and_the_next_one_goes_on(loader, world):
    loader.write(lines(60))
    world.break_after_acks.extend([4] + [0] * 100)
    with pytest.raises(UnavailableError):
        loader.run(max_wait_s=0.1)
    saved = loader.state_file.load()[0]
    assert saved.num_done == saved.num_records == saved.line == 16
    world.break_after_acks.clear()
    report = loader.run()
    assert loader.started_at.line == 16
    assert counts(report) == (60, 60, 0)
    assert len(world.documents["news"]) == 60


def test_interruption_keeps_the_place_and_the_rejections(loader, world, monkeypatch):
    all_lines = lines(60)
    for i in (3, 17, 21, 45):
        all_lines[i] = b"nonsense\n"
    loader.write(all_lines)

    def interrupt(place, position, waiting):
        if place.line >= 20:
            raise KeyboardInterrupt

    loader.on_progress = interrupt
    with pytest.raises(KeyboardInterrupt):
        loader.run()
    saved = loader.state_file.load()[0]
    assert 20 <= saved.line < 60
    assert saved.rejected_bytes == loader.rejected.stat().st_size
    with loader.rejected.open("a") as stream:  # as if killed between writing a rejection and saving the place
        stream.write('{"line": 99}\n')
    loader.on_progress = lambda *progress: None
    report = loader.run()
    assert counts(report) == (60, 56, 4)
    assert [item["line"] for item in loader.rejections()] == [4, 18, 22, 46]
    assert len(world.documents["news"]) == 56
