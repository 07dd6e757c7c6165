"""Word pieces through the network of passages: windows in batches, facets with the spans they attend to, vectors.

A long text is read in overlapping windows, and the facets of all windows are reduced to fewer: those that are like no
other, and spherical k-means of the rest. Centres alone say what much of the text is about; a sentence about something
else would vanish in them, and be what somebody looks for.

Shape suffixes: N texts, B windows of a batch, W windows, K facets, M facets at hand, S set apart, L pieces,
D dimensions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.language.vectors import unit_rows
from facets.model.passage_checkpoint import PassageModelConfig
from facets.model.passage_network import PassageNetwork, RaggedBatch, average_states
from facets.model.word_pieces import Pieces, WordPieces


@dataclass(frozen=True, slots=True)
class Window:
    """A run of pieces of one text.

    Attributes:
        text: Position of the text.
        first: Its first piece.
        last: The piece behind its last.
    """

    text: int
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first


def cut_windows(text: int, num_pieces: int, *, longest: int, overlap: int) -> list[Window]:
    """Windows of about equal length that cover a text; as few as do.

    Args:
        text: Position of the text.
        num_pieces: Its length, at least 1.
        longest: Pieces of a window at most.
        overlap: Pieces that neighbours share at least, below ``longest``.

    Example:
        >>> [(w.first, w.last) for w in cut_windows(0, 10, longest=6, overlap=1)]
        [(0, 6), (4, 10)]
    """
    if num_pieces <= longest:
        return [Window(text, 0, num_pieces)]
    count = -(-(num_pieces - overlap) // (longest - overlap))
    length = min(longest, -(-(num_pieces + (count - 1) * overlap) // count))
    return [Window(text, start, start + length) for start in _starts(num_pieces - length, count)]


def _starts(last_start: int, count: int) -> list[int]:
    return [last_start * i // (count - 1) for i in range(count)]


def length_batches(lengths: Sequence[int] | NDArray[np.integer], *, max_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Places of texts in batches of similar length, the longest first.

    Args:
        lengths: Tokens of each text.
        max_tokens: Of a batch, a longer text alone.
    """
    lengths_B = np.asarray(lengths, dtype=np.int64)
    order_B = np.argsort(-lengths_B, kind="stable")
    ends_B = np.cumsum(lengths_B[order_B])
    start = 0
    while start < len(order_B):
        before = int(ends_B[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends_B, before + max_tokens, side="right")))
        yield order_B[start:end]
        start = end


def attended_runs(weights_BKL: Tensor, *, share: float = 0.8) -> tuple[Tensor, Tensor]:
    """The shortest run of pieces that contains a facet's heaviest piece and this share of all its weight.

    Args:
        weights_BKL: What each facet takes of each piece, not negative; 0 where there is no piece that may be shown.
        share: In (0, 1].

    Returns:
        First and last piece of each run, int64 ``[B, K]`` each, first <= last; of equally short runs the first. A facet
        without any weight has the run (0, 0).

    Example:
        >>> weights = torch.tensor([[[0.1, 0.0, 0.5, 0.4, 0.0]]])
        >>> [place.tolist() for place in attended_runs(weights)]
        [[[2]], [[3]]]
    """
    num_pieces = weights_BKL.shape[2]
    weights_BKL = weights_BKL.double()
    places_L = torch.arange(num_pieces, device=weights_BKL.device)
    peaks_BK1 = weights_BKL.argmax(dim=2, keepdim=True)
    ends_BKL = weights_BKL.cumsum(dim=2)
    wanted_BK1 = share * ends_BKL[:, :, -1:] * (1 - 1e-9)
    # A run from i ends at the first j with sum(0..j) >= sum(0..i-1) + wanted, and not before the peak.
    lasts_BKL = torch.searchsorted(ends_BKL, ends_BKL - weights_BKL + wanted_BK1)
    is_whole_BKL = (places_L <= peaks_BK1) & (lasts_BKL < num_pieces)
    lasts_BKL = torch.maximum(lasts_BKL, peaks_BK1)
    lengths_BKL = torch.where(is_whole_BKL, lasts_BKL - places_L, num_pieces)
    firsts_BK1 = lengths_BKL.argmin(dim=2, keepdim=True)
    lasts_BK1 = lasts_BKL.gather(2, firsts_BK1).clamp_max(num_pieces - 1)
    return firsts_BK1[:, :, 0], lasts_BK1[:, :, 0]


