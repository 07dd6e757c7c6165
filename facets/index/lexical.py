"""BM25 over the documents of one collection, in memory, written as the documents are.

Terms are known by 32-bit hashes. Shape letters: N slots, T terms, P postings, C documents asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.index.base import ReadWriteLock

_K1 = 0.9  # how fast further occurrences of a term stop to count
_B = 0.4  # how much long documents are discounted
_MAX_QUERY_TERMS = 256  # of a longer query the rarest terms count
_MIN_HOLES = 1024  # fewer removed documents are not worth closing


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The terms of one document."""

    hashes: NDArray[np.uint32]  # of its terms, `[T]` uint32, ascending, all different
    counts: NDArray[np.uint16]  # how often each occurs, `[T]` uint16


@dataclass(frozen=True, slots=True)
class LexicalFound:
    """What a query finds."""

    rows: NDArray[np.int64]  # ascending, `[C]`
    scores: NDArray[np.float32]  # BM25, `[C]`, 0 or more
    # What share of the query's terms each document has, `[C]` in [0, 1]; every different term counts with its inverse
    # document frequency, those of no document too.
    coverage: NDArray[np.float32]
    covered: float  # the largest coverage of any document, allowed or not
    most: float  # BM25 that no document can exceed for this query; 0 without terms
    rarities: Mapping[int, float]  # inverse document frequency of each term
    revision: int  # of the collection that was searched


@dataclass(frozen=True, slots=True)
class _Segment:
    """Postings of some documents: those of term i are ``starts[i]`` to ``starts[i + 1]``."""

    hashes: NDArray[np.uint32]
    starts: NDArray[np.int64]
    slots: NDArray[np.int32]
    counts: NDArray[np.uint16]


def reference_bm25(
    query: Sequence[int], documents: Sequence[TermCounts], *, k1: float = _K1, b: float = _B
) -> NDArray[np.float64]:
    """BM25 the obvious way, ``[N]``: what the index is tested against.

    ``sum_t idf(t) (k1 + 1) n / (n + k1 (1 - b + b length / mean length))`` over the terms t of the query, each as often
    as it occurs there; ``idf(t) = log(1 + (N - N_t + 1/2) / (N_t + 1/2))``.
    """
    counts = [dict(zip(one.hashes.tolist(), one.counts.tolist(), strict=True)) for one in documents]
    lengths = [sum(one.values()) for one in counts]
    scores = np.zeros(len(documents))
    for term in query:
        having = sum(term in one for one in counts)
        idf = np.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for n, one in enumerate(counts):
            if term in one:
                discount = k1 * (1 - b + b * lengths[n] * len(lengths) / sum(lengths))
                scores[n] += idf * (k1 + 1) * one[term] / (one[term] + discount)
    return scores


