"""The bulk runner's parts: batches, the saved place, calls that leave out what is refused."""

import json

import grpc
import pytest
from facets_client.errors import FieldViolation, InvalidArgumentError, NotFoundError, UnavailableError
from facets_client.load.batches import Batch, Entry, Pace, Place, RejectedFile, StateFile, batches, default_state_path
from facets_client.load.records import Rejection
from facets_client.load.runner import BulkRunner, BulkSettings, CallTask
from facets_client.load.source import RecordSource


def entry(number, num_bytes=0):
    return Entry(f"item {number}", f"d{number}", number, 10 * number, "excerpt", num_bytes)


def test_batches_keep_every_record_once_in_order_within_the_limits():
    read = [
        Rejection(i, i * 10, "invalid_json", "no") if i % 7 == 0 else entry(i, i * 37 % 900 + 1) for i in range(1, 400)
    ]
    made = list(batches(iter(read), size=16, max_message_bytes=lambda: 8_000))
    seen = sorted(item.line for batch in made for item in (*batch.entries, *batch.rejections))
    assert seen == list(range(1, 400))
    for batch in made:
        assert len(batch.entries) <= 16
        assert sum(item.num_bytes for item in batch.entries) < 8_000
    assert [batch.line for batch in made] == sorted(batch.line for batch in made)
    assert made[-1].end == 3_990
    assert sum(batch.num_records for batch in batches(iter(read), size=16, limit=20)) == 20


def test_the_pace_follows_a_server_that_is_slow_or_fast():
    pace = Pace()
    first = pace.num_bytes
    pace.settled(first, 5.0)
    assert pace.num_bytes == first // 10
    slow = pace.num_bytes
    pace.settled(slow, 0.1)
    assert pace.num_bytes == 2 * slow
    pace.settled(3, 0.1)  # the end of a file: says nothing
    assert pace.num_bytes == 2 * slow
    read = (entry(number, 1000) for number in range(40))
    sizes = [len(batch.entries) for batch in batches(read, size=16, max_message_bytes=lambda: pace.num_bytes)]
    assert sizes[0] < 16
    assert sum(sizes) == 40


def test_progress_counts_what_is_settled_and_not_what_was_read(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes(b"0123456789" * 10)
    seen = []
    with RecordSource(str(path)) as source:

        def read(place):
            for number in range(1, 11):
                assert source.read(10)
                yield Batch([entry(number)], line=number, end=10 * number)

        runner = BulkRunner(
            CallTask("papers", read, lambda items: items, lambda items, reply: {}, window=8),
            source,
            rejected=RejectedFile(tmp_path / "rejected.jsonl"),
            settings=BulkSettings(window=8),
            place=Place(),
            state_file=None,
            on_progress=lambda now: seen.append((now.place.num_records, now.raw_position)),
        )
        runner.run()
    assert seen == [(number, 10 * number) for number in range(1, 11)]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 99}', b'{"version": 2, "identity": {}}'])
def test_a_damaged_state_file_is_no_state(tmp_path, content):
    path = tmp_path / "state.json"
    path.write_bytes(content)
    assert StateFile(path, {}).load() is None


def test_state_survives_saving(tmp_path):
    place = Place(1, 2, 3, 4, 5, {"num_rows": 6}, "token")
    file = StateFile(tmp_path / "deep" / "state.json", {"name": "/a/b.jsonl", "size": None, "fields": ["id"]})
    file.save(place)
    saved = file.load()
    assert (saved.place, saved.identity) == (place, file.identity)
    file.remove()
    assert file.load() is None


def test_each_input_collection_and_server_has_a_state_of_its_own(tmp_path):
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    named = [("a:1", "c", "/x"), ("b:1", "c", "/x"), ("a:1", "d", "/x"), ("a:1", "c", "/y")]
    paths = {default_state_path(environment, "index", *names) for names in named}
    paths.add(default_state_path(environment, "add-papers", *named[0]))
    assert len(paths) == 5
    assert all(path.is_relative_to(tmp_path) for path in paths)


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"window": 0}, {"limit": -1}, {"max_wait_s": -1}])
def test_wrong_settings(wrong):
    with pytest.raises(ValueError, match="must be"):
        BulkSettings(**wrong)


