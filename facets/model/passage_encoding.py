"""Encodes passages of any length: facets with the spans that they attend to, and one vector per text.

Each sentence is encoded separately, because states of short sentences that are read together are hard to tell apart. A
long text is cut between sentences into runs, whose facets are reduced to fewer.

Shape suffixes: N texts, R runs, B runs of a batch, K facets, M facets of a part of a text, S sentences, L pieces,
T tokens of all runs, D dimensions.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.arrays import Bools, Floats, Ints, Ints32
from facets.language.interruption import check_interrupted
from facets.language.vectors import unit_rows
from facets.model.facet_reduction import merged_facets, reduce_facets
from facets.model.passage_checkpoint import PassageModelConfig
from facets.model.passage_network import PassageNetwork, RaggedBatch, Slots, average_states, sentence_slots
from facets.model.word_pieces import Pieces, WordPieces

logger = logging.getLogger(__name__)

NUM_SPECIAL = 2  # special pieces around everything that is read
_SHORTEST_SENTENCE = 2  # pieces, not counting punctuation; a shorter sentence ("Yes.", "3.") is read with the next one
_LONGEST_SENTENCE = 128  # pieces; a longer one (a table, a list without full stops) is read in parts
_BATCH_TOKENS = 2048  # per forward pass: enough for efficient matrix products, few enough for the CPU cache
_CHUNK_TOKENS = 16_384  # tokens of the runs whose sentences are sorted by length together
# Runs encoded at once. A longer text is reduced section by section, which bounds the memory for its facets.
_SECTION_RUNS = 256
_SLICE_RUNS = 1024
_SECTION_FACETS = 256


def sentence_bounds(starts_S: NDArray[np.integer], says_L: Bools, *, longest: int) -> Ints:
    """Bounds of the sentences as they are read: very short ones joined with the next, very long ones split evenly.

    ``starts_S``: first piece of each sentence, ascending. ``says_L``: whether each piece is more than a punctuation
    mark. ``longest``: most pieces read at once. Returns the first piece of each sentence, then the number of pieces.
    """
    longest = min(longest, _LONGEST_SENTENCE)
    said_L1 = np.concatenate([np.zeros(1, dtype=np.int64), says_L.cumsum()])
    bounds, last = [0], len(says_L)
    for start, said in zip(starts_S.tolist(), said_L1[starts_S].tolist(), strict=True):
        enough = min(said - said_L1[bounds[-1]], said_L1[last] - said)
        if enough >= _SHORTEST_SENTENCE:
            bounds.append(start)
    bounds_S1 = np.array([*bounds, last], dtype=np.int64)
    if (np.diff(bounds_S1) <= longest).all():
        return bounds_S1
    cuts = [np.linspace(a, b, -(-(b - a) // longest) + 1).astype(np.int64)[1:] for a, b in pairwise(bounds_S1.tolist())]
    return np.concatenate([np.zeros(1, dtype=np.int64), *cuts])


@dataclass(frozen=True, slots=True)
class SentenceRun:
    """Whole sentences of one text whose facets are made together, or a window that is read like one sentence."""

    text: int  # index of the text
    bounds: Ints  # first piece of each sentence, then one past the last piece

    @property
    def pieces(self) -> slice:
        """The pieces of the text that belong to the run."""
        return slice(int(self.bounds[0]), int(self.bounds[-1]))

    @property
    def sentences(self) -> Ints:
        """Number of tokens of each sentence, special pieces included."""
        return np.diff(self.bounds) + NUM_SPECIAL

    def __len__(self) -> int:
        return int(self.bounds[-1] - self.bounds[0]) + NUM_SPECIAL * (len(self.bounds) - 1)


def cut_runs(text: int, bounds_S1: Ints, *, longest: int, most: int) -> list[SentenceRun]:
    """Cuts a text into runs of about equal length: at most ``longest`` tokens and ``most`` sentences each.

    ``bounds_S1``: bounds of its sentences, none longer than ``longest`` tokens.
    """
    ends_S = np.cumsum(np.diff(bounds_S1) + NUM_SPECIAL)
    count = max(-(-int(ends_S[-1]) // longest), -(-len(ends_S) // most))
    if count == 1:
        return [SentenceRun(text, bounds_S1)]
    runs: list[SentenceRun] = []
    first = done = 0
    while first < len(ends_S):
        share = (ends_S[-1] - done) / max(1, count - len(runs))
        wanted = int(np.searchsorted(ends_S, done + share)) + 1
        fitting = int(np.searchsorted(ends_S, done + longest, side="right"))
        last = min(wanted, fitting, first + most, len(ends_S))
        runs.append(SentenceRun(text, bounds_S1[first : last + 1]))
        first, done = last, int(ends_S[last - 1])
    return runs


def cut_windows(text: int, num_pieces: int, *, longest: int, overlap: int) -> list[SentenceRun]:
    """The fewest windows of at most ``longest`` pieces that cover a text, of about equal length.

    ``overlap``: fewest pieces that neighbours share, below ``longest``.

    Example:
        >>> [window.bounds.tolist() for window in cut_windows(0, 10, longest=6, overlap=1)]
        [[0, 6], [4, 10]]
    """
    count = max(1, -(-(num_pieces - overlap) // (longest - overlap)))
    length = min(longest, -(-(num_pieces + (count - 1) * overlap) // count))
    starts = [(num_pieces - length) * i // max(1, count - 1) for i in range(count)]
    return [SentenceRun(text, np.array([start, start + length])) for start in starts]


def length_batches(lengths: Sequence[int] | NDArray[np.integer], *, max_tokens: int) -> Iterator[Ints]:
    """Batches of texts of similar length, longest first, as indexes of the texts."""
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
    """The shortest run of pieces that includes a facet's heaviest piece and holds the given share of its weight.

    ``weights_BKL``: weight of each piece in each facet, >= 0; 0 for pieces that must not be shown. Returns first and
    last piece of each run, int64 ``[B, K]`` each; among equally short runs the first one. A facet without weight has
    the run (0, 0).
    """
    num_pieces = weights_BKL.shape[2]
    weights_BKL = weights_BKL.double()
    places_L = torch.arange(num_pieces, device=weights_BKL.device)
    peaks_BK1 = weights_BKL.argmax(dim=2, keepdim=True)
    ends_BKL = weights_BKL.cumsum(dim=2)
    wanted_BK1 = share * ends_BKL[:, :, -1:] * (1 - 1e-9)
    # A run from i ends at the first j, not before the peak, with sum(0..j) >= sum(0..i-1) + wanted.
    lasts_BKL = torch.searchsorted(ends_BKL, ends_BKL - weights_BKL + wanted_BK1)
    is_whole_BKL = (places_L <= peaks_BK1) & (lasts_BKL < num_pieces)
    lasts_BKL = torch.maximum(lasts_BKL, peaks_BK1)
    lengths_BKL = torch.where(is_whole_BKL, lasts_BKL - places_L, num_pieces)
    firsts_BK1 = lengths_BKL.argmin(dim=2, keepdim=True)
    lasts_BK1 = lasts_BKL.gather(2, firsts_BK1).clamp_max(num_pieces - 1)
    return firsts_BK1[:, :, 0], lasts_BK1[:, :, 0]


def widen_to_words(firsts_BK: Tensor, lasts_BK: Tensor, continues_BL: Tensor) -> tuple[Tensor, Tensor]:
    """Widens runs of pieces to whole words; ``continues_BL``: whether a piece continues the word before it."""
    num_pieces = continues_BL.shape[1]
    places_L = torch.arange(num_pieces, device=continues_BL.device)
    starts_BL = torch.where(continues_BL, 0, places_L).cummax(dim=1).values
    is_last_BL = torch.nn.functional.pad(~continues_BL[:, 1:], (0, 1), value=True)
    ends_BL = torch.where(is_last_BL, places_L, num_pieces).flip(1).cummin(dim=1).values.flip(1)
    return starts_BL.gather(1, firsts_BK), ends_BL.gather(1, lasts_BK)


@dataclass(frozen=True, slots=True)
class PassageFacets:
    """Facets of passages and where they attend."""

    facets: Floats  # `[N, K, D]`, unit norm; zero rows where a text has fewer facets
    spans: Ints32  # `[N, K, 2]`, characters `[start, end)` that each facet attends to; (0, 0) for zero rows only
    num_tokens: Ints  # `[N]`, word pieces of each text; all of them are read
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
        few = reduce_facets(self.facets, self.weights, num_facets)
        return _Section(few.facets, self.spans[few.closest], few.weights)

    def merged(self) -> "_Section":
        """Merges near-duplicate facets."""
        found = merged_facets(self.facets[None], self.weights[None])
        kept = found.closest[0][found.facets[0].any(axis=1)]
        weights = (found.members[0] * self.weights).sum(axis=1)[: len(kept)]
        return _Section(found.facets[0, : len(kept)], self.spans[kept], weights)


@dataclass(frozen=True, slots=True)
class _RunBatch:
    """Runs whose facets are pooled together."""

    batch: RaggedBatch  # their tokens, with special pieces around every sentence
    pieces: Ints  # index of each token among the pieces of all runs, `[T]`; -1 for special pieces
    characters: Ints32  # start and end offset of each piece in its text, `[pieces, 2]`
    slots: Slots  # where facets start looking
    sentences: Ints  # the sentence of each slot, `[B, K]`


@dataclass(frozen=True, slots=True)
class PassageEncoder:
    """Runs the passage network over word pieces of any length."""

    _network: PassageNetwork
    _pieces: WordPieces
    _config: PassageModelConfig
    _device: torch.device

    @torch.inference_mode()
    def facets(self, texts: Sequence[Pieces], starts: Sequence[NDArray[np.integer]]) -> PassageFacets:
        """Facets and spans of texts of at least one piece each; ``starts``: first piece of each sentence of a text."""
        num_facets = self._config.network.num_facets
        facets_NKD, spans_NK2 = self._nothing(len(texts))
        unfinished: dict[int, list[_Section]] = {}

        def runs_of(text: int) -> list[SentenceRun]:
            longest = self._config.window_tokens - NUM_SPECIAL
            says_L = ~self._pieces.is_mark[texts[text].ids]
            bounds_S1 = sentence_bounds(starts[text], says_L, longest=longest)
            return cut_runs(text, bounds_S1, longest=self._config.window_tokens, most=num_facets)

        for sections in _slices(len(texts), runs_of):
            facets_RKD, spans_RK2 = self._run_facets([run for section in sections for run in section], texts)
            start = 0
            for section in sections:
                rows = slice(start, start + len(section))
                start = rows.stop
                text = section[0].text
                if section[0].pieces == slice(0, len(texts[text])):
                    facets_NKD[text], spans_NK2[text] = facets_RKD[rows.start], spans_RK2[rows.start]
                    continue
                used_RK = facets_RKD[rows].any(axis=2)
                weights = np.ones(np.count_nonzero(used_RK), dtype=np.float32)
                part = _Section(facets_RKD[rows][used_RK], spans_RK2[rows][used_RK], weights)
                unfinished.setdefault(text, []).append(part.reduced(_SECTION_FACETS))
        kept = {}
        for text, parts in unfinished.items():
            joined = _Section(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
            whole = joined.reduced(self._config.facets_kept(len(texts[text]))).merged()
            few = whole.reduced(num_facets).merged()
            facets_NKD[text, : len(few.facets)], spans_NK2[text, : len(few.spans)] = few.facets, few.spans
            if len(whole.facets) > num_facets:
                kept[text] = (whole.facets, whole.spans)
        num_tokens_N = np.array([len(pieces) for pieces in texts], dtype=np.int64)
        return PassageFacets(facets_NKD, spans_NK2, num_tokens_N, kept)

    @torch.inference_mode()
    def vectors(self, texts: Sequence[Ints32]) -> Floats:
        """Unit vectors ``[N, D]`` of texts given as piece ids; the mean over windows for long texts."""
        vectors_ND = np.zeros((len(texts), self._config.network.encoder.width), dtype=np.float32)
        for sections in _slices(len(texts), lambda text: self._windows(text, len(texts[text]))):
            windows = [window for section in sections for window in section]
            lengths_W = np.array([len(window) for window in windows])
            owners_W = np.array([window.text for window in windows])
            for part in length_batches(lengths_W, max_tokens=_BATCH_TOKENS):
                check_interrupted()
                batch = self._batch([texts[windows[i].text][windows[i].pieces] for i in part])
                window_vectors = average_states(self._network.encoder(batch), batch).cpu().numpy()
                np.add.at(vectors_ND, owners_W[part], window_vectors * (lengths_W[part, None] - NUM_SPECIAL))
        return unit_rows(vectors_ND)

    @torch.inference_mode()
    def part_vectors(self, texts: Sequence[Pieces], bounds: Sequence[Ints]) -> Floats:
        """Unit vectors ``[P, D]`` of parts of texts: the mean of the part encoded separately and within its text.

        ``bounds``: for each text, the first piece of each part, then the number of pieces (at least 1).
        """
        rows = [pieces.ids[a:b] for pieces, cut in zip(texts, bounds, strict=True) for a, b in pairwise(cut.tolist())]
        alone_PD = self.vectors(rows)
        counts_N = np.array([len(cut) - 1 for cut in bounds], dtype=np.int64)
        firsts_N = np.cumsum(counts_N) - counts_N
        several = np.flatnonzero(counts_N > 1)
        sums_PD = torch.zeros(len(rows) + 1, alone_PD.shape[1], device=self._device)
        for text in several.tolist():
            windows = self._windows(text, len(texts[text]))
            batch = self._batch([texts[text].ids[window.pieces] for window in windows])
            part_of_piece = np.repeat(np.arange(counts_N[text]), np.diff(bounds[text])) + firsts_N[text]
            # Special pieces belong to no part.
            parts_T = np.concatenate([np.pad(part_of_piece[w.pieces], 1, constant_values=len(rows)) for w in windows])
            states_TD = self._network.encoder(batch).float()
            sums_PD.index_add_(0, torch.from_numpy(parts_T).to(self._device), states_TD)
        return unit_rows(alone_PD + unit_rows(sums_PD[:-1].cpu().numpy()))

    def _windows(self, text: int, num_pieces: int) -> list[SentenceRun]:
        longest = self._config.window_tokens - NUM_SPECIAL
        return cut_windows(text, num_pieces, longest=longest, overlap=self._config.window_overlap)

    def _batch(self, rows: Sequence[Ints32]) -> RaggedBatch:
        first, last = np.int32(self._pieces.first_id), np.int32(self._pieces.last_id)
        return RaggedBatch.of([np.concatenate([[first], row, [last]]) for row in rows], self._device)

    def _run_facets(self, runs: Sequence[SentenceRun], texts: Sequence[Pieces]) -> tuple[Floats, Ints32]:
        """Facets ``[R, K, D]`` and spans ``[R, K, 2]`` of runs."""
        facets_RKD, spans_RK2 = self._nothing(len(runs))
        lengths_R = np.array([len(run) for run in runs], dtype=np.int64)
        for chunk in length_batches(lengths_R, max_tokens=_CHUNK_TOKENS):
            chunk_runs = [runs[i] for i in chunk]
            facets_RKD[chunk], spans_RK2[chunk] = self._chunk_facets(chunk_runs, texts)
            if not np.isfinite(facets_RKD[chunk]).all():
                # Rare, and never twice for the same texts: caused by kernels, not by weights or texts.
                logger.warning("facets of %d runs were not finite, reading them again", len(chunk))
                facets_RKD[chunk], spans_RK2[chunk] = self._chunk_facets(chunk_runs, texts)
        return facets_RKD, spans_RK2

    def _nothing(self, num_rows: int) -> tuple[Floats, Ints32]:
        """Zero facets ``[rows, K, D]`` and their spans ``[rows, K, 2]``."""
        num_facets, dim = self._config.network.num_facets, self._config.network.encoder.width
        return np.zeros((num_rows, num_facets, dim), np.float32), np.zeros((num_rows, num_facets, 2), np.int32)

    def _chunk_facets(self, runs: Sequence[SentenceRun], texts: Sequence[Pieces]) -> tuple[Floats, Ints32]:
        facets_RKD, spans_RK2 = self._nothing(len(runs))
        lengths_R = np.array([len(run) for run in runs], dtype=np.int64)
        states_TD, ends_R = self._states(runs, texts), lengths_R.cumsum()
        for part in length_batches(lengths_R, max_tokens=_BATCH_TOKENS):  # the order of the runs
            part_TD = states_TD[ends_R[part[0]] - lengths_R[part[0]] : ends_R[part[-1]]]
            read = self._run_batch([runs[i] for i in part], texts)
            vectors_BD = average_states(part_TD, read.batch)
            facets_BKD, weights_BKL = self._network.pooling(part_TD, vectors_BD, read.batch, slots=read.slots)
            facets_RKD[part], spans_RK2[part] = self._merged(facets_BKD, weights_BKL, read)
        return facets_RKD, spans_RK2

    def _states(self, runs: Sequence[SentenceRun], texts: Sequence[Pieces]) -> Tensor:
        """States ``[T, D]`` of the sentences of runs, each encoded separately."""
        rows = [texts[run.text].ids[a:b] for run in runs for a, b in pairwise(run.bounds.tolist())]
        lengths_S = np.array([len(row) + NUM_SPECIAL for row in rows], dtype=np.int64)
        firsts_S = torch.from_numpy(lengths_S.cumsum() - lengths_S).to(self._device)
        states_TD: Tensor | None = None
        for part in length_batches(lengths_S, max_tokens=_BATCH_TOKENS):
            check_interrupted()
            batch = self._batch([rows[i] for i in part])
            part_TD: Tensor = self._network.encoder(batch)
            if len(part) == len(rows) and (np.diff(part) == 1).all():
                return part_TD
            if states_TD is None:
                states_TD = part_TD.new_empty(int(lengths_S.sum()), part_TD.shape[1])
            tokens_T = firsts_S[torch.from_numpy(part).to(self._device)][batch.text_numbers] + batch.positions
            states_TD.index_copy_(0, tokens_T, part_TD)
        assert states_TD is not None
        return states_TD

    def _run_batch(self, runs: Sequence[SentenceRun], texts: Sequence[Pieces]) -> _RunBatch:
        cut = [texts[run.text].cut(run.pieces) for run in runs]
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
        pieces_T = np.where(is_piece_T, is_piece_T.cumsum() - 1, -1)
        return _RunBatch(batch, pieces_T, characters, slots, sentences_BK)

    def _merged(self, facets_BKD: Tensor, weights_BKL: Tensor, read: _RunBatch) -> tuple[Floats, Ints32]:
        """Merged facets and their spans; a facet merged from several sentences has its span in the closest one."""
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

    def _of_pieces(self, flags_V: Bools, batch: RaggedBatch) -> Tensor:
        """Flags of the pieces of a batch ``[B, L]``, looked up in the flags of the vocabulary."""
        flags_T = torch.from_numpy(flags_V).to(self._device)[batch.ids]
        return batch.pad(flags_T[:, None])[:, :, 0]

    def _spans(self, read: _RunBatch, weights_BKL: Tensor, begin_BK: Tensor) -> Ints32:
        """Characters that facets attend to, ``[B, K, 2]``; the piece ``begin_BK`` for facets without weight."""
        batch = read.batch
        places_BL = batch.pad(torch.from_numpy(read.pieces).to(self._device)[:, None] + 1)[:, :, 0] - 1
        # A span must not begin with the full stop of the previous sentence.
        unshown_BL = (places_BL < 0) | self._of_pieces(self._pieces.is_mark, batch)
        shown_BKL = weights_BKL.masked_fill(unshown_BL[:, None], 0.0)
        firsts_BK, lasts_BK = attended_runs(shown_BKL)
        is_somewhere_BK = shown_BKL.any(dim=2)
        firsts_BK = torch.where(is_somewhere_BK, firsts_BK, begin_BK)
        lasts_BK = torch.where(is_somewhere_BK, lasts_BK, begin_BK)
        continues_BL = self._of_pieces(self._pieces.continues_word, batch)
        firsts_BK, lasts_BK = widen_to_words(firsts_BK, lasts_BK, continues_BL)
        # A sentence that was cut may begin inside a word; the piece before it is then the special one.
        first_BK, last_BK = (
            places_BL.gather(1, places).cpu().numpy()
            for places in (firsts_BK + (places_BL.gather(1, firsts_BK) < 0), lasts_BK)
        )
        starts_BK, ends_BK = read.characters[first_BK, 0], read.characters[last_BK, 1]
        return np.stack([starts_BK, np.maximum(ends_BK, starts_BK + 1)], axis=2)


def _slices(num_texts: int, parts_of: Callable[[int], list[SentenceRun]]) -> Iterator[list[list[SentenceRun]]]:
    """Splits the work into slices: lists of sections, each with runs of one text."""
    sections: list[list[SentenceRun]] = []
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
