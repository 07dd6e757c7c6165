"""What the models of all tasks share: a network in evaluation mode, its words and its configuration.

Shape suffixes: B texts, L tokens.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from facets.arrays import Ints
from facets.config import Name, Settings
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors
from facets.language.vocabulary import num_words_of
from facets.model.contract import ModelDescription, shown_model
from facets.model.passage_encoding import length_batches

NetworkT = TypeVar("NetworkT", bound=nn.Module)

# Tokens per forward pass, padding included: enough for efficient matrix products, few enough for the CPU cache.
_BATCH_TOKENS = 4096
_LEAST_KNOWN = 0.2  # share of words in the vocabulary; if fewer are, a text may be foreign
shared_tokenizer = cache(Tokenizer)  # one for all models, so that they share its cache of words


class ModelConfig(Settings):
    """What every ``config.json`` says about its model."""

    name: Name  # unique among the models of a server
    task: str  # a key of `facets.model.loading.TASKS`
    training: dict[str, Any] = Field(default_factory=dict)  # facts about the training run, for human readers

    def describe(self, sizes: tuple[int, int, int], revision: str, words: Path, *, space: str = "") -> ModelDescription:
        """The description of the model: ``sizes`` are K, D and the most tokens, ``words`` the folder of its words."""
        num_facets, dim, max_tokens = sizes
        return ModelDescription(
            name=self.name,
            task=self.task,
            num_facets=num_facets,
            dim=dim,
            max_tokens=max_tokens,
            revision=revision,
            space=space or f"{self.name}@{revision}",
            vocabulary_size=num_words_of(words / "vocabulary.tsv"),
        )


ConfigT = TypeVar("ConfigT", bound=ModelConfig)


class CheckpointModel(Generic[NetworkT, ConfigT]):
    """A model of a checkpoint folder, on one device, with its network in evaluation mode; implements ``ModelInfo``."""

    def __init__(
        self,
        network: NetworkT,
        words: WordVectors,
        *,
        config: ConfigT,
        sizes: tuple[int, int, int],
        revision: str,
        device: str,
        precision: Callable[[torch.device], torch.dtype] = lambda _: torch.float32,
    ) -> None:
        """``sizes``: K, D and the most tokens read at once."""
        self._device = torch.device(device)
        self.config = config
        self.name, self.task = config.name, config.task
        self.num_facets, self.dim, self.max_tokens = sizes
        self.vocabulary_size = words.vocabulary.num_words
        self.network = network.to(self._device, precision(self._device)).eval().requires_grad_(False)
        self.words = words
        self.tokenizer = shared_tokenizer()
        self.revision = revision
        self.space = f"{self.name}@{revision}"

    __repr__ = shown_model

    def knows_script(self, text: str) -> bool:
        """Whether the vocabulary has some of the words of a text."""
        words = [word for word in self.tokenizer.words([text])[0] if any(map(str.isalpha, word))]
        num_known = np.count_nonzero(self.words.vocabulary.rows(words) < len(self.words))
        return bool(num_known >= _LEAST_KNOWN * len(words))

    def _batches(
        self, rows: Sequence[NDArray[np.integer]], max_tokens: int = _BATCH_TOKENS
    ) -> Iterator[tuple[Ints, Tensor, Tensor]]:
        """Batches of similar length, longest first: indexes into ``rows``, padded rows ``[B, L]``, lengths ``[B]``."""
        lengths_B = np.array([len(row) for row in rows], dtype=np.int64)
        for batch in length_batches(lengths_B + 1, max_tokens=max_tokens, pads=True):  # with <eos>
            mask_BL = np.arange(max(1, lengths_B[batch[0]])) < lengths_B[batch][:, None]
            rows_BL = np.zeros(mask_BL.shape, dtype=np.int64)
            rows_BL[mask_BL] = np.concatenate([rows[i] for i in batch])
            yield batch, torch.from_numpy(rows_BL).to(self._device), torch.from_numpy(lengths_B[batch]).to(self._device)
