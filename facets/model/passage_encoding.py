"""Word pieces through the network of passages: sentences in batches, facets with the spans they attend to, vectors.

A facet stands for something that one sentence says, so sentences are read one by one: read together, states of short
ones about different things are hardly told apart. What they have in common, the mean of their states, is in each facet.
A long text is cut between sentences into runs, and the facets of all runs are reduced to fewer. One vector of a text is
that of the sentence encoder, which reads it as a whole, window by window.

Shape suffixes: N texts, R runs, B runs of a batch, K facets, M facets at hand, S sentences, L pieces, T tokens of all
runs, D dimensions.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.language.interruption import check_interrupted
from facets.language.vectors import unit_rows
from facets.model.facet_reduction import merge_alike, reduce_facets
from facets.model.passage_checkpoint import PassageModelConfig
from facets.model.passage_cutting import (
    NUM_SPECIAL,
    SentenceRun,
    Window,
    cut_runs,
    cut_windows,
    length_batches,
    sentence_bounds,
)
from facets.model.passage_network import PassageNetwork, RaggedBatch, Slots, average_states, sentence_slots
from facets.model.word_pieces import Pieces, WordPieces

logger = logging.getLogger(__name__)


def attended_runs(weights_BKL: Tensor, *, share: float = 0.8) -> tuple[Tensor, Tensor]:
    """The shortest run of pieces that contains a facet's heaviest piece and this share of all its weight.

    ``weights_BKL``: what each facet takes of each piece, not negative; 0 where there is no piece that may be shown.
    ``share``: in (0, 1]. Returns first and last piece of each run, int64 ``[B, K]`` each, first <= last; of equally
    short runs the first. A facet without any weight has the run (0, 0).

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

    ``firsts_BK``: first pieces, int64. ``lasts_BK``: last pieces, int64. ``continues_BL``: whether a piece continues
    the word of the one before it.

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


# Tokens of one forward pass: enough for full matrix products, little enough for the cache.
_BATCH_TOKENS = 2048
# Of runs whose sentences are read together: enough to find sentences of like length.
_CHUNK_TOKENS = 16_384
# Runs in hand at once. A longer text is reduced section by section, so that memory does not grow with its facets.
_SECTION_RUNS = 256
_SLICE_RUNS = 1024
_SECTION_FACETS = 256

PartT = TypeVar("PartT", Window, SentenceRun)


@dataclass(frozen=True, slots=True)
class RunFacets:
    """Facets of runs."""

    facets: NDArray[np.float32]  # `[R, K, D]` float32, unit norm or zero rows
    spans: NDArray[np.int32]  # `[R, K, 2]` int32 offsets of characters; (0, 0) for zero rows


@dataclass(frozen=True, slots=True)
class TextFacets:
    """Facets of texts."""

    facets: NDArray[np.float32]  # `[N, K, D]` float32, unit norm or zero rows
    spans: NDArray[np.int32]  # `[N, K, 2]` int32 offsets of characters; (0, 0) for zero rows
    # Facets and spans of the long texts whose documents keep more than K of them, by place: `[M, D]`, `[M, 2]`.
    kept: Mapping[int, tuple[NDArray[np.float32], NDArray[np.int32]]]


@dataclass(frozen=True, slots=True)
class _Section:
    """Facets of a part of a text: ``[M, D]``, their spans ``[M, 2]``, and how many each stands for, ``[M]``."""

    facets: NDArray[np.float32]
    spans: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of_runs(cls, runs: RunFacets) -> "_Section":
        used = runs.facets.any(axis=2)
        return cls(runs.facets[used], runs.spans[used], np.ones(int(used.sum()), dtype=np.float32))

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

    def merged(self) -> "_Section":
        """Without two that say the same."""
        found = merged_facets(self.facets[None], self.weights[None])
        kept = found.closest[0][found.facets[0].any(axis=1)]
        weights = (found.members[0] * self.weights).sum(axis=1)[: len(kept)]
        return _Section(found.facets[0, : len(kept)], self.spans[kept], weights)


class Merged(NamedTuple):
    """What ``merged_facets`` gives, in the order of ``closest``."""

    facets: NDArray[np.float32]  # `[B, K, D]` float32, unit norm; zero rows at the end
    members: NDArray[np.bool_]  # those that each was made of, `[B, K, K]`
    closest: NDArray[np.int64]  # the one that each is closest to, `[B, K]`


