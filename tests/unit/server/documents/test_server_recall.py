"""Searches that are checked exactly in the background."""

from dataclasses import replace

import pytest
from facets_server.documents.recall import RecallSampler
from facets_server.runtime.metrics import RecallMetrics
from prometheus_client import CollectorRegistry
from waiting import wait_until

from facets.documents import SearchHit, SearchResult


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
def registry():
    return CollectorRegistry()


@pytest.fixture
def sampler(registry):
    made = RecallSampler(1.0, RecallMetrics(registry))
    yield made
    made.close()


def checks(registry, outcome):
    return registry.get_sample_value("facets_recall_checks_total", {"outcome": outcome}) or 0


def test_share_of_the_exact_hits_is_counted(sampler, registry):
    assert not sampler.recall
    sampler.offer(result("a", "b", "x", "y"), lambda: result("a", "b", "c", "d", exhaustive=True), of=3)
    wait_until(lambda: checks(registry, "compared") == 1)
    assert registry.get_sample_value("facets_search_recall_sum") == 0.5


def test_a_search_of_another_state_is_not_compared(sampler, registry):
    sampler.offer(result("a"), lambda: result("b", exhaustive=True, revision=8), of=3)
    wait_until(lambda: checks(registry, "changed") == 1)
    assert checks(registry, "compared") == 0


def deleted():
    raise RuntimeError("the collection is gone")


def of_other_queries():
    one = result("a", exhaustive=True)
    return replace(one, hits=one.hits * 2)


@pytest.mark.parametrize("search", [deleted, of_other_queries])
def test_a_check_that_fails_is_counted_and_the_next_one_runs(registry, search):
    sampler = RecallSampler(1.0, RecallMetrics(registry))
    sampler.offer(result("a"), search, of=3)
    wait_until(lambda: checks(registry, "failed") == 1)

    def again():
        sampler.offer(result("a"), lambda: result("a", exhaustive=True), of=3)
        return checks(registry, "compared") == 1

    wait_until(again)
    sampler.close()


def test_exhaustive_searches_and_a_share_of_zero_ask_for_nothing(sampler, registry):
    def forbidden():
        raise AssertionError("asked for an exact search")

    sampler.offer(result("a", exhaustive=True), forbidden, of=3)
    off = RecallSampler(0.0, RecallMetrics(CollectorRegistry()))
    off.offer(result("a"), forbidden, of=3)
    off.close()
    sampler.close()
    assert checks(registry, "failed") == 0
