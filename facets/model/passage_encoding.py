"""Turns passages of any length into facets, one for a few words, with any encoder of windows.

A facet is the mean of the states of a span, read within its sentence alone and within its window (late chunking), mixed
with the vector of the whole text. A long text is cut between sentences into windows; many facets are reduced to fewer.
Shape suffixes: N texts, W windows, B windows of a batch, K facets, M facets of a part of a text, S sentences, T spans,
D dimensions.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from facets.arrays import Bools, Floats, Ints, Ints32
from facets.errors import CheckpointError
from facets.language.interruption import check_interrupted
from facets.language.tokenizer import grouped
from facets.language.vectors import unit_rows
from facets.model.facet_reduction import ALIKE, Reduced, merge_alike, reduce_facets
from facets.model.word_pieces import Pieces

logger = logging.getLogger(__name__)

_SHORTEST_SENTENCE = 2  # pieces with a letter or digit; a shorter sentence ("Yes.", "3.") is read with the next one
_LONGEST_SENTENCE = 128  # pieces; a longer one (a table, a list without full stops) is read in parts
_SPAN = 12  # most pieces of a span: chosen by leave-one-set-out, see docs/measure/experiments.md
_CONTEXT_SHARE = 0.5  # of a span's states within its window, where those within its sentence have 1
_BATCH_TOKENS = 2048  # per forward pass: enough for efficient matrix products, few enough for the CPU cache
# Windows encoded at once. A longer text is reduced section by section, which bounds the memory for its facets.
_SECTION_WINDOWS = 256
_SLICE_WINDOWS = 1024
_SECTION_FACETS = 256


ReadWindows: TypeAlias = tuple[Floats, Floats | None]
"""Vectors of windows, ``[B, D]``, and of spans of them, ``[T, D]``."""


class WindowEncoder(Protocol):
    """What a passage model needs of an encoder."""

    @property
    def network(self) -> torch.nn.Module:
        """What encodes, on its device."""

    dim: int  # D, width of a vector
    longest: int  # most pieces of a window
    num_special: int  # tokens that every window has beside its pieces: special ones and the prompt
    pads: bool  # whether windows are padded to the longest of a batch
    has_states: bool  # whether it has states of pieces, for vectors of spans within a window

    def split(self, texts: Sequence[str], *, query: bool = False) -> list[Pieces]:
        """Pieces of texts, with offsets in characters."""

    def knows_script(self, text: str) -> bool:
        """Whether the encoder knows words of the script that most letters of a text are in."""

    def encode(self, windows: Sequence[Pieces], bounds: Sequence[Ints] | None, *, query: bool) -> ReadWindows:
        """Vectors of windows and of spans of them; the latter are None without ``bounds`` or ``has_states``.

        ``bounds``: for each window the first piece of each span, then the number of pieces.
        """


def sentence_bounds(starts_S: NDArray[np.integer], says_L: Bools) -> Ints:
    """Bounds of the sentences as they are read: very short ones are joined with the next.

    ``starts_S``: first piece of each sentence, ascending. ``says_L``: whether each piece has a letter or digit. Returns
    the first piece of each sentence, then the number of pieces.
    """
    said_L1 = np.concatenate([np.zeros(1, dtype=np.int64), says_L.cumsum()])
    bounds, last = [0], len(says_L)
    for start, said in zip(starts_S.tolist(), said_L1[starts_S].tolist(), strict=True):
        if min(said - said_L1[bounds[-1]], said_L1[last] - said) >= _SHORTEST_SENTENCE:
            bounds.append(start)
    return np.array([*bounds, last], dtype=np.int64)


def cut_long(bounds_S1: Ints, gaps_L: Bools, *, longest: int) -> Ints:
    """Cuts parts of a text evenly that have more than ``longest`` pieces; where white space precedes, if possible.

    ``bounds_S1``: first piece of each part, then the number of pieces; returned with more bounds. ``gaps_L``: whether
    white space precedes each piece.
    """
    if (np.diff(bounds_S1) <= longest).all():
        return bounds_S1
    cut = [0]
    for end in bounds_S1[1:].tolist():
        while end - cut[-1] > longest:
            left = end - cut[-1]
            wanted, least = cut[-1] + -(-left // -(-left // longest)), cut[-1] + max(1, longest // 2)
            gaps = np.flatnonzero(gaps_L[least : wanted + 1])
            cut.append(least + int(gaps[-1]) if len(gaps) else wanted)
        cut.append(end)
    return np.array(cut, dtype=np.int64)


class Cut(NamedTuple):
    """How a text is read: bounds of sentences, and of spans within them; pieces, the last bound is their number."""

    sentences: Ints  # `[S + 1]`
    spans: Ints  # `[M + 1]`, among them all of `sentences`


def cut_text(starts_S: NDArray[np.integer], says_L: Bools, gaps_L: Bools, encoder: WindowEncoder) -> Cut:
    """Cuts a text for an encoder; for the arguments see ``sentence_bounds`` and ``cut_long``."""
    longest = min(encoder.longest, _LONGEST_SENTENCE)
    sentences = cut_long(sentence_bounds(starts_S, says_L), gaps_L, longest=longest)
    return Cut(sentences, cut_long(sentences, gaps_L, longest=_SPAN) if encoder.has_states else sentences)


@dataclass(frozen=True, slots=True)
class Window:
    """Sentences of one text that are read together."""

    text: int  # index of the text
    bounds: Ints  # first piece of each span, then one past the last piece

    @property
    def pieces(self) -> slice:
        """The pieces of the text that belong to the window."""
        return slice(int(self.bounds[0]), int(self.bounds[-1]))

    def __len__(self) -> int:
        return int(self.bounds[-1] - self.bounds[0])

    @classmethod
    def of(cls, text: int, start: int, end: int, spans: Ints) -> "Window":
        """The window from piece ``start`` to ``end``, both among the bounds ``spans``."""
        first, last = np.searchsorted(spans, [start, end])
        return cls(text, spans[first : last + 1])


def cut_windows(text: int, cut: Cut, *, longest: int) -> list[Window]:
    """Cuts a text between sentences into windows of about equal length, at most ``longest`` pieces each.

    Example:
        >>> sentences = np.array([0, 4, 7, 10])
        >>> [window.bounds.tolist() for window in cut_windows(0, Cut(sentences, sentences), longest=8)]
        [[0, 4, 7], [7, 10]]
    """
    bounds_S1, num_pieces = cut.sentences, int(cut.sentences[-1])
    count = -(-num_pieces // longest)
    if count == 1:
        return [Window(text, cut.spans)]
    windows: list[Window] = []
    done = 0
    while done < num_pieces:
        share = (num_pieces - done) / max(1, count - len(windows))
        wanted = int(np.searchsorted(bounds_S1, done + share))
        fitting = int(np.searchsorted(bounds_S1, done + longest, side="right")) - 1
        end = int(bounds_S1[min(wanted, fitting)])
        windows.append(Window.of(text, done, end, cut.spans))
        done = end
    return windows


def length_batches(
    lengths: Sequence[int] | NDArray[np.integer], *, max_tokens: int, pads: bool = False
) -> Iterator[Ints]:
    """Batches of texts of similar length, longest first, as indexes of the texts.

    ``max_tokens``: of a batch, at least one text; with ``pads`` the padding to its longest text counts, too.
    """
    lengths_B = np.asarray(lengths, dtype=np.int64)
    order_B = np.argsort(-lengths_B, kind="stable")
    ends_B = np.cumsum(lengths_B[order_B])
    start = 0
    while start < len(order_B):
        before = int(ends_B[start - 1]) if start else 0
        end = int(np.searchsorted(ends_B, before + max_tokens, side="right"))
        if pads:
            end = min(end, start + max_tokens // max(1, int(lengths_B[order_B[start]])))
        end = max(start + 1, end)
        yield order_B[start:end]
        start = end


@dataclass(frozen=True, slots=True)
class PassageFacets:
    """Facets of passages and their sentences."""

    facets: Floats  # `[N, K, D]`, unit norm; zero rows where a text has fewer facets
    spans: Ints32  # `[N, K, 2]`, characters `[start, end)` of each facet's sentence; (0, 0) for zero rows only
    num_tokens: Ints  # `[N]`, pieces of each text; all of them are read
    # Facets `[M, D]` and spans `[M, 2]` of long texts, whose documents keep more than K facets, by text index.
    kept: Mapping[int, tuple[Floats, Ints32]] = field(default_factory=dict)

    def document(self, text: int) -> tuple[Floats, Ints32]:
        """Facets and spans that a document of this text keeps: K, or more for a long text."""
        return self.kept.get(text, (self.facets[text], self.spans[text]))


class _Section(NamedTuple):
    """Facets of a part of a text ``[M, D]``, their spans ``[M, 2]``, and how many facets each stands for ``[M]``."""

    facets: Floats
    spans: Ints32
    weights: Floats

    def reduced(self, num_facets: int) -> "_Section":
        return self._of(reduce_facets(self.facets, self.weights, num_facets))

    def merged(self, alike: float) -> "_Section":
        return self._of(merge_alike(self.facets, self.weights, alike))

    def _of(self, few: Reduced) -> "_Section":
        return _Section(few.facets, self.spans[few.closest], few.weights)


@dataclass(frozen=True, slots=True)
class PassageEncoder:
    """Makes facets and vectors of texts of any length."""

    encoder: WindowEncoder
    num_facets: int  # K
    max_facets: int = 128  # most facets kept for a text of more than K sentences; >= K
    tokens_per_long_facet: int = 8  # pieces per facet that is kept for such a text
    reads_sentences: bool = True  # False: windows are read only, once
    reads_windows: bool = True  # False: sentences are read by themselves only, and the whole text is their mean
    whole_share: float = 0.7  # of the whole text's vector, where the span's has 1
    alike: float = ALIKE  # facets of a higher cosine are merged

    def facets(self, texts: Sequence[Pieces], cuts: Sequence[Cut]) -> PassageFacets:
        """Facets and spans of texts of at least one piece each."""
        facets_NKD = np.zeros((len(texts), self.num_facets, self.encoder.dim), dtype=np.float32)
        spans_NK2 = np.zeros((len(texts), self.num_facets, 2), dtype=np.int32)
        whole_ND = np.zeros((len(texts), self.encoder.dim), dtype=np.float32)
        sections: dict[int, list[_Section]] = {}
        longest = self.encoder.longest
        for part in _slices(len(texts), lambda text: cut_windows(text, cuts[text], longest=longest)):
            for text, section, vector_D in self._sections(texts, cuts, part):
                sections.setdefault(text, []).append(section)
                whole_ND[text] += vector_D
        whole_ND = self.whole_share * unit_rows(whole_ND)
        kept = {}
        for text, parts in sections.items():
            wanted = min(self.max_facets, -(-len(texts[text]) // self.tokens_per_long_facet))
            few = many = _joined(parts).reduced(max(self.num_facets, wanted)).merged(self.alike)
            if len(many.facets) > self.num_facets:
                few = many.reduced(self.num_facets).merged(self.alike)
                kept[text] = (unit_rows(many.facets + whole_ND[text]), many.spans)
            facets_NKD[text, : len(few.facets)] = unit_rows(few.facets + whole_ND[text])
            spans_NK2[text, : len(few.spans)] = few.spans
        num_tokens_N = np.array([len(pieces) for pieces in texts], dtype=np.int64)
        return PassageFacets(facets_NKD, spans_NK2, num_tokens_N, kept)

    def _sections(
        self, texts: Sequence[Pieces], cuts: Sequence[Cut], sections: list[list[Window]]
    ) -> Iterator[tuple[int, _Section, Floats]]:
        """For each section: the index of its text, the vectors of its spans, and the sum of those of its windows."""
        windows = [window for section in sections for window in section]
        whole_WD, spans_TD = self._spans(texts, cuts, windows)
        first = start = 0
        for section in sections:
            own = texts[section[0].text]
            firsts = np.concatenate([window.bounds[:-1] for window in section])
            sentences = cuts[section[0].text].sentences
            place_T = np.searchsorted(sentences, firsts, side="right")
            starts, ends = own.starts[sentences[place_T - 1]], own.ends[sentences[place_T] - 1]
            spans = np.stack([starts, np.maximum(ends, starts + 1)], axis=1)
            own_TD = spans_TD[start : start + len(firsts)]
            used = own_TD.any(axis=1)
            part = _Section(own_TD[used], spans[used], np.ones(int(used.sum()), dtype=np.float32))
            lengths = np.array([len(window) for window in section], dtype=np.float32)
            yield section[0].text, part.reduced(_SECTION_FACETS), lengths @ whole_WD[first : first + len(section)]
            first, start = first + len(section), start + len(firsts)

    def _spans(self, texts: Sequence[Pieces], cuts: Sequence[Cut], windows: Sequence[Window]) -> tuple[Floats, Floats]:
        """Unit vectors of windows ``[W, D]`` and of their spans ``[T, D]``, from both readings."""
        if not self.reads_sentences:
            windows_WD, in_window_TD = self._read(texts, windows, with_spans=True)
            return windows_WD, windows_WD if in_window_TD is None else in_window_TD
        sentences, counts = list[Window](), list[int]()
        for window in windows:
            start, end = window.bounds[[0, -1]].tolist()
            bounds = cuts[window.text].sentences
            inside = bounds[(bounds >= start) & (bounds <= end)].tolist()
            sentences += [Window.of(window.text, a, b, window.bounds) for a, b in pairwise(inside)]
            counts.append(len(inside) - 1)
        alone_SD, spans_TD = self._read(texts, sentences, with_spans=True)
        if spans_TD is None:  # every span is a sentence
            spans_TD = alone_SD
        lengths_S1 = np.array([[len(sentence)] for sentence in sentences], dtype=np.float32)
        windows_WD = unit_rows(np.add.reduceat(alone_SD * lengths_S1, np.cumsum([0, *counts[:-1]])))
        again = [number for number, count in enumerate(counts) if count > 1] if self.reads_windows else []
        if again:  # the others have been read already, as their only sentence
            windows_WD[again], in_window_TD = self._read(texts, [windows[i] for i in again], with_spans=True)
            if in_window_TD is not None:
                again_T = np.repeat(np.isin(np.arange(len(windows)), again), [len(w.bounds) - 1 for w in windows])
                spans_TD[again_T] = unit_rows(spans_TD[again_T] + _CONTEXT_SHARE * in_window_TD)
        return windows_WD, spans_TD

    def vectors(self, texts: Sequence[Pieces], *, query: bool = False) -> Floats:
        """Unit vectors ``[N, D]`` of texts; the mean over windows for long texts."""
        longest, vectors_ND = self.encoder.longest, np.zeros((len(texts), self.encoder.dim), dtype=np.float32)

        def windows_of(text: int) -> list[Window]:
            num_pieces = len(texts[text])
            bounds = np.linspace(0, num_pieces, max(1, -(-num_pieces // longest)) + 1).astype(np.int64)
            return [Window(text, np.array(pair)) for pair in pairwise(bounds.tolist())]

        for sections in _slices(len(texts), windows_of):
            windows = [window for section in sections for window in section]
            read_WD, _ = self._read(texts, windows, with_spans=False, query=query)
            lengths_W = np.array([len(window) for window in windows], dtype=np.float32)
            np.add.at(vectors_ND, [window.text for window in windows], read_WD * lengths_W[:, None])
        return unit_rows(vectors_ND)

    def query_vectors(self, texts: Sequence[Pieces], bounds: Sequence[Ints]) -> Floats:
        """Unit vectors ``[P, D]`` of parts of queries: the mean of the part read by itself and within its query.

        ``bounds``: for each text, the first piece of each part, then the number of pieces (at least 1).
        """
        parts = [text.cut(slice(a, b)) for text, cut in zip(texts, bounds, strict=True) for a, b in pairwise(cut)]
        vectors_PD = self.vectors(parts, query=True)
        counts_N = np.array([len(cut) - 1 for cut in bounds], dtype=np.int64)
        firsts_N = np.cumsum(counts_N) - counts_N
        longest = self.encoder.longest
        several = [text for text in np.flatnonzero(counts_N > 1).tolist() if np.diff(bounds[text]).max() <= longest]
        cuts = {text: Cut(bounds[text], bounds[text]) for text in several}
        windows = [window for text in several for window in cut_windows(text, cuts[text], longest=longest)]
        context_SD = self._read(texts, windows, with_spans=True, query=True)[1] if windows else None
        if context_SD is not None:
            places = np.concatenate([firsts_N[text] + np.arange(counts_N[text]) for text in several])
            vectors_PD[places] += context_SD
        return unit_rows(vectors_PD)

    def _read(
        self, texts: Sequence[Pieces], windows: Sequence[Window], *, with_spans: bool, query: bool = False
    ) -> ReadWindows:
        """Unit vectors of windows and, ``with_spans``, of their spans, if the encoder can."""
        vectors_WD = np.zeros((len(windows), self.encoder.dim), dtype=np.float32)
        counts_W = np.array([len(window.bounds) - 1 for window in windows], dtype=np.int64)
        ends_W = counts_W.cumsum()
        spans_TD = np.zeros((int(counts_W.sum()) if with_spans else 0, self.encoder.dim), dtype=np.float32)
        lengths_W = np.array([len(window) for window in windows], dtype=np.int64) + self.encoder.num_special
        for part in length_batches(lengths_W, max_tokens=_BATCH_TOKENS, pads=self.encoder.pads):
            check_interrupted()
            own = [windows[i] for i in part]
            cut = [texts[window.text].cut(window.pieces) for window in own]
            bounds = [window.bounds - window.bounds[0] for window in own] if with_spans else None
            read_BD, read_TD = self.encoder.encode(cut, bounds, query=query)
            if not _are_finite(read_BD, read_TD):
                # Rare, and not twice for the same texts, if caused by kernels and not by weights.
                logger.warning("vectors of %d windows were not finite, reading them again", len(own))
                read_BD, read_TD = self.encoder.encode(cut, bounds, query=query)
                if not _are_finite(read_BD, read_TD):
                    raise CheckpointError("the encoder gives numbers that are not finite: its weights are damaged")
            vectors_WD[part] = read_BD
            if read_TD is None:
                with_spans = False
            else:
                places = [np.arange(end - count, end) for end, count in zip(ends_W[part], counts_W[part], strict=True)]
                spans_TD[np.concatenate(places)] = read_TD
        return unit_rows(vectors_WD), unit_rows(spans_TD) if with_spans else None


def _are_finite(*arrays: Floats | None) -> bool:
    return all(array is None or np.isfinite(array).all() for array in arrays)


def _joined(parts: Sequence[_Section]) -> _Section:
    return parts[0] if len(parts) == 1 else _Section(*map(np.concatenate, zip(*parts, strict=True)))


def _slices(num_texts: int, parts_of: Callable[[int], list[Window]]) -> Iterator[list[list[Window]]]:
    """Splits the work into slices: lists of sections, each with windows of one text."""
    sections = (
        parts[start : start + _SECTION_WINDOWS]
        for parts in map(parts_of, range(num_texts))
        for start in range(0, len(parts), _SECTION_WINDOWS)
    )
    return grouped(sections, _SLICE_WINDOWS, size=len)