def merged_facets(facets_BKD: NDArray[np.float32], weights_BK: NDArray[np.float32]) -> Merged:
    """Facets of which no two say the same; see :func:`facets.model.facet_reduction.merge_alike`."""
    members_BKK = merge_alike(facets_BKD, weights_BK)
    if members_BKK.any(axis=2).sum() == (weights_BK > 0).sum():
        own_BK = np.broadcast_to(np.arange(facets_BKD.shape[1]), weights_BK.shape)
        return Merged(facets_BKD, members_BKK, own_BK)
    sums_BKD = (members_BKK * weights_BK[:, None]) @ facets_BKD
    merged_BKD = unit_rows(sums_BKD.reshape(-1, facets_BKD.shape[2])).reshape(facets_BKD.shape)
    cosines_BKK = np.where(members_BKK, merged_BKD @ facets_BKD.transpose(0, 2, 1), -np.inf)
    is_group_BK = members_BKK.any(axis=2)
    closest_BK = np.where(is_group_BK, cosines_BKK.argmax(axis=2), facets_BKD.shape[1])
    order_BK = np.argsort(closest_BK, axis=1, kind="stable")

    def sort(values: NDArray[np.generic]) -> NDArray[Any]:
        return np.take_along_axis(values, order_BK[:, :, None] if values.ndim == 3 else order_BK, axis=1)

    closest_BK = np.where(is_group_BK, closest_BK, 0)
    return Merged(sort(merged_BKD), sort(members_BKK), sort(closest_BK))