def refusal(*places):
    violations = tuple(FieldViolation(f"papers[{i}].title", "is bad") for i in places)
    return InvalidArgumentError(
        grpc.StatusCode.INVALID_ARGUMENT, "bad", reason="INVALID_INPUT", field_violations=violations
    )


class Run:
    """A run over ten entries; ``call`` decides what becomes of the items of a request."""

    def __init__(self, call, tmp_path, *, away=(), **settings):
        self.away = list(away)
        path = tmp_path / "in.jsonl"
        path.write_text("")
        self.taken, self.rejected, self.waits = [], tmp_path / "rejected.jsonl", []
        bulk = BulkSettings(**{"batch_size": 4, "first_pause_s": 0.0, "max_wait_s": 5.0, **settings})
        task = CallTask("papers", self.read, call, self.take, window=bulk.window)
        with RecordSource(str(path)) as source:
            runner = BulkRunner(
                task,
                source,
                rejected=RejectedFile(self.rejected),
                settings=bulk,
                place=Place(),
                state_file=None,
                on_progress=lambda now: self.waits.append(now.waiting) if now.waiting else None,
            )
            self.report = runner.run()

    def read(self, place):
        if self.away:
            raise self.away.pop()
        return batches(map(entry, range(1, 11)), size=4)

    def take(self, items, reply):
        self.taken += items
        return {"num_rows": len(items)}


@pytest.mark.parametrize("window", [1, 3])
def test_what_is_refused_is_left_out_and_the_rest_goes_on(tmp_path, window):
    def call(items):
        bad = [i for i, item in enumerate(items) if item in ("item 2", "item 4", "item 9")]
        if bad:
            raise refusal(*bad)
        return items

    run = Run(call, tmp_path, window=window)
    assert run.taken == [f"item {i}" for i in (1, 3, 5, 6, 7, 8, 10)]
    assert (run.report.place.num_done, run.report.place.totals) == (7, {"num_rows": 7})
    rejected = [json.loads(line) for line in run.rejected.read_text().splitlines()]
    assert [(one["line"], one["message"]) for one in rejected] == [(i, "title is bad") for i in (2, 4, 9)]


def test_what_names_an_unknown_paper_is_found_one_by_one(tmp_path):
    def call(items):
        if "item 6" in items:
            raise NotFoundError(grpc.StatusCode.NOT_FOUND, "no known paper", resource_type="paper")
        return items

    run = Run(call, tmp_path)
    assert "item 6" not in run.taken and len(run.taken) == 9


def test_an_error_about_no_item_ends_the_run(tmp_path):
    def call(items):
        raise NotFoundError(grpc.StatusCode.NOT_FOUND, "no such model", resource_type="model")

    with pytest.raises(NotFoundError):
        Run(call, tmp_path)


def test_a_server_that_is_away_is_waited_for_and_nothing_is_taken_twice(tmp_path):
    away = [UnavailableError(grpc.StatusCode.UNAVAILABLE, "away")] * 5

    def call(items):
        if "item 5" in items and away:
            raise away.pop()
        return items

    run = Run(call, tmp_path, window=3)
    assert run.taken == [f"item {i}" for i in range(1, 11)]
    assert run.report.num_reconnects == 5 and run.waits == ["away"] * 5


def test_a_server_that_is_away_at_the_start_is_waited_for(tmp_path):
    away = UnavailableError(grpc.StatusCode.UNAVAILABLE, "away")
    run = Run(lambda items: items, tmp_path, away=[away] * 3)
    assert run.taken == [f"item {i}" for i in range(1, 11)]
    assert run.waits == ["away"] * 3
    with pytest.raises(UnavailableError):
        Run(lambda items: items, tmp_path, away=[away], max_wait_s=0.0, first_pause_s=0.1)


def test_an_empty_batch_has_no_records():
    assert Batch().num_records == 0
