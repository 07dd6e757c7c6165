"""The bulk runner: batches, calls that leave out what is refused."""

import grpc
import pytest
from facets_client.errors import FieldViolation, InvalidArgumentError, NotFoundError, UnavailableError
from facets_client.generated.running import BulkRunner
from facets_client.load import runner
from facets_client.load.rows import Record, Rejection
from facets_client.load.runner import BulkSettings, CallTask, Settled, batches
from facets_client.load.source import Source


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(runner, "FIRST_PAUSE_S", 0.001)


def record(number, num_bytes=0):
    return Record(f"item {number}", f"d{number}", number, num_bytes)


def test_batches_keep_every_record_once_in_order_within_the_limits():
    records = [Rejection(i, "invalid_json", "no") if i % 7 == 0 else record(i, i * 37 % 900 + 1) for i in range(1, 400)]
    made = list(batches(iter(records), BulkSettings(batch_size=16), max_bytes=8_000))
    assert sorted(item.line for batch in made for item in (*batch.records, *batch.rejections)) == list(range(1, 400))
    assert all(len(batch.records) <= 16 and sum(one.num_bytes for one in batch.records) < 8_000 for batch in made)
    limited = list(batches(iter(records), BulkSettings(limit=20)))
    assert sum(len(batch.records) + len(batch.rejections) for batch in limited) == 20


class Run:
    """A run over ten records; ``call`` decides what becomes of the items of a request."""

    def __init__(self, call, tmp_path, *, away=(), **settings):
        self.away = list(away)
        self.taken, self.rejected, self.waits = [], [], []
        (tmp_path / "in.jsonl").write_text("")
        self.settings = BulkSettings(**{"batch_size": 4, "max_wait_s": 5.0, **settings})
        task = CallTask("papers", self.read, call, self.take, max_under_way=self.settings.window)
        with Source(str(tmp_path / "in.jsonl")) as source:
            self.report = BulkRunner(
                task,
                source,
                self.settings,
                on_rejected=self.rejected.extend,
                on_progress=lambda report, waiting: self.waits.append(waiting) if waiting else None,
            ).run()

    def read(self):
        if self.away:
            raise self.away.pop()
        return batches(map(record, range(1, 11)), self.settings)

    def take(self, records, reply):
        self.taken += [record.item for record in records]
        return Settled(totals={"num_rows": len(records)})


@pytest.mark.parametrize("window", [1, 3])
def test_what_is_refused_is_left_out_and_the_rest_goes_on(tmp_path, window):
    def call(items):
        bad = [i for i, item in enumerate(items) if item in ("item 2", "item 4", "item 9")]
        if bad:
            violations = tuple(FieldViolation(f"papers[{i}].title", "is bad") for i in bad)
            raise InvalidArgumentError(grpc.StatusCode.INVALID_ARGUMENT, "bad", field_violations=violations)
        return items

    run = Run(call, tmp_path, window=window)
    assert run.taken == [f"item {i}" for i in (1, 3, 5, 6, 7, 8, 10)]
    assert (run.report.num_done, run.report.totals) == (7, {"num_rows": 7})
    assert [(item.line, item.message) for item in run.rejected] == [(i, "title is bad") for i in (2, 4, 9)]


def test_what_names_an_unknown_paper_is_found_one_by_one(tmp_path):
    def call(items):
        if "item 6" in items:
            raise NotFoundError(grpc.StatusCode.NOT_FOUND, "no known paper", resource_type="paper")
        return items

    run = Run(call, tmp_path)
    assert "item 6" not in run.taken and len(run.taken) == 9


def test_a_server_that_is_away_is_waited_for_and_nothing_is_taken_twice(tmp_path):
    away = [UnavailableError(grpc.StatusCode.UNAVAILABLE, "away")] * 5

    def call(items):
        if "item 5" in items and away:
            raise away.pop()
        return items

    run = Run(call, tmp_path, window=3, away=away[:3])
    assert run.taken == [f"item {i}" for i in range(1, 11)]
    assert run.report.num_reconnects == 8 and run.waits == ["away"] * 8
    with pytest.raises(UnavailableError):
        Run(lambda items: items, tmp_path, away=[UnavailableError(grpc.StatusCode.UNAVAILABLE, "away")], max_wait_s=0.0)
