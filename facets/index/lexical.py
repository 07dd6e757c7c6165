"""BM25 over the documents of one collection, in memory, updated with every write.

Terms are identified by 32-bit hashes. Shape letters: N documents, T terms, C documents found.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from facets.arrays import Bools, Floats, Ints, Ints32
from facets.index.base import ReadWriteLock

_K1 = 0.9  # saturation of repeated terms
_B = 0.4  # discount of long documents
_MAX_QUERY_TERMS = 256  # of a longer query only the rarest terms count
_MIN_REMOVED = 1024  # fewer removed documents are not worth compacting


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The terms of one document."""

    hashes: NDArray[np.uint32]  # of its terms, `[T]`, ascending, all different
    counts: NDArray[np.uint16]  # occurrences of each, `[T]`


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """Documents found by the words of a query, with their scores."""

    rows: Ints  # ascending, `[C]`
    scores: Floats  # BM25, `[C]`, 0 or more
    # Share of the query's different terms that each document has, `[C]` in [0, 1], weighted by inverse document
    # frequency; includes terms of no document.
    coverage: Floats
    upper_bound: float  # BM25 that no document reaches by its words; 0 without terms
    rarities: Mapping[int, float]  # inverse document frequency of each term
    revision: int  # of the collection


@dataclass(frozen=True, slots=True)
class _Segment:
    """Postings of some documents: those of term i are ``starts[i]`` to ``starts[i + 1]``."""

    hashes: NDArray[np.uint32]
    starts: Ints
    slots: Ints32
    counts: NDArray[np.uint16]