def widen_to_words(firsts_BK: Tensor, lasts_BK: Tensor, continues_BL: Tensor) -> tuple[Tensor, Tensor]:
    """The same runs, with the rest of the words that they begin and end in.

    Args:
        firsts_BK: First pieces, int64.
        lasts_BK: Last pieces, int64.
        continues_BL: Whether a piece continues the word of the one before it.

    Example:
        >>> goatherds = torch.tensor([[False, False, True, True, False]])
        >>> [place.tolist() for place in widen_to_words(torch.tensor([[2]]), torch.tensor([[2]]), goatherds)]
        [[[1]], [[3]]]
    """
    num_pieces = continues_BL.shape[1]
    places_L = torch.arange(num_pieces, device=continues_BL.device)
    starts_BL = torch.where(continues_BL, 0, places_L).cummax(dim=1).values
    is_last_BL = torch.nn.functional.pad(~continues_BL[:, 1:], (0, 1), value=True)
    ends_BL = torch.where(is_last_BL, places_L, num_pieces).flip(1).cummin(dim=1).values.flip(1)
    return starts_BL.gather(1, firsts_BK), ends_BL.gather(1, lasts_BK)


_NUM_STEPS = 8
_APART_OF_WANTED = 4  # a quarter of the wanted facets are single ones at most,
_APART_OF_ALL = 15  # and one of so many at hand


@dataclass(frozen=True, slots=True)
class Reduced:
    """Few facets for many.

    Attributes:
        facets: ``[K, D]`` float32, unit norm.
        closest: The facet that each is closest to, ``[K]`` int64, distinct.
        weights: How much each stands for, ``[K]`` float32; adds up to what it was.
    """

    facets: NDArray[np.float32]
    closest: NDArray[np.int64]
    weights: NDArray[np.float32]