@dataclass(frozen=True, slots=True)
class _RunBatch:
    """Runs that are read together."""

    batch: RaggedBatch  # their tokens; every sentence has special pieces of its own
    # Of each token, where it stands among the pieces of all runs; -1 for a special one, `[T]`.
    pieces: NDArray[np.int64]
    characters: NDArray[np.int32]  # where each of these pieces starts and ends in its text, `[., 2]`
    slots: Slots  # where facets begin to look
    sentences: NDArray[np.int64]  # the sentence of each slot, `[B, K]`


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
    def facets(self, texts: Sequence[Pieces], starts: Sequence[NDArray[np.integer]]) -> TextFacets:
        """Facets and spans of whole texts.

        ``texts``: at least one piece each. ``starts``: first piece of each sentence of a text.
        """
        num_facets, dim = self._config.network.num_facets, self._config.network.encoder.width
        facets_NKD = np.zeros((len(texts), num_facets, dim), dtype=np.float32)
        spans_NK2 = np.zeros((len(texts), num_facets, 2), dtype=np.int32)
        unfinished: dict[int, list[_Section]] = {}

        def runs_of(text: int) -> list[SentenceRun]:
            longest = self._config.window_tokens - NUM_SPECIAL
            says_L = ~self._pieces.is_mark[texts[text].ids]
            bounds_S1 = sentence_bounds(starts[text], says_L, longest=longest)
            return cut_runs(text, bounds_S1, longest=self._config.window_tokens, most=num_facets)

        for sections in _slices(len(texts), runs_of):
            found = self._run_facets([run for section in sections for run in section], texts)
            start = 0
            for section in sections:
                own = slice(start, start + len(section))
                start = own.stop
                text = section[0].text
                if int(section[0].bounds[-1] - section[0].bounds[0]) == len(texts[text]):
                    facets_NKD[text], spans_NK2[text] = found.facets[own.start], found.spans[own.start]
                    continue
                part = _Section.of_runs(RunFacets(found.facets[own], found.spans[own]))
                unfinished.setdefault(text, []).append(part.reduced(_SECTION_FACETS))
        kept = {}
        for text, parts in unfinished.items():
            whole = _Section.joined(parts).reduced(self._config.facets_kept(len(texts[text]))).merged()
            few = whole.reduced(num_facets).merged()
            facets_NKD[text, : len(few.facets)], spans_NK2[text, : len(few.spans)] = few.facets, few.spans
            if len(whole.facets) > num_facets:
                kept[text] = (whole.facets, whole.spans)
        return TextFacets(facets_NKD, spans_NK2, kept)

    @torch.inference_mode()
    def vectors(self, texts: Sequence[NDArray[np.int32]]) -> NDArray[np.float32]:
        """Unit vectors of texts given as ids, ``[N, D]``; the mean over windows where a text has several."""
        vectors_ND = np.zeros((len(texts), self._config.network.encoder.width), dtype=np.float32)
        for sections in _slices(len(texts), lambda text: self._windows(text, len(texts[text]))):
            windows = [window for section in sections for window in section]
            lengths_W = np.array([len(window) for window in windows])
            owners_W = np.array([window.text for window in windows])
            for places in length_batches(lengths_W + NUM_SPECIAL, max_tokens=_BATCH_TOKENS):
                check_interrupted()
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
        longest = self._config.window_tokens - NUM_SPECIAL
        return cut_windows(text, num_pieces, longest=longest, overlap=self._config.window_overlap)

    def _batch(self, rows: Sequence[NDArray[np.int32]]) -> RaggedBatch:
        first, last = np.int32(self._pieces.first_id), np.int32(self._pieces.last_id)
        return RaggedBatch.of([np.concatenate([[first], row, [last]]) for row in rows], self._device)

    def _run_facets(self, runs: Sequence[SentenceRun], texts: Sequence[Pieces]) -> RunFacets:
        num_facets, dim = self._config.network.num_facets, self._config.network.encoder.width
        facets_RKD = np.empty((len(runs), num_facets, dim), dtype=np.float32)
        spans_RK2 = np.empty((len(runs), num_facets, 2), dtype=np.int32)
        lengths_R = np.array([len(run) for run in runs], dtype=np.int64)
        for chunk in length_batches(lengths_R, max_tokens=_CHUNK_TOKENS):
            own = [runs[i] for i in chunk]
            found = self._chunk_facets(own, texts)
            if not np.isfinite(found.facets).all():
                # Seen once in many runs, and never again for the same texts: kernels, not weights or texts.
                logger.warning("facets of %d runs were not finite: they are read again", len(own))
                found = self._chunk_facets(own, texts)
            facets_RKD[chunk], spans_RK2[chunk] = found.facets, found.spans
        return RunFacets(facets_RKD, spans_RK2)

    def _chunk_facets(self, runs: Sequence[SentenceRun], texts: Sequence[Pieces]) -> RunFacets:
        """Facets of as many runs as are read at a time."""
        num_facets, dim = self._config.network.num_facets, self._config.network.encoder.width
        facets_RKD = np.empty((len(runs), num_facets, dim), dtype=np.float32)
        spans_RK2 = np.empty((len(runs), num_facets, 2), dtype=np.int32)
        lengths_R = np.array([len(run) for run in runs], dtype=np.int64)
        states_TD, ends_R = self._states(runs, texts), lengths_R.cumsum()
        for part in length_batches(lengths_R, max_tokens=_BATCH_TOKENS):  # the order of the runs
            own_TD = states_TD[ends_R[part[0]] - lengths_R[part[0]] : ends_R[part[-1]]]
            read = self._run_batch([runs[i] for i in part], texts)
            vectors_BD = average_states(own_TD, read.batch)
            facets_BKD, weights_BKL = self._network.pooling(own_TD, vectors_BD, read.batch, slots=read.slots)
            facets_RKD[part], spans_RK2[part] = self._told_apart(facets_BKD, weights_BKL, read)
        return RunFacets(facets_RKD, spans_RK2)

    def _states(self, runs: Sequence[SentenceRun], texts: Sequence[Pieces]) -> Tensor:
        """States of the sentences of runs, each read by itself, one after another, ``[T, D]``."""
        rows = [texts[run.text].ids[a:b] for run in runs for a, b in pairwise(run.bounds.tolist())]
        lengths_S = np.array([len(row) + NUM_SPECIAL for row in rows], dtype=np.int64)
        firsts_S = torch.from_numpy(lengths_S.cumsum() - lengths_S).to(self._device)
        states_TD: Tensor | None = None
        for places in length_batches(lengths_S, max_tokens=_BATCH_TOKENS):
            check_interrupted()
            batch = self._batch([rows[i] for i in places])
            found_TD = self._network.encoder(batch)
            if len(places) == len(rows) and (np.diff(places) == 1).all():
                return found_TD
            if states_TD is None:
                states_TD = found_TD.new_empty(int(lengths_S.sum()), found_TD.shape[1])
            own_T = firsts_S[torch.from_numpy(places).to(self._device)][batch.text_numbers] + batch.positions
            states_TD.index_copy_(0, own_T, found_TD)
        assert states_TD is not None
        return states_TD

    def _run_batch(self, runs: Sequence[SentenceRun], texts: Sequence[Pieces]) -> _RunBatch:
        cut = [texts[run.text].cut(int(run.bounds[0]), int(run.bounds[-1])) for run in runs]
        lengths_S = np.concatenate([run.sentences for run in runs])
        ends_S = lengths_S.cumsum()
        is_piece_T = np.ones(int(ends_S[-1]), dtype=np.bool_)
        is_piece_T[ends_S - lengths_S] = is_piece_T[ends_S - 1] = False
        ids_T = np.full(len(is_piece_T), self._pieces.last_id, dtype=np.int32)
        ids_T[ends_S - lengths_S] = self._pieces.first_id
        ids_T[is_piece_T] = np.concatenate([pieces.ids for pieces in cut])
        batch = RaggedBatch.of(np.split(ids_T, np.cumsum([len(run) for run in runs])[:-1]), self._device)
        sentences_BS = np.zeros((len(runs), max(len(run.bounds) for run in runs) - 1), dtype=np.int64)
        for row, run in zip(sentences_BS, runs, strict=True):
            row[: len(run.bounds) - 1] = run.sentences
        slots, sentences_BK = sentence_slots(sentences_BS, self._config.network, device=self._device)
        characters = np.stack([np.concatenate([getattr(p, end) for p in cut]) for end in ("starts", "ends")], axis=1)
        places_T = np.where(is_piece_T, is_piece_T.cumsum() - 1, -1)
        return _RunBatch(batch, places_T, characters, slots, sentences_BK)

    def _told_apart(
        self, facets_BKD: Tensor, weights_BKL: Tensor, read: _RunBatch
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Facets of which no two are alike, and their spans; one that was made of several has that of its sentence."""
        facets = facets_BKD.float().cpu().numpy()
        begin_BK = (read.slots.firsts + 1) * read.slots.used
        used_BK, short = facets.any(axis=2), facets.shape[1] - begin_BK.shape[1]
        begin_BK = torch.nn.functional.pad(begin_BK, (0, short), value=1)
        merged = merged_facets(facets, np.asarray(used_BK, dtype=np.float32))
        if merged.members.sum() > merged.members.any(axis=2).sum():
            sentence_BK = np.pad(read.sentences, ((0, 0), (0, short)), constant_values=-1)
            own_BK = np.take_along_axis(sentence_BK, merged.closest, axis=1)
            beside_BKK = merged.members & (sentence_BK[:, None] == own_BK[:, :, None])
            weights_BKL = torch.from_numpy(beside_BKK).to(weights_BKL) @ weights_BKL
            begin_BK = begin_BK.gather(1, torch.from_numpy(merged.closest).to(self._device))
        spans_BK2 = self._spans(read, weights_BKL, begin_BK)
        return merged.facets, spans_BK2 * merged.facets.any(axis=2, keepdims=True)

    def _of_pieces(self, flags_V: NDArray[np.bool_], batch: RaggedBatch) -> Tensor:
        """What is true of each piece of a batch, ``[B, L]``."""
        flags_T = torch.from_numpy(flags_V).to(self._device)[batch.ids]
        return batch.pad(flags_T[:, None])[:, :, 0]

    def _spans(self, read: _RunBatch, weights_BKL: Tensor, begin_BK: Tensor) -> NDArray[np.int32]:
        """Characters that facets attend to, ``[B, K, 2]``; the piece at ``begin_BK`` where it is none in particular."""
        batch = read.batch
        places_BL = batch.pad(torch.from_numpy(read.pieces).to(self._device)[:, None] + 1)[:, :, 0] - 1
        # Nobody wants to read a span that begins with the stop of the sentence before.
        unshown_BL = (places_BL < 0) | self._of_pieces(self._pieces.is_mark, batch)
        shown_BKL = weights_BKL.masked_fill(unshown_BL[:, None], 0.0)
        firsts_BK, lasts_BK = attended_runs(shown_BKL)
        is_somewhere_BK = shown_BKL.any(dim=2)
        firsts_BK = torch.where(is_somewhere_BK, firsts_BK, begin_BK)
        lasts_BK = torch.where(is_somewhere_BK, lasts_BK, begin_BK)
        continues_BL = self._of_pieces(self._pieces.continues_word, batch)
        firsts_BK, lasts_BK = widen_to_words(firsts_BK, lasts_BK, continues_BL)
        # A sentence that was cut may begin inside a word: then the piece before it is the special one.
        first_BK, last_BK = (
            places_BL.gather(1, places).cpu().numpy()
            for places in (firsts_BK + (places_BL.gather(1, firsts_BK) < 0), lasts_BK)
        )
        starts_BK, ends_BK = read.characters[first_BK, 0], read.characters[last_BK, 1]
        return np.stack([starts_BK, np.maximum(ends_BK, starts_BK + 1)], axis=2)


def _slices(num_texts: int, parts_of: Callable[[int], list[PartT]]) -> Iterator[list[list[PartT]]]:
    """Sections of the texts, each of windows or runs of one text, some at a time."""
    sections: list[list[PartT]] = []
    size = 0
    for text in range(num_texts):
        parts = parts_of(text)
        for start in range(0, len(parts), _SECTION_RUNS):
            sections.append(parts[start : start + _SECTION_RUNS])
            size += len(sections[-1])
            if size >= _SLICE_RUNS:
                yield sections
                sections, size = [], 0
    if sections:
        yield sections
