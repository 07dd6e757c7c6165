"""Places of an index, where nothing of a document is lost or mixed with another's; and the lock of its readers."""

import threading
import time
from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from facets.index.base import ReadWriteLock, first_places, paged
from facets.index.exact import ExactIndex


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


def test_whole_documents_are_read_from_the_exact_index() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 30, 50)
    starts = np.cumsum([0, *counts])
    rows, places = paged(np.arange(50), rng.standard_normal((starts[-1], 8)), starts, num_facets=4)
    index = ExactIndex(num_facets=4, dim=8)
    for start in range(0, 50, 7):
        own = (rows >= start) & (rows < start + 7)
        index.add(rows[own], places[own])
    assert len(index) == 50
    seen: list[int] = []
    while len(index):
        found = index.oldest(5)
        assert np.isin(rows, found).sum() >= min(5, len(index))
        assert index.remove(found) == len(found)
        seen += found.tolist()
    assert seen == list(range(50))


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.001)


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


def test_writes_and_reads_of_many_threads_all_end_and_never_overlap() -> None:
    lock, inside, overlaps = ReadWriteLock(), list[str](), list[list[str]]()

    def work(kind: str) -> None:
        for _ in range(200):
            with lock.write() if kind == "write" else lock.read():
                inside.append(kind)
                if "write" in inside and len(inside) > 1:
                    overlaps.append(list(inside))
                inside.remove(kind)

    threads = [threading.Thread(target=work, args=(kind,), daemon=True) for kind in ("read", "write") * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not overlaps


def test_a_reader_that_fails_leaves_the_lock_to_others() -> None:
    lock = ReadWriteLock()
    try:
        with lock.read():
            raise ValueError
    except ValueError:
        pass
    with lock.write():
        pass