class LexicalIndex:
    """Ranks documents by BM25; thread-safe.

    ``sum_t idf(t) (k1 + 1) n / (n + k1 (1 - b + b length / mean length))`` over the terms t of the query, repeated ones
    too; ``idf(t) = log(1 + (N - N_t + 1/2) / (N_t + 1/2))``. Every write adds a segment of postings; segments of
    similar size are merged, so that there are few and each posting is moved a logarithmic number of times.
    """

    def __init__(self, revision: int = 0) -> None:
        self._lock = ReadWriteLock()
        self.revision = revision  # of the collection
        self._rows: Ints = np.empty(0, dtype=np.int64)  # ascending: rows are never reused
        self._lengths: Floats = np.empty(0, dtype=np.float32)
        self._alive: Bools = np.empty(0, dtype=np.bool_)
        self._segments: list[_Segment] = []

    def __len__(self) -> int:
        return int(np.count_nonzero(self._alive))

    def rows(self) -> Ints:
        """Rows of all documents, ascending."""
        with self._lock.read():
            return self._rows[self._alive]

    def apply(self, revision: int, *, added: Ints, removed: Ints, terms: Sequence[TermCounts] = ()) -> None:
        """Applies a write of the store that led to ``revision``.

        ``added``: rows, ascending and above all earlier ones, with their ``terms``. ``removed``: unknown rows are
        ignored.
        """
        with self._lock.write():
            self._alive[self._slots(removed)] = False
            if len(added):
                self._add(added, terms)
            num_removed = len(self._alive) - int(np.count_nonzero(self._alive))
            if num_removed > len(self._alive) // 2 + _MIN_REMOVED:
                self._compact()
            self.revision = revision

    def search(
        self, query: Sequence[int], num_candidates: int, *, also: Ints | None = None, allowed_rows: Ints | None = None
    ) -> LexicalScores:
        """Finds the best documents that have any term of a query, and scores them and other given rows.

        ``query``: hashes of its terms; a repeated term counts each time. ``num_candidates``: ties at the cut may add as
        many again. ``also``: further rows to score; unknown ones are left out. ``allowed_rows``: sorted; None: all.
        """
        with self._lock.read():
            scores, coverage, upper_bound, rarities = self._scores(query)
            is_candidate = scores > 0
            if allowed_rows is not None:
                is_candidate &= np.isin(self._rows, allowed_rows)
            slots = np.flatnonzero(is_candidate)
            if len(slots) > num_candidates:
                last = np.partition(scores[slots], len(slots) - num_candidates)[len(slots) - num_candidates]
                better = slots[scores[slots] > last]
                ties = slots[scores[slots] == last][: 2 * num_candidates - len(better)]
                slots = np.sort(np.concatenate([better, ties]))
            if also is not None:
                slots = np.union1d(slots, self._slots(also))
            return LexicalScores(
                rows=self._rows[slots],
                scores=scores[slots],
                coverage=coverage[slots],
                upper_bound=upper_bound,
                rarities=rarities,
                revision=self.revision,
            )

    def having_all(self, query: Sequence[int]) -> Ints:
        """Rows of the documents that have all terms, ascending."""
        with self._lock.read():
            postings = sorted((self._postings(term)[0] for term in set(query)), key=len)
            return self._rows[reduce(np.intersect1d, postings)] if postings else self._rows[:0]

    def rarity(self, query: Sequence[int]) -> float:
        """Sum of the inverse document frequencies of the terms."""
        with self._lock.read():
            return sum(self._idf(len(self._postings(term)[0])) for term in query)

    def _idf(self, num_with_term: int) -> float:
        return float(np.log(1 + (len(self) - num_with_term + 0.5) / (num_with_term + 0.5)))

    def _slots(self, rows: Ints) -> Ints:
        """Slots of the given rows that are in the index."""
        if not len(self._rows):
            return np.empty(0, dtype=np.int64)
        places = np.minimum(np.searchsorted(self._rows, rows), len(self._rows) - 1)
        found: Ints = places[(self._rows[places] == rows) & self._alive[places]]
        return found

    def _postings(self, term: int) -> tuple[Ints, Floats]:
        """Slots of the documents that have a term, and its occurrences."""
        slots, counts = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.float32)]
        for segment in self._segments:
            place = int(np.searchsorted(segment.hashes, np.uint32(term)))
            if place < len(segment.hashes) and segment.hashes[place] == term:
                part = slice(segment.starts[place], segment.starts[place + 1])
                alive = self._alive[segment.slots[part]]
                slots.append(segment.slots[part][alive].astype(np.int64))
                counts.append(segment.counts[part][alive].astype(np.float32))
        return np.concatenate(slots), np.concatenate(counts)

    def _scores(self, query: Sequence[int]) -> tuple[Floats, Floats, float, dict[int, float]]:
        """BM25 and coverage of every slot, upper bound of BM25, and rarities; see :class:`LexicalScores`."""
        scores = np.zeros(len(self._rows), dtype=np.float32)
        coverage = np.zeros(len(self._rows), dtype=np.float32)
        if not len(self) or not len(query):
            return scores, coverage, 0.0, {}
        mean = max(float(self._lengths[self._alive].mean()), 1.0)
        discounts = _K1 * (1 - _B + _B * self._lengths / mean)
        occurrences = Counter(query)
        postings = [(times, *self._postings(term)) for term, times in occurrences.items()]
        rarities = {term: self._idf(len(slots)) for term, (_, slots, _) in zip(occurrences, postings, strict=True)}
        total_rarity = sum(rarities.values())
        upper_bound = (_K1 + 1) * sum(times * rarities[term] for term, times in occurrences.items())
        postings = sorted((entry for entry in postings if len(entry[1])), key=lambda entry: len(entry[1]))
        for times, slots, counts in postings[:_MAX_QUERY_TERMS]:
            idf = self._idf(len(slots))
            scores[slots] += np.float32(times * idf * (_K1 + 1)) * counts / (counts + discounts[slots])
            coverage[slots] += np.float32(idf / total_rarity)
        return scores, coverage, upper_bound, rarities

    def _add(self, rows: Ints, terms: Sequence[TermCounts]) -> None:
        first = len(self._rows)
        sizes = [len(document.hashes) for document in terms]
        self._rows = np.concatenate([self._rows, rows])
        self._alive = np.concatenate([self._alive, np.ones(len(rows), dtype=np.bool_)])
        lengths = np.array([int(document.counts.sum(dtype=np.int64)) for document in terms], dtype=np.float32)
        self._lengths = np.concatenate([self._lengths, lengths])
        slots = np.repeat(np.arange(first, first + len(rows), dtype=np.int32), sizes)
        hashes = np.concatenate([np.empty(0, dtype=np.uint32), *(document.hashes for document in terms)])
        counts = np.concatenate([np.empty(0, dtype=np.uint16), *(document.counts for document in terms)])
        self._segments.append(_segment(hashes, slots, counts))
        while len(self._segments) > 1 and 2 * len(self._segments[-1].slots) > len(self._segments[-2].slots):
            self._segments[-2:] = [self._merged(self._segments[-2:])]

    def _merged(self, segments: Sequence[_Segment]) -> _Segment:
        """One segment made of several, without postings of removed documents."""
        hashes = np.concatenate([np.repeat(segment.hashes, np.diff(segment.starts)) for segment in segments])
        slots = np.concatenate([segment.slots for segment in segments])
        counts = np.concatenate([segment.counts for segment in segments])
        alive = self._alive[slots]
        return _segment(hashes[alive], slots[alive], counts[alive])

    def _compact(self) -> None:
        merged, alive = self._merged(self._segments), self._alive
        renumbered = np.cumsum(alive, dtype=np.int32) - 1
        self._segments = [replace(merged, slots=renumbered[merged.slots])]
        self._rows, self._lengths, self._alive = self._rows[alive], self._lengths[alive], alive[alive]


def _segment(hashes: NDArray[np.uint32], slots: Ints32, counts: NDArray[np.uint16]) -> _Segment:
    order = np.argsort(hashes, kind="stable")  # radix sort: linear
    hashes = hashes[order]
    distinct, starts = np.unique(hashes, return_index=True)
    return _Segment(distinct, np.append(starts, len(hashes)).astype(np.int64), slots[order], counts[order])
