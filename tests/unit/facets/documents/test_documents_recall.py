"""Searches that are checked exactly in the background."""

from dataclasses import replace

import pytest
from waiting import wait_until

from facets.documents import SearchHit, SearchResult
from facets.documents.recall import RecallSampler


def result(*ids, exhaustive=False, revision=7):
    hits = tuple(
        SearchHit(
            id=id, score=0.5, text="", payload={}, evidence=(), facets_score=0.5, lexical_score=0.0, matched_words=(),
            answer=None, confidence=None, signals={}, revision=1,
        )
        for id in ids
    )  # fmt: skip
    return SearchResult(hits=(hits,), index_revision=revision, exhaustive=exhaustive, index_kind="faiss-ivf-int8")


@pytest.fixture
def checks():
    return []


@pytest.fixture
def sampler(checks):
    made = RecallSampler(1.0, lambda *check: checks.append(check))
    yield made
    made.close()


def test_share_of_the_exact_hits_is_reported(sampler, checks):
    assert not sampler.recall
    sampler.offer(result("a", "b", "x", "y"), lambda: result("a", "b", "c", "d", exhaustive=True), of=3)
    wait_until(lambda: sampler.recall)
    assert checks == [("compared", 0.5)] and sampler.recall == {3: 0.5}


def deleted():
    raise RuntimeError("the collection is gone")


def of_other_queries():
    one = result("a", exhaustive=True)
    return replace(one, hits=one.hits * 2)


@pytest.mark.parametrize(
    ("search", "outcome"),
    [(deleted, "failed"), (of_other_queries, "failed"), (lambda: result("b", exhaustive=True, revision=8), "changed")],
)
def test_a_check_that_cannot_compare_is_counted_and_the_next_one_runs(sampler, checks, search, outcome):
    sampler.offer(result("a"), search, of=3)
    wait_until(lambda: (outcome, None) in checks)
    checks.clear()

    def again():
        sampler.offer(result("a"), lambda: result("a", exhaustive=True), of=3)
        return ("compared", 1.0) in checks

    wait_until(again)


def test_exhaustive_searches_and_a_share_of_zero_ask_for_nothing(sampler, checks):
    def forbidden():
        raise AssertionError("asked for an exact search")

    sampler.offer(result("a", exhaustive=True), forbidden, of=3)
    off = RecallSampler(0.0, lambda *check: checks.append(check))
    off.offer(result("a"), forbidden, of=3)
    off.close()
    sampler.close()
    assert not checks
