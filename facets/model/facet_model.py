"""The model of sentences and phrases: texts in, facet embeddings in the space of word vectors out.

Shape suffixes: B texts, L tokens, K facets, D dimensions, H hidden width.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.language.reading import read
from facets.language.tokenizer import check_sequence
from facets.language.vectors import WordVectors
from facets.model.base import FacetNetworkModel
from facets.model.checkpoint import (
    CheckpointConfig,
    FilesRead,
    fit_weights,
    read_checkpoint,
    read_words,
    revision_files,
    write_checkpoint,
)
from facets.model.network import BackboneEncoder, FacetNetwork
from facets.model.score_curves import ScoreCurves, read_score_curves

_COMPONENT_PREFIX = "common_component."


def _said(texts: Sequence[str]) -> list[str]:
    """What texts say: without the newlines within paragraphs, and without marks."""
    check_sequence(texts, "tokenize")
    return [read(text).text for text in texts]


class FacetModel(FacetNetworkModel):
    """Turns texts into K facet embeddings each; meets ``facets.model.contract.SentenceModel``.

    Attributes:
        common_components: Directions SIF removes, ``[D]`` each; keys ``plain`` and ``attention``.
        score_curves: What similarity scores mean, ``[2, N]`` a method; empty when none were fitted.
    """

    def __init__(
        self,
        network: FacetNetwork,
        words: WordVectors,
        *,
        config: CheckpointConfig,
        revision: str = "unsaved",
        common_components: dict[str, NDArray[np.float32]] | None = None,
        score_curves: ScoreCurves | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(network, words, config=config, revision=revision, device=device)
        self.common_components = dict(common_components or {})
        self.score_curves = dict(score_curves or {})

    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """What ``encode_rows`` reads: rows of each text's first ``max_tokens`` tokens.

        Args:
            texts: Any number of texts.

        Returns:
            One int64 array ``[L]`` a text: ``word_rows``, or word pieces where a backbone encodes.

        Raises:
            TypeError: ``texts`` is one ``str``.
        """
        encoder = self.network.encoder
        if isinstance(encoder, BackboneEncoder):
            return encoder.tokenize(_said(texts), self.max_tokens)
        return self.word_rows(texts)

    def word_rows(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Vocabulary rows of each text's first ``max_tokens`` words; a word the vocabulary lacks becomes its pieces.

        Args:
            texts: Any number of texts.

        Returns:
            One int64 array ``[L]`` a text, L <= ``max_tokens``; row ``len(words)`` stands for an unknown word.

        Raises:
            TypeError: ``texts`` is one ``str``.
        """
        limit = self.max_tokens
        split_rows = self.words.vocabulary.split_rows
        return [split_rows(words[:limit])[0][:limit] for words in self.tokenizer.words(_said(texts), most=limit)]

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One embedding a text: the average of the encoder's contextual states of its tokens, without <eos>.

        A backbone gives its own sentence embedding, as its sentence-transformers model would.

        Args:
            texts: As for ``encode``.

        Returns:
            ``[len(texts), H]`` float32, in the order of the texts; a good embedding of phrases. With a backbone H is
            its width.

        Raises:
            InvalidInputError: A text has no word at all.
            TypeError: ``texts`` is one ``str``.

        References:
            Chang 2022, section 3.2.2.5 (Ours Emb).
        """
        rows = self.tokenize_nonempty(texts)
        embeddings: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        for batch, rows_BL, lengths_B in self._batches(rows):
            embeddings.append((batch, self._embed(rows_BL, lengths_B).float().cpu().numpy()))
        if not embeddings:
            return np.empty((0, self.config.model.hidden_dim), dtype=np.float32)
        order = np.argsort(np.concatenate([batch for batch, _ in embeddings]), kind="stable")
        return np.concatenate([embedding_BH for _, embedding_BH in embeddings])[order]

    def _embed(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        encoder = self.network.encoder
        if isinstance(encoder, BackboneEncoder):
            return encoder.embed(rows_BL, lengths_B)
        states_BLH = encoder(rows_BL, lengths_B)
        mask_BL1 = (torch.arange(states_BLH.shape[1], device=self._device) < lengths_B[:, None]).unsqueeze(2)
        return states_BLH.masked_fill(~mask_BL1, 0.0).sum(dim=1) / lengths_B[:, None]

    def save(self, folder: Path) -> None:
        """Writes a checkpoint folder; word vectors too, unless the configuration shares another folder's."""
        tensors = dict(self.network.state_dict())
        tensors |= {_COMPONENT_PREFIX + name: torch.from_numpy(v) for name, v in self.common_components.items()}
        write_checkpoint(folder, self.config, tensors)
        if self.config.words == ".":
            self.words.save(folder, quantized=True)

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self:
        """Loads a checkpoint folder whose task is ``sentences``; ``facets.load`` also finds shipped ones by name.

        Raises:
            NotFoundError: There is no such folder.
            CheckpointError: It is incomplete or damaged, or its weights are of another task.
        """
        files = FilesRead()
        config, tensors = read_checkpoint(folder, read=files)
        words = read_words(folder, config, read=files)
        components = {
            name.removeprefix(_COMPONENT_PREFIX): tensors.pop(name).numpy()
            for name in list(tensors)
            if name.startswith(_COMPONENT_PREFIX)
        }
        vectors_VD = torch.from_numpy(words.unit_vectors)
        network = fit_weights(folder, lambda: FacetNetwork(config.model, vectors_VD), tensors)
        revision = files.revision(*revision_files(folder, config))
        return cls(
            network,
            words,
            config=config,
            revision=revision,
            common_components=components,
            score_curves=read_score_curves(folder, revision),
            device=device,
        )


def new_model(config: CheckpointConfig, words: WordVectors, *, seed: int) -> FacetModel:
    """An untrained model with seeded weights, for tests and as a starting point."""
    torch.manual_seed(seed)
    return FacetModel(FacetNetwork(config.model, torch.from_numpy(words.unit_vectors)), words, config=config)
