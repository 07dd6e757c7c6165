"""The model people use: texts in, facet embeddings out.

Shape suffixes: B texts, L tokens, K facets, D dimensions.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets.errors import CheckpointError, InvalidInputError
from facets.model.backbone import BackboneEncoder
from facets.model.calibration import CalibrationCurves, read_calibration
from facets.model.checkpoint import CheckpointConfig, checkpoint_revision, read_checkpoint, write_checkpoint
from facets.model.network import FacetNetwork
from facets.text.tokenizer import Tokenizer
from facets.words.vectors import WordVectors

__all__ = ["FacetModel", "load_facet_model", "new_model"]

# Tokens of one forward pass, padding included: large enough for full matrix products, small enough for the cache.
_BATCH_TOKENS = 4096
_COMPONENT_PREFIX = "common_component."


class FacetModel:
    """Turns texts into K facet embeddings each, on one device.

    Attributes:
        name: Name of the checkpoint.
        revision: Changes when weights, settings or word vectors change.
        task: ``sentences``.
        num_facets: K.
        dim: D, also the width of the word vectors.
        max_tokens: Longer texts are cut after so many tokens.
        l1_weight: lambda of eq. 3.1, for scoring.
        words: The target space: vocabulary and word vectors.
        tokenizer: Sentence and token splitting.
        network: The PyTorch module, in evaluation mode.
        common_components: Directions SIF removes, ``[D]`` each; keys ``plain`` and ``attention``.
        calibration_curves: What similarity scores mean, ``[2, N]`` a method; empty when none were fitted.
    """

    def __init__(
        self,
        network: FacetNetwork,
        words: WordVectors,
        *,
        config: CheckpointConfig,
        revision: str = "unsaved",
        common_components: dict[str, NDArray[np.float32]] | None = None,
        calibration_curves: CalibrationCurves | None = None,
        device: str = "cpu",
    ) -> None:
        self._config = config
        self._device = torch.device(device)
        self.network = network.to(self._device).eval().requires_grad_(False)
        self.revision = revision
        self.words = words
        self.tokenizer = Tokenizer()
        self.common_components = dict(common_components or {})
        self.calibration_curves = dict(calibration_curves or {})

    @property
    def config(self) -> CheckpointConfig:
        """What the checkpoint says about itself."""
        return self._config

    @property
    def name(self) -> str:
        """Name of the checkpoint."""
        return self._config.name

    @property
    def task(self) -> str:
        """What the model was trained for."""
        return self._config.task

    @property
    def num_facets(self) -> int:
        """K, the number of facets of every text."""
        return self._config.model.num_facets

    @property
    def dim(self) -> int:
        """D, the width of a facet."""
        return self._config.model.dim

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that are read; the rest is cut."""
        return self._config.model.max_tokens

    @property
    def l1_weight(self) -> float:
        """Lambda of eq. 3.1."""
        return self._config.l1_weight

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
            return encoder.tokenize(texts, self.max_tokens)
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
        return [split_rows(words[:limit])[0][:limit] for words in self.tokenizer.words(texts)]

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
        return self.encode_rows(self._tokenize_nonempty(texts))

    @torch.inference_mode()
    def encode_rows(self, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        """Facet embeddings of tokenized texts, batched by length.

        Args:
            rows: Output of ``tokenize``; any lengths up to ``max_tokens``.

        Returns:
            ``[len(rows), K, D]`` float32 in the given order.
        """
        facets_BKD = np.empty((len(rows), self.num_facets, self.dim), dtype=np.float32)
        for batch, rows_BL, lengths_B in self._batches(rows):
            facets_BKD[batch] = self.network(rows_BL, lengths_B).float().cpu().numpy()
        return facets_BKD

    @torch.inference_mode()
    def encode_states(self, texts: Sequence[str]) -> NDArray[np.float32]:
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
        rows = self._tokenize_nonempty(texts)
        embeddings: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        for batch, rows_BL, lengths_B in self._batches(rows):
            embeddings.append((batch, self._embed(rows_BL, lengths_B).float().cpu().numpy()))
        if not embeddings:
            return np.empty((0, self._config.model.hidden_dim), dtype=np.float32)
        order = np.argsort(np.concatenate([batch for batch, _ in embeddings]), kind="stable")
        return np.concatenate([embedding_BH for _, embedding_BH in embeddings])[order]

    def _embed(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        encoder = self.network.encoder
        if isinstance(encoder, BackboneEncoder):
            return encoder.embed(rows_BL, lengths_B)
        states_BLH = encoder(rows_BL, lengths_B)
        mask_BL1 = (torch.arange(states_BLH.shape[1], device=self._device) < lengths_B[:, None]).unsqueeze(2)
        return states_BLH.masked_fill(~mask_BL1, 0.0).sum(dim=1) / lengths_B[:, None]

    def _tokenize_nonempty(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        rows = self.tokenize(texts)
        for position, tokens in enumerate(rows):
            if len(tokens) == 0:
                raise InvalidInputError(
                    f"texts[{position}] has no words, expected at least one", field=f"texts[{position}]"
                )
        return rows

    def _batches(self, rows: Sequence[NDArray[np.int64]]) -> Iterator[tuple[NDArray[np.int64], Tensor, Tensor]]:
        """Batches of similar length, longest first: places in ``rows``, padded rows ``[B, L]``, lengths ``[B]``."""
        lengths_B = np.fromiter((len(r) for r in rows), dtype=np.int64, count=len(rows))
        order_B = np.argsort(-lengths_B, kind="stable")
        start = 0
        while start < len(order_B):
            # Longest first: the first text fixes the width, so the count follows from the token budget.
            width = int(lengths_B[order_B[start]]) + 1
            batch = order_B[start : start + max(1, _BATCH_TOKENS // width)]
            yield batch, *self._padded([rows[i] for i in batch], lengths_B[batch])
            start += len(batch)

    def _padded(self, rows: list[NDArray[np.int64]], lengths_B: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        width = max(1, int(lengths_B.max()))
        mask_BL = np.arange(width) < lengths_B[:, None]
        rows_BL = np.zeros(mask_BL.shape, dtype=np.int64)
        rows_BL[mask_BL] = np.concatenate(rows)
        return torch.from_numpy(rows_BL).to(self._device), torch.from_numpy(lengths_B).to(self._device)

    def save(self, folder: Path) -> None:
        """Writes a checkpoint folder; word vectors too, unless the configuration shares another folder's."""
        tensors = dict(self.network.state_dict())
        tensors |= {_COMPONENT_PREFIX + name: torch.from_numpy(v) for name, v in self.common_components.items()}
        write_checkpoint(folder, self._config, tensors)
        if self._config.words == ".":
            self.words.save(folder)


def load_facet_model(folder: Path, *, device: str = "cpu") -> FacetModel:
    """Loads a checkpoint folder whose task is ``sentences``.

    Raises:
        NotFoundError: There is no such folder.
        CheckpointError: It is incomplete, damaged, or of another task.
    """
    config, tensors = read_checkpoint(folder)
    words_folder = (folder / config.words).resolve()
    words = WordVectors.load(words_folder)
    if words.dim != config.model.dim:
        raise CheckpointError(
            f"{folder}: word vectors have {words.dim} dimensions, the model expects {config.model.dim}"
        )
    components = {
        name.removeprefix(_COMPONENT_PREFIX): tensors.pop(name).numpy()
        for name in list(tensors)
        if name.startswith(_COMPONENT_PREFIX)
    }
    try:
        network = FacetNetwork(config.model, torch.from_numpy(words.unit_vectors))
        network.load_state_dict(tensors)
    except RuntimeError as error:  # also a network that no memory holds
        problem = " ".join(str(error).split())[:300]  # PyTorch tells every tensor on a line of its own
        raise CheckpointError(f"{folder}: the weights do not fit config.json: {problem}") from error
    revision = checkpoint_revision(
        folder / "config.json",
        folder / "model.safetensors",
        words_folder / "vectors.safetensors",
        words_folder / "vocabulary.tsv",
    )
    return FacetModel(
        network,
        words,
        config=config,
        revision=revision,
        common_components=components,
        calibration_curves=read_calibration(folder, revision),
        device=device,
    )


def new_model(config: CheckpointConfig, words: WordVectors, *, seed: int) -> FacetModel:
    """An untrained model with seeded weights, for tests and as a starting point."""
    torch.manual_seed(seed)
    return FacetModel(FacetNetwork(config.model, torch.from_numpy(words.unit_vectors)), words, config=config)
