"""Exact search where memory is short, and on a GPU."""

import threading
import time
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from waiting import wait_until

from facets.errors import OverloadedError
from facets.index import exact
from facets.index.backends import ExactBackend, FaissBackend, make_backend
from facets.index.base import ReadWriteLock, first_places, paged
from facets.index.candidates import Candidates
from facets.index.config import EngineConfig
from facets.index.exact import ExactIndex, best_columns, search_in_parts
from facets.language.vectors import unit_rows


def made(
    device: str = "cpu", *, num_documents: int = 300, several: bool = False, preselect: bool | None = None
) -> ExactIndex:
    """Documents of four facets, some with zero ones; every other one takes two places where there are ``several``."""
    facets = unit_rows(np.random.default_rng(3).standard_normal((num_documents, 4, 32)))
    facets[::5, 2:] = 0
    rows = np.arange(num_documents)
    index = ExactIndex(num_facets=4, dim=32, device=device, preselect=preselect)
    index.add(rows // 2 if several else rows, facets)
    index.remove(np.arange(10, 30))
    return index


def queries(num: int) -> NDArray[np.float32]:
    return unit_rows(np.random.default_rng(4).standard_normal((num, 3, 32))) / np.float32(3)


def assert_same(found: Candidates, expected: Candidates) -> None:
    width = min(found.rows.shape[1], expected.rows.shape[1], 10)
    np.testing.assert_array_equal(found.rows[:, :width], expected.rows[:, :width])
    np.testing.assert_allclose(
        found.scores[:, :width], expected.scores[:, :width], atol=1e-4
    )  # the second part of a query's code


def test_fewer_queries_are_compared_at_a_time_where_memory_is_short_and_one_must_fit() -> None:
    index = made()

    def short(query: NDArray[np.float32]) -> Candidates:
        if len(query) > 2:
            raise torch.OutOfMemoryError
        return index.search(query, 10)

    assert_same(search_in_parts(queries(7), short, largest=7), index.search(queries(7), 10))

    def full(_: NDArray[np.float32]) -> Candidates:
        raise torch.OutOfMemoryError

    with pytest.raises(OverloadedError, match="no memory left for one query"):
        search_in_parts(queries(3), full, largest=2)


def test_columns_near_the_last_of_the_best_are_taken_too() -> None:
    scores = torch.tensor([[0.1, 0.9, 0.5, 0.49, -torch.inf], [0.3, -torch.inf, -torch.inf, -torch.inf, -torch.inf]])
    columns, kept = best_columns(scores, 2, margin=0.02)
    assert columns[0].tolist() == [1, 2, 3] and 0 in columns[1].tolist()
    assert kept[0].tolist() == pytest.approx([0.9, 0.5, 0.49])


@pytest.mark.parametrize("several", [False, True])
def test_the_best_are_chosen_on_the_device_as_by_numpy(several: bool) -> None:
    found, expected = (
        made(several=several, preselect=preselect).search(queries(5), 10, allowed_rows=np.arange(0, 120, 3))
        for preselect in (True, False)
    )
    assert_same(found, expected)


def test_a_gpu_is_searched_exactly_and_the_processor_by_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_backend(EngineConfig()), FaissBackend)
    monkeypatch.setattr("facets.index.backends.compute_device", lambda name: "cuda")
    assert isinstance(make_backend(EngineConfig(device="auto")), ExactBackend)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
class TestOnGpu:
    @pytest.mark.parametrize("several", [False, True])
    def test_finds_what_the_processor_finds(self, several: bool) -> None:
        found = made("cuda", several=several).search(queries(9), 10)
        assert_same(found, made(several=several).search(queries(9), 10))

    def test_what_does_not_fit_stays_with_the_processor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(exact.BLOCK_FACETS, "cuda", 256)
        empty_like = torch.empty_like

        def full(part: torch.Tensor, **options: object) -> torch.Tensor:
            if "device" in options:
                raise torch.OutOfMemoryError
            return empty_like(part, **options)  # type: ignore[arg-type]

        index = made("cuda")
        monkeypatch.setattr(torch, "empty_like", full)
        assert_same(made("cuda").search(queries(9), 10), index.search(queries(9), 10))


@given(st.lists(st.integers(1, 13), max_size=8), st.integers(1, 5))
def test_places_hold_the_facets_in_order(counts: list[int], num_facets: int) -> None:
    starts = np.cumsum([0, *counts])
    facets = np.arange(1.0, starts[-1] + 1)[:, None]
    rows = np.arange(len(counts)) * 10
    rows_S, places = paged(rows, facets, starts, num_facets=num_facets)
    for row, own in zip(rows.tolist(), np.split(facets[:, 0], starts[1:-1]), strict=False):
        held = places[rows_S == row].ravel()
        assert held[held > 0].tolist() == own.tolist()
        assert len(held) - len(own) < num_facets
    assert np.array_equal(rows_S[first_places(rows_S)], rows_S)


def test_readers_that_waited_for_a_writer_go_before_all_further_writes() -> None:
    lock, order = ReadWriteLock(), list[str]()

    def read(name: str) -> None:
        with lock.read():
            order.append(name)

    def write() -> None:
        with lock.write():
            order.append("queued write")

    readers = [threading.Thread(target=read, args=(name,)) for name in ("first", "second")]
    writer = threading.Thread(target=write)
    with lock.write():
        writer.start()
        time.sleep(0.01)
        for reader in readers:
            reader.start()
        wait_until(lambda: len(lock.waiting) == 2)
    with lock.write():
        order.append("write")
    for thread in (*readers, writer):
        thread.join()
    assert sorted(order[:2]) == ["first", "second"] and sorted(order[2:]) == ["queued write", "write"]


def test_a_reader_that_fails_leaves_the_lock_to_others() -> None:
    lock = ReadWriteLock()
    with suppress(ValueError), lock.read():
        raise ValueError
    with lock.write():
        pass
