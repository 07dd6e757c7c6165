"""Adding files: what is stored, what is rejected, and what happens when something breaks in the middle."""

import asyncio
import json

import pytest
from facets_client import AsyncFacetsClient, Document, FacetsClient, UnavailableError
from facets_client.documents.files import Columns, DocumentFiles
from facets_client.generated.bulk import IndexTask
from facets_client.generated.running import BulkRunner
from facets_client.load import runner
from facets_client.load.formats import InputFile
from facets_client.load.rows import ReadOptions
from facets_client.load.runner import BulkSettings


@pytest.fixture
def client(server):
    with FacetsClient(server.target, timeout_s=5) as made:
        yield made


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(runner, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(runner, "LONGEST_PAUSE_S", 0.05)


class Loader:
    """Loads a file as the command does."""

    def __init__(self, client, tmp_path):
        self.client = client
        self.input = tmp_path / "input.jsonl"

    def write(self, lines):
        self.input.write_bytes(b"".join(lines))

    def run(self, *, keep=False, on_progress=lambda *progress: None, **settings):
        bulk = BulkSettings(**{"batch_size": 4, "max_wait_s": 2, **settings})
        self.rejected = []
        with DocumentFiles(
            [InputFile(str(self.input), "input.jsonl")], Columns(text=("text",)), ReadOptions()
        ) as files:
            self.task = IndexTask(self.client, files.read, "news", settings=bulk, prepare=lambda: None, keep=keep)
            run = BulkRunner(self.task, files, bulk, on_rejected=self.rejected.extend, on_progress=on_progress)
            return run.run()


@pytest.fixture
def loader(client, tmp_path):
    return Loader(client, tmp_path)


def counts(report):
    return report.num_records, report.num_done, report.num_rejected


def changes(loader, report):
    return (*(report.totals[f"num_{name}"] for name in ("added", "changed", "unchanged")), loader.task.num_removed)


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
    rejected = loader.rejected
    assert [(item.line, item.id, item.reason) for item in rejected] == [
        (2, "", "invalid_utf8"),
        (4, "refused", "invalid_input"),
        (6, "d0004", "duplicate_id"),
        (8, "big", "document_too_long"),
        (9, "half", "invalid_document"),
        (12, "", "invalid_json"),
    ]
    assert rejected[1].message == "text is refused"


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
    assert world.count("UpsertStream") == 4
    assert [item.id for item in loader.rejected] == ["refused"]


def test_a_server_that_stays_away_ends_the_load_and_the_next_one_completes_it(loader, world):
    loader.write(lines(60))
    world.break_after_acks.extend([4] + [0] * 100)
    with pytest.raises(UnavailableError):
        loader.run(max_wait_s=0.1)
    assert len(world.documents["news"]) == 16
    world.break_after_acks.clear()
    assert changes(loader, loader.run()) == (44, 0, 16, 0)


def test_another_file_of_the_same_name_deletes_nothing(loader, world):
    loader.write(lines(6))
    loader.run()
    loader.write(lines(3, start=100))
    assert changes(loader, loader.run()) == (3, 0, 0, 0)
    assert len(world.documents["news"]) == 9
    assert "6 documents" in loader.task.notes[0]


def test_a_run_that_is_interrupted_before_it_deletes_is_completed_by_the_next(loader, world):
    loader.write(lines(60))
    loader.run()
    loader.write([*lines(30), *lines(10, start=100)])

    def interrupt(report, waiting):
        if report.num_records >= 36:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loader.run(on_progress=interrupt)
    assert 60 < len(world.documents["news"]) <= 70
    added, changed, unchanged, removed = changes(loader, loader.run())
    assert (added + unchanged, changed, removed) == (40, 0, 30)
    assert sorted(world.documents["news"]) == [f"d{i:04}" for i in (*range(30), *range(100, 110))]


@pytest.mark.parametrize(
    ("second", "keep", "removed"),
    [
        (lines(4), False, 6),
        (lines(4), True, 0),
        ([*lines(4), b'{"id": "d0007", "text": "REFUSE"}\n'], False, 5),  # the file has it, if only a bad version
        ([*lines(4), b"nonsense\n"], False, 0),  # which document that was is not known
    ],
)
def test_what_a_file_no_longer_contains_is_deleted(loader, world, second, keep, removed):
    loader.client.add(
        [Document("d", "of no file"), Document("e", "of another", source="other.jsonl")], collection="news"
    )
    loader.write(lines(10))
    assert changes(loader, loader.run()) == (10, 0, 0, 0)
    loader.write(second)
    assert changes(loader, loader.run(keep=keep)) == (0, 0, 4, removed)
    assert len(world.documents["news"]) == 12 - removed
    assert [note for note in loader.task.notes if "nothing was deleted" in note] == [
        "input.jsonl: nothing was deleted, because a rejected record has no known id"
    ] * (b"nonsense\n" in second)


def test_files_are_added_by_both_clients(client, server, tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,one\n2,two\n,three\n")
    (tmp_path / "b.txt").write_text("four")
    (tmp_path / "c.json").write_text("{")
    seen = []
    first = client.add_files(tmp_path, collection="new", on_progress=seen.append)
    assert (first.num_added, first.num_rejected, seen[-1]) == (3, 2, 3)
    assert [(item.file, item.line) for item in first.rejected] == [("a.csv", 4), ("c.json", 0)]
    head, line, _ = repr(first).split("\n")
    assert head == "3 documents: 3 added, 0 changed, 0 unchanged, 0 removed, 2 rejected"
    assert line.startswith("a.csv, line 4: ")
    assert client.list_sources("new") == {"a.csv": 2, "b.txt": 1}

    async def again():
        async with AsyncFacetsClient(server.target) as other:
            return await other.add_files([str(tmp_path / "b.txt")], collection="new")

    second = asyncio.run(again())
    assert (second.num_unchanged, second.num_removed, second.rejected) == (1, 0, ())


def test_a_document_that_cannot_be_sent_is_named(client):
    documents = [Document("a", "one"), Document("b", "two", {"price": float("nan")})]
    with pytest.raises(ValueError, match="document 'b': payload has the number nan"):
        list(client.upsert_stream("news", documents))