class LexicalIndex:
    """Ranks documents by BM25; thread-safe.

    Every addition is a segment of postings of its own; segments of like size are merged, so that there are few and
    each posting is moved a logarithmic number of times.

    Args:
        revision: Of the collection that it stands for.
    """

    def __init__(self, revision: int = 0) -> None:
        self._lock = ReadWriteLock()
        self.revision = revision  # of the collection that it has reached
        self._clear()

    def _clear(self) -> None:
        self._rows: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # ascending: rows are never reused
        self._lengths: NDArray[np.float32] = np.empty(0, dtype=np.float32)
        self._alive: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        self._segments: list[_Segment] = []

    def __len__(self) -> int:
        return int(np.count_nonzero(self._alive))

    def rows(self) -> NDArray[np.int64]:
        """Row numbers of everything in the index, ascending."""
        with self._lock.read():
            return self._rows[self._alive]

    def apply(
        self, revision: int, *, added: NDArray[np.int64], removed: NDArray[np.int64], terms: Sequence[TermCounts] = ()
    ) -> None:
        """Repeats a write of the store.

        ``revision``: of the collection after it. ``added``: rows added, ascending and above all earlier ones.
        ``removed``: rows removed; those that are not here are ignored.
        """
        with self._lock.write():
            self._alive[self._slots(removed)] = False
            if len(added):
                self._add(added, terms)
            dead = len(self._alive) - int(np.count_nonzero(self._alive))
            if dead > len(self._alive) // 2 + _MIN_HOLES:
                self._compact()
            self.revision = revision

    def discard(self, rows: NDArray[np.int64]) -> None:
        """Leaves rows out that the store has but cannot read."""
        with self._lock.write():
            self._alive[self._slots(rows)] = False

    def search(
        self,
        query: Sequence[int],
        count: int,
        *,
        also: NDArray[np.int64] | None = None,
        allowed_rows: NDArray[np.int64] | None = None,
    ) -> LexicalFound:
        """The best documents for a query that have any of its terms, and the scores of others asked for.

        Args:
            query: Hashes of its terms; one that occurs twice counts twice.
            count: How many of the best.
            also: Rows whose scores are wanted in any case; those that are not here are left out.
            allowed_rows: Sorted rows: only these; None: all.
        """
        with self._lock.read():
            scores, coverage, most, rarities = self._scores(query)
            wanted = scores > 0
            if allowed_rows is not None:
                wanted &= np.isin(self._rows, allowed_rows)
            slots = np.flatnonzero(wanted)
            if len(slots) > count:
                kth = np.partition(scores[slots], len(slots) - count)[len(slots) - count]
                better = slots[scores[slots] > kth]
                ties = slots[scores[slots] == kth][: 2 * count - len(better)]  # at the cut, within bounds
                slots = np.sort(np.concatenate([better, ties]))
            if also is not None:
                slots = np.union1d(slots, self._slots(also))
            covered, found = float(coverage.max(initial=0.0)), (self._rows[slots], scores[slots], coverage[slots])
            return LexicalFound(*found, covered, most, rarities, self.revision)

    def having_all(self, query: Sequence[int]) -> NDArray[np.int64]:
        """Rows of the documents that have every term, ascending."""
        with self._lock.read():
            slots: NDArray[np.int64] | None = None
            for term in dict.fromkeys(query):
                having = np.sort(self._postings(term)[0])
                slots = having if slots is None else np.intersect1d(slots, having, assume_unique=True)
            return np.empty(0, dtype=np.int64) if slots is None else self._rows[slots]

    def rarity(self, query: Sequence[int]) -> float:
        """The sum of the inverse document frequencies of the terms."""
        with self._lock.read():
            return sum(self._idf(len(self._postings(term)[0])) for term in query)

    def _idf(self, having: int) -> float:
        return float(np.log(1 + (len(self) - having + 0.5) / (having + 0.5)))

    def _slots(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Slots of those of the rows that are here."""
        if not len(self._rows) or not len(rows):
            return np.empty(0, dtype=np.int64)
        places = np.minimum(np.searchsorted(self._rows, rows), len(self._rows) - 1)
        found: NDArray[np.int64] = places[(self._rows[places] == rows) & self._alive[places]]
        return found

    def _postings(self, term: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Slots of the documents that have a term, and how often."""
        slots, counts = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.float32)]
        for segment in self._segments:
            place = int(np.searchsorted(segment.hashes, np.uint32(term)))
            if place < len(segment.hashes) and segment.hashes[place] == term:
                part = slice(segment.starts[place], segment.starts[place + 1])
                alive = self._alive[segment.slots[part]]
                slots.append(segment.slots[part][alive].astype(np.int64))
                counts.append(segment.counts[part][alive].astype(np.float32))
        return np.concatenate(slots), np.concatenate(counts)

    def _scores(self, query: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.float32], float, dict[int, float]]:
        """BM25 and coverage of every slot, the bound of BM25 and rarities; see :class:`LexicalFound`."""
        scores = np.zeros(len(self._rows), dtype=np.float32)
        coverage = np.zeros(len(self._rows), dtype=np.float32)
        if not len(self) or not len(query):
            return scores, coverage, 0.0, {}
        mean = max(float(self._lengths[self._alive].mean()), 1.0)
        discounts = _K1 * (1 - _B + _B * self._lengths / mean)
        occurrences: dict[int, int] = {}
        for term in query:
            occurrences[term] = occurrences.get(term, 0) + 1
        found = [(times, *self._postings(term)) for term, times in occurrences.items()]
        rarities = {term: self._idf(len(slots)) for term, (_, slots, _) in zip(occurrences, found, strict=True)}
        everything = sum(rarities.values())
        most = (_K1 + 1) * sum(times * rarities[term] for term, times in occurrences.items())
        found = sorted((entry for entry in found if len(entry[1])), key=lambda entry: len(entry[1]))
        for times, slots, counts in found[:_MAX_QUERY_TERMS]:
            idf = self._idf(len(slots))
            scores[slots] += np.float32(times * idf * (_K1 + 1)) * counts / (counts + discounts[slots])
            coverage[slots] += np.float32(idf / everything)
        return scores, coverage, most, rarities

    def _add(self, rows: NDArray[np.int64], terms: Sequence[TermCounts]) -> None:
        first = len(self._rows)
        sizes = [len(one.hashes) for one in terms]
        self._rows = np.concatenate([self._rows, rows])
        self._alive = np.concatenate([self._alive, np.ones(len(rows), dtype=np.bool_)])
        lengths = np.array([int(one.counts.sum(dtype=np.int64)) for one in terms], dtype=np.float32)
        self._lengths = np.concatenate([self._lengths, lengths])
        slots = np.repeat(np.arange(first, first + len(rows), dtype=np.int32), sizes)
        hashes = np.concatenate([np.empty(0, dtype=np.uint32), *(one.hashes for one in terms)])
        counts = np.concatenate([np.empty(0, dtype=np.uint16), *(one.counts for one in terms)])
        self._segments.append(_segment(hashes, slots, counts))
        while len(self._segments) > 1 and 2 * len(self._segments[-1].slots) > len(self._segments[-2].slots):
            self._segments[-2:] = [self._merged(self._segments[-2:])]

    def _merged(self, segments: Sequence[_Segment]) -> _Segment:
        """One segment of several, without the postings of removed documents."""
        hashes = np.concatenate([np.repeat(one.hashes, np.diff(one.starts)) for one in segments])
        slots = np.concatenate([one.slots for one in segments])
        counts = np.concatenate([one.counts for one in segments])
        alive = self._alive[slots]
        return _segment(hashes[alive], slots[alive], counts[alive])

    def _compact(self) -> None:
        merged, alive = self._merged(self._segments), self._alive
        renumbered = np.cumsum(alive, dtype=np.int32) - 1
        segment = _Segment(merged.hashes, merged.starts, renumbered[merged.slots], merged.counts)
        self._rows, self._lengths = self._rows[alive], self._lengths[alive]
        self._alive = np.ones(len(self._rows), dtype=np.bool_)
        self._segments = [segment]


def _segment(hashes: NDArray[np.uint32], slots: NDArray[np.int32], counts: NDArray[np.uint16]) -> _Segment:
    order = np.argsort(hashes, kind="stable")  # radix sort: linear
    hashes = hashes[order]
    distinct, starts = np.unique(hashes, return_index=True)
    return _Segment(distinct, np.append(starts, len(hashes)).astype(np.int64), slots[order], counts[order])