def reduce_facets(facets_MD: NDArray[np.float32], weights_M: NDArray[np.float32], num_facets: int) -> Reduced:
    """Few facets that stand for many.

    Args:
        facets_MD: Unit norm, at least one.
        weights_M: How much each stands for, positive.
        num_facets: K at least 1; all facets come back when there are no more.

    Returns:
        At most K, in the order of what they are closest to.
    """
    if len(facets_MD) <= num_facets:
        return Reduced(facets_MD, np.arange(len(facets_MD)), weights_M)
    apart_S = _unlike_others(facets_MD, min(num_facets // _APART_OF_WANTED, len(facets_MD) // _APART_OF_ALL))
    rest = np.setdiff1d(np.arange(len(facets_MD)), apart_S)
    centres = _centres(facets_MD[rest], weights_M[rest], num_facets - len(apart_S))
    closest_K = np.concatenate([apart_S, rest[centres.closest]])
    order = np.argsort(closest_K)
    facets_KD = np.concatenate([facets_MD[apart_S], centres.facets])
    return Reduced(facets_KD[order], closest_K[order], np.concatenate([weights_M[apart_S], centres.weights])[order])


def _unlike_others(facets_MD: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Farthest-first: the facet that is least like the mean, then always the one that is least like those chosen."""
    chosen: list[int] = []
    likeness_M = facets_MD @ facets_MD.mean(axis=0)
    for _ in range(count):
        chosen.append(int(likeness_M.argmin()))
        to_last_M = facets_MD @ facets_MD[chosen[-1]]
        likeness_M = to_last_M if len(chosen) == 1 else np.maximum(likeness_M, to_last_M)
        likeness_M[chosen] = np.inf
    return np.array(chosen, dtype=np.int64)


def _centres(facets_MD: NDArray[np.float32], weights_M: NDArray[np.float32], num_facets: int) -> Reduced:
    """Spherical k-means; groups that end up empty are left out."""
    starts = np.linspace(0, len(facets_MD) - 1, num_facets).round().astype(np.int64)
    centres_KD = facets_MD[starts]
    for _ in range(_NUM_STEPS):
        groups_M = (facets_MD @ centres_KD.T).argmax(axis=1)
        sums_KD = np.zeros_like(centres_KD)
        np.add.at(sums_KD, groups_M, facets_MD * weights_M[:, None])
        norms_K = np.linalg.norm(sums_KD, axis=1)
        centres_KD = np.where(norms_K[:, None] > 0, unit_rows(sums_KD), centres_KD)
    scores_MK = facets_MD @ centres_KD.T
    groups_M = scores_MK.argmax(axis=1)
    weights_K = np.bincount(groups_M, weights=weights_M, minlength=num_facets).astype(np.float32)
    own_MK: NDArray[np.float32] = np.where(groups_M[:, None] == np.arange(num_facets), scores_MK, -np.inf)
    kept = np.flatnonzero(weights_K > 0)
    closest_K = own_MK.argmax(axis=0)[kept]
    return Reduced(centres_KD[kept], closest_K, weights_K[kept])


# Tokens of one forward pass: enough for full matrix products, little enough for the cache.
_BATCH_TOKENS = 4096
# Windows in hand at once. A longer text is reduced section by section, so that memory does not grow with its facets.
_SECTION_WINDOWS = 256
_SLICE_WINDOWS = 1024
_SECTION_FACETS = 256


@dataclass(frozen=True, slots=True)
class WindowFacets:
    """Facets of windows.

    Attributes:
        facets: ``[W, K, D]`` float32, unit norm or zero rows.
        spans: ``[W, K, 2]`` int32 offsets of characters; (0, 0) for zero rows.
        vectors: ``[W, D]`` float32, unit vectors of the windows.
    """

    facets: NDArray[np.float32]
    spans: NDArray[np.int32]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TextFacets:
    """Facets of texts.

    Attributes:
        facets: ``[N, K, D]`` float32, unit norm or zero rows.
        spans: ``[N, K, 2]`` int32 offsets of characters; (0, 0) for zero rows.
        vectors: ``[N, D]`` float32, unit vectors of the texts.
        kept: Facets and spans of the long texts whose documents keep more than K of them, by place: ``[M, D]``,
            ``[M, 2]``.
    """

    facets: NDArray[np.float32]
    spans: NDArray[np.int32]
    vectors: NDArray[np.float32]
    kept: Mapping[int, tuple[NDArray[np.float32], NDArray[np.int32]]]


@dataclass(frozen=True, slots=True)
class _Section:
    """Facets of a part of a text: ``[M, D]``, their spans ``[M, 2]``, and how many each stands for, ``[M]``."""

    facets: NDArray[np.float32]
    spans: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of_windows(cls, windows: WindowFacets) -> "_Section":
        used = windows.facets.any(axis=2)
        return cls(windows.facets[used], windows.spans[used], np.ones(int(used.sum()), dtype=np.float32))

    @classmethod
    def joined(cls, sections: Sequence["_Section"]) -> "_Section":
        return cls(
            np.concatenate([section.facets for section in sections]),
            np.concatenate([section.spans for section in sections]),
            np.concatenate([section.weights for section in sections]),
        )

    def reduced(self, num_facets: int) -> "_Section":
        few = reduce_facets(self.facets, self.weights, num_facets)
        return _Section(few.facets, self.spans[few.closest], few.weights)


class PassageEncoder:
    """Runs the network of passages over word pieces of any length."""

    def __init__(
        self, network: PassageNetwork, pieces: WordPieces, *, config: PassageModelConfig, device: torch.device
    ) -> None:
        self._network = network
        self._pieces = pieces
        self._config = config
        self._device = device

    @torch.inference_mode()
    def facets(self, texts: Sequence[Pieces]) -> TextFacets:
        """Facets, spans and vectors of whole texts; each has at least one piece."""
        lengths_N = np.array([len(pieces) for pieces in texts], dtype=np.int64)
        num_facets, dim = self._config.network.num_facets, self._config.network.encoder.width
        facets_NKD = np.zeros((len(texts), num_facets, dim), dtype=np.float32)
        spans_NK2 = np.zeros((len(texts), num_facets, 2), dtype=np.int32)
        vectors_ND = np.zeros((len(texts), dim), dtype=np.float32)
        unfinished: dict[int, list[_Section]] = {}
        for sections in self._slices(lengths_N):
            windows = [window for section in sections for window in section]
            found = self._window_facets(windows, texts)
            lengths_W = np.array([len(window) for window in windows])
            np.add.at(vectors_ND, [window.text for window in windows], found.vectors * lengths_W[:, None])
            start = 0
            for section in sections:
                own = slice(start, start + len(section))
                start = own.stop
                text = section[0].text
                if len(section[0]) == lengths_N[text]:
                    facets_NKD[text], spans_NK2[text] = found.facets[own.start], found.spans[own.start]
                    continue
                part = WindowFacets(found.facets[own], found.spans[own], found.vectors[own])
                unfinished.setdefault(text, []).append(_Section.of_windows(part).reduced(_SECTION_FACETS))
        kept = {}
        for text, parts in unfinished.items():
            whole = _Section.joined(parts).reduced(self._config.facets_kept(int(lengths_N[text])))
            few = whole.reduced(num_facets)
            facets_NKD[text, : len(few.facets)], spans_NK2[text, : len(few.spans)] = few.facets, few.spans
            if len(whole.facets) > num_facets:
                kept[text] = (whole.facets, whole.spans)
        return TextFacets(facets_NKD, spans_NK2, unit_rows(vectors_ND), kept)

    @torch.inference_mode()
    def vectors(self, texts: Sequence[NDArray[np.int32]]) -> NDArray[np.float32]:
        """Unit vectors of texts given as ids, ``[N, D]``; the mean over windows where a text has several."""
        vectors_ND = np.zeros((len(texts), self._config.network.encoder.width), dtype=np.float32)
        for sections in self._slices(np.array([len(ids) for ids in texts], dtype=np.int64)):
            windows = [window for section in sections for window in section]
            lengths_W = np.array([len(window) for window in windows])
            owners_W = np.array([window.text for window in windows])
            for places in length_batches(lengths_W + 2, max_tokens=_BATCH_TOKENS):
                batch = self._batch([texts[windows[i].text][windows[i].first : windows[i].last] for i in places])
                found = average_states(self._network.encoder(batch), batch).cpu().numpy()
                np.add.at(vectors_ND, owners_W[places], found * lengths_W[places, None])
        return unit_rows(vectors_ND)

    @torch.inference_mode()
    def part_vectors(self, texts: Sequence[Pieces], bounds: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        """Unit vectors of the parts of texts, ``[P, D]``, each of its states when read alone and when read in its text.

        Args:
            texts: At least one piece each.
            bounds: The first piece of each part of a text, and its number of pieces at the end.
        """
        rows = [pieces.ids[a:b] for pieces, cut in zip(texts, bounds, strict=True) for a, b in pairwise(cut.tolist())]
        alone_PD = self.vectors(rows)
        counts_N = np.array([len(cut) - 1 for cut in bounds], dtype=np.int64)
        firsts_N = np.cumsum(counts_N) - counts_N
        several = np.flatnonzero(counts_N > 1)
        sums_PD = torch.zeros(len(rows) + 1, alone_PD.shape[1], device=self._device)
        for text in several.tolist():
            windows = self._windows(text, len(texts[text]))
            batch = self._batch([texts[text].ids[window.first : window.last] for window in windows])
            owners = [
                np.searchsorted(bounds[text], np.arange(window.first, window.last), side="right") - 1 + firsts_N[text]
                for window in windows
            ]
            nobody = np.array([len(rows)])  # the special pieces are of no part
            owners_T = np.concatenate([np.concatenate([nobody, own, nobody]) for own in owners])
            states_TD = self._network.encoder(batch).float()
            sums_PD.index_add_(0, torch.from_numpy(owners_T).to(self._device), states_TD)
        return unit_rows(alone_PD + unit_rows(sums_PD[:-1].cpu().numpy()))

    def _windows(self, text: int, num_pieces: int) -> list[Window]:
        config = self._config
        return cut_windows(text, num_pieces, longest=config.window_tokens - 2, overlap=config.window_overlap)

    def _slices(self, lengths_N: NDArray[np.int64]) -> Iterator[list[list[Window]]]:
        """Sections of texts, a limited number of windows at once; where a section ends depends on its text alone."""
        sections: list[list[Window]] = []
        size = 0
        for text, length in enumerate(lengths_N.tolist()):
            windows = self._windows(text, length)
            for start in range(0, len(windows), _SECTION_WINDOWS):
                sections.append(windows[start : start + _SECTION_WINDOWS])
                size += len(sections[-1])
                if size >= _SLICE_WINDOWS:
                    yield sections
                    sections, size = [], 0
        if sections:
            yield sections

    def _batch(self, rows: Sequence[NDArray[np.int32]]) -> RaggedBatch:
        first, last = np.int32(self._pieces.first_id), np.int32(self._pieces.last_id)
        return RaggedBatch.of([np.concatenate([[first], row, [last]]) for row in rows], self._device)

    def _window_facets(self, windows: Sequence[Window], texts: Sequence[Pieces]) -> WindowFacets:
        num_facets, dim = self._config.network.num_facets, self._config.network.encoder.width
        facets_WKD = np.empty((len(windows), num_facets, dim), dtype=np.float32)
        spans_WK2 = np.empty((len(windows), num_facets, 2), dtype=np.int32)
        vectors_WD = np.empty((len(windows), dim), dtype=np.float32)
        for places in length_batches([len(window) + 2 for window in windows], max_tokens=_BATCH_TOKENS):
            cut = [texts[windows[i].text].cut(windows[i].first, windows[i].last) for i in places]
            batch = self._batch([pieces.ids for pieces in cut])
            facets_BKD, weights_BKL, vectors_BD = self._network(batch)
            facets_WKD[places] = facets_BKD.float().cpu().numpy()
            vectors_WD[places] = vectors_BD.float().cpu().numpy()
            spans_WK2[places] = self._spans(cut, weights_BKL, facets_BKD.any(dim=2), batch)
        return WindowFacets(facets_WKD, spans_WK2, vectors_WD)

    def _of_pieces(self, flags_V: NDArray[np.bool_], batch: RaggedBatch) -> Tensor:
        """What is true of each piece of a batch, ``[B, L]``."""
        flags_T = torch.from_numpy(flags_V).to(self._device)[batch.ids]
        return batch.pad(flags_T[:, None])[:, :, 0]

    def _spans(
        self, cut: Sequence[Pieces], weights_BKL: Tensor, used_BK: Tensor, batch: RaggedBatch
    ) -> NDArray[np.int32]:
        """Characters that facets attend to, ``[B, K, 2]``."""
        places_L = torch.arange(batch.max_length, device=self._device)
        is_special_BL = (places_L == 0) | (places_L >= batch.lengths[:, None] - 1)
        # Nobody wants to read a span that begins with the stop of the sentence before.
        unshown_BL = is_special_BL | self._of_pieces(self._pieces.is_mark, batch)
        firsts_BK, lasts_BK = attended_runs(weights_BKL.masked_fill(unshown_BL[:, None], 0.0))
        # Without weight on any other piece the run is the first special one.
        firsts_BK, lasts_BK = firsts_BK.clamp_min(1), lasts_BK.clamp_min(1)
        continues_BL = self._of_pieces(self._pieces.continues_word, batch)
        firsts_BK, lasts_BK = widen_to_words(firsts_BK, lasts_BK, continues_BL)
        firsts_BK = firsts_BK.clamp_min(1)  # a window may begin inside a word
        lengths_B = np.array([len(pieces) for pieces in cut])
        before_B1 = (np.cumsum(lengths_B) - lengths_B)[:, None] - 1  # the first special piece is not in the arrays
        starts_BK = np.concatenate([pieces.starts for pieces in cut])[firsts_BK.cpu().numpy() + before_B1]
        ends_BK = np.concatenate([pieces.ends for pieces in cut])[lasts_BK.cpu().numpy() + before_B1]
        spans_BK2 = np.stack([starts_BK, np.maximum(ends_BK, starts_BK + 1)], axis=2)
        return spans_BK2 * used_BK.cpu().numpy()[:, :, None]
