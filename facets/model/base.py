"""What the models of all tasks share: a network in evaluation mode beside its words and its configuration.

Shape suffixes: B texts, L tokens, K facets, D dimensions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Sized
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from facets.errors import InvalidInputError
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors
from facets.model.checkpoint import CheckpointConfig
from facets.model.contract import ModelSettings
from facets.model.network import FacetNetwork

NetworkT = TypeVar("NetworkT", bound=nn.Module)
SettingsT = TypeVar("SettingsT", bound=ModelSettings)
RowT = TypeVar("RowT", bound=Sized)

# Tokens of one forward pass, padding included: large enough for full matrix products, small enough for the cache.
_BATCH_TOKENS = 4096


@cache
def _tokenizer() -> Tokenizer:
    """One for all models: it knows nothing of them, and the words that it has seen are theirs too."""
    return Tokenizer()


class CheckpointModel(Generic[NetworkT, SettingsT]):
    """A model as its checkpoint folder describes it, on one device; what ``ModelInfo`` promises.

    Attributes:
        config: What the checkpoint says about itself.
        network: The PyTorch module, in evaluation mode.
        words: Vocabulary and word vectors.
        tokenizer: Sentence and token splitting.
        revision: Changes when anything that decides an answer changes.
    """

    def __init__(
        self,
        network: NetworkT,
        words: WordVectors,
        *,
        config: SettingsT,
        revision: str,
        device: str,
        precision: Callable[[torch.device], torch.dtype] = lambda _: torch.float32,
    ) -> None:
        self._device = torch.device(device)
        self.config = config
        self.name, self.task = config.name, config.task
        self.num_facets, self.dim, self.max_tokens = config.num_facets, config.dim, config.max_tokens
        self.vocabulary_size = words.vocabulary.num_words
        self.network = network.to(self._device, precision(self._device)).eval().requires_grad_(False)
        self.words = words
        self.tokenizer = _tokenizer()
        self.revision = revision

    @property
    def space(self) -> str:
        """Its own: no other model has vectors that may be compared with its."""
        return f"{self.name}@{self.revision}"

    @staticmethod
    def _nonempty(rows: list[RowT]) -> list[RowT]:
        """Tokens of texts that must have some."""
        for position, row in enumerate(rows):
            if len(row) == 0:
                raise InvalidInputError("has no words, expected at least one", path=("texts", position))
        return rows

    def _batches(
        self, rows: Sequence[NDArray[np.integer]], max_tokens: int = _BATCH_TOKENS
    ) -> Iterator[tuple[NDArray[np.int64], Tensor, Tensor]]:
        """Batches of similar length, longest first: places in ``rows``, padded rows ``[B, L]``, lengths ``[B]``."""
        lengths_B = np.fromiter((len(r) for r in rows), dtype=np.int64, count=len(rows))
        order_B = np.argsort(-lengths_B, kind="stable")
        start = 0
        while start < len(order_B):
            # Longest first: the first text fixes the width, so the count follows from the token budget.
            width = int(lengths_B[order_B[start]])
            batch = order_B[start : start + max(1, max_tokens // (width + 1))]
            mask_BL = np.arange(max(1, width)) < lengths_B[batch][:, None]
            rows_BL = np.zeros(mask_BL.shape, dtype=np.int64)
            rows_BL[mask_BL] = np.concatenate([rows[i] for i in batch])
            yield batch, torch.from_numpy(rows_BL).to(self._device), torch.from_numpy(lengths_B[batch]).to(self._device)
            start += len(batch)


class FacetNetworkModel(CheckpointModel[FacetNetwork, CheckpointConfig], ABC):
    """A model around a ``FacetNetwork``: rows of tokens in, facets out. A subclass says how a text becomes rows."""

    @abstractmethod
    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """What ``encode_rows`` reads: one int64 array ``[L]`` a text, L <= ``max_tokens``."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes a checkpoint folder."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Facet embeddings of texts.

        Args:
            texts: Any number of texts, each with at least one word; unknown words count.

        Returns:
            ``[len(texts), K, D]`` float32, in the order of the texts, magnitudes kept.

        Raises:
            InvalidInputError: A text has no word at all.
            TypeError: ``texts`` is one ``str``.

        Example:
            >>> import facets
            >>> model = facets.load()
            >>> model.encode(["A man is lifting weights in a garage."]).shape
            (1, 10, 256)
        """
        return self.encode_rows(self.tokenize_nonempty(texts))

    def tokenize_nonempty(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """``tokenize``, for texts that must have a word.

        Raises:
            InvalidInputError: A text has no word at all.
            TypeError: ``texts`` is one ``str``.
        """
        return self._nonempty(self.tokenize(texts))

    @torch.inference_mode()
    def encode_rows(self, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        """Facet embeddings of tokenized texts, batched by length.

        ``rows``: output of ``tokenize``; any lengths up to ``max_tokens``. Returns ``[len(rows), K, D]`` float32 in the
        given order.
        """
        facets_BKD = np.empty((len(rows), self.num_facets, self.dim), dtype=np.float32)
        for batch, rows_BL, lengths_B in self._batches(rows):
            facets_BKD[batch] = self.network(rows_BL, lengths_B).float().cpu().numpy()
        return facets_BKD
