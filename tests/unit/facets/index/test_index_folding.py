"""What waits while new documents are folded into the index of the backend: little, however many there are."""

import numpy as np
import pytest
from numpy.typing import NDArray

from facets.index import exact, live
from facets.index.backends import FaissBackend
from facets.index.config import EngineConfig
from facets.index.faiss_index import FaissIndex
from facets.index.live import LiveIndex


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float16]:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float16)


class Source:
    """Documents of four facets in memory."""

    num_facets, dim = 4, 32

    def __init__(self, num_documents: int) -> None:
        self.facets = unit(np.random.default_rng(1).standard_normal((num_documents, 4, 32)))

    def rows(self) -> NDArray[np.int64]:
        return np.arange(len(self.facets))

    def read(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        return rows, self.facets[rows]


def folded(source: Source) -> tuple[LiveIndex, FaissIndex]:
    """A collection whose first 500 documents are in inverted lists; the others wait to be folded."""
    config = EngineConfig(exact_max_facets=100)
    base = FaissBackend(config).build(
        lambda: [source.read(np.arange(500))], num_documents=500, num_facets=source.num_facets
    )
    assert base is not None
    index = LiveIndex(source, FaissBackend(config), config, base=base)
    index.catch_up()
    return index, base


class Vanishing(Source):
    """All documents are taken away after so many reads."""

    def __init__(self, num_documents: int, *, reads: int) -> None:
        super().__init__(num_documents)
        self.reads = reads

    def read(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        self.reads -= 1
        return super().read(rows if self.reads >= 0 else rows[:0])


def found(index: LiveIndex, source: Source, row: int) -> int:
    query = source.facets[row][None, :1].astype(np.float32)
    return int(index.search(query, 1, allowed_rows=None, exhaustive=True).candidates.rows[0, 0])


@pytest.mark.parametrize("reads", range(1, 4))
def test_documents_may_all_be_taken_away_while_their_index_is_built(reads: int) -> None:
    source, config = Vanishing(300, reads=reads), EngineConfig(exact_max_facets=100)
    index = LiveIndex(source, FaissBackend(config), config)
    index.catch_up()
    index.maintain(lambda: False)
    index.apply(1, added=np.empty(0, dtype=np.int64), removed=source.rows())
    index.maintain(lambda: False)
    query = source.facets[0][None, :1].astype(np.float32)
    assert len(index) == 0
    assert (index.search(query, 1, allowed_rows=None, exhaustive=False).candidates.rows < 0).all()


def test_folding_grows_lists_and_adds_facets_a_little_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("facets.index.faiss_index.MOVED_BYTES", 0)
    monkeypatch.setattr(live, "FOLD_FACETS", 40)
    source, answers, sizes = Source(900), list[bool](), list[int]()
    index, base = folded(source)
    make_room, add = base.make_room, base.add_prepared

    def recorded(prepared: NDArray[np.int64]) -> bool:
        answers.append(make_room(prepared))
        return answers[-1]

    monkeypatch.setattr(base, "make_room", recorded)
    monkeypatch.setattr(base, "add_prepared", lambda rows, *rest: (sizes.append(len(rows)), add(rows, *rest)))
    index.maintain(lambda: False)
    assert len(base) == len(index) == 900 and set(sizes) == {10}
    assert answers.count(False) > 10, "each list that moves should have been a step of its own"
    assert answers[-1]
    assert [found(index, source, row) for row in (3, 499, 500, 899)] == [3, 499, 500, 899]


def test_the_oldest_documents_leave_the_exact_index_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(exact.BLOCK_FACETS, "cpu", 400)
    source = Source(5000)
    index = exact.ExactIndex(num_facets=4, dim=32)
    index.add(source.rows(), source.facets)
    for start in range(0, 4900, 350):
        index.remove(np.arange(start, start + 350))
        assert index.rows().tolist() == list(range(start + 350, 5000))
        assert len(index.slots) - len(index) < 100, "whole blocks of holes should have gone"
    index.add(np.array([5000]), source.facets[:1])
    assert index.oldest(101).tolist() == [*range(4900, 5001)]
    query = source.facets[4950][None, :1].astype(np.float32)
    assert index.search(query, 1).rows[0, 0] == 4950
