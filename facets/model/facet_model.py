"""The model of sentences and phrases: texts in, facet embeddings in the space of word vectors out.

Shape suffixes: B texts, L tokens, K facets, D dimensions, H hidden width.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch

from facets.arrays import Floats, Ints
from facets.errors import InvalidInputError
from facets.language.reading import read
from facets.language.tokenizer import check_sequence
from facets.language.vectors import WordVectors
from facets.model.base import CheckpointModel
from facets.model.checkpoint import (
    CheckpointConfig,
    fit_weights,
    read_config,
    read_weights,
    read_words,
    revision_files,
    revision_of,
    write_checkpoint,
)
from facets.model.contract import ModelDescription
from facets.model.network import FacetNetwork, WordTable
from facets.model.score_curves import ScoreCurves, read_score_curves
from facets.model.shipped import borrowed_folder

_COMPONENT_PREFIX = "common_component."
# Files that tell sentence-transformers which module encodes.
_SENTENCE_TRANSFORMERS = {
    "modules.json": [{"idx": 0, "name": "0", "path": "", "type": "facets.model.multi_vector.FacetModule"}],
    "config_sentence_transformers.json": {"model_type": "MultiVectorEncoder", "similarity_fn_name": "maxsim"},
}


class FacetModel(CheckpointModel[FacetNetwork, CheckpointConfig]):
    """Turns texts into K facet embeddings each; implements ``facets.model.contract.SentenceModel``."""

    def __init__(
        self,
        network: FacetNetwork,
        words: WordVectors,
        *,
        config: CheckpointConfig,
        revision: str = "unsaved",
        common_components: Mapping[str, Floats] | None = None,
        score_curves: ScoreCurves | None = None,
        device: str = "cpu",
    ) -> None:
        sizes = config.model.num_facets, config.model.dim, config.model.max_tokens
        super().__init__(network, words, config=config, sizes=sizes, revision=revision, device=device)
        self.common_components: Mapping[str, Floats] = common_components or {}
        self.score_curves: ScoreCurves = score_curves or {}

    def encode(self, texts: Sequence[str]) -> Floats:
        """Facet embeddings ``[len(texts), K, D]`` float32 of texts, in order, magnitudes kept; unknown words count.

        Raises InvalidInputError for a text without words, TypeError for a single ``str``.

        Example:
            >>> import facets
            >>> model = facets.load()
            >>> model.encode(["A man is lifting weights in a garage."]).shape
            (1, 10, 256)
        """
        return self.encode_rows(self.tokenize_nonempty(texts))

    def tokenize(self, texts: Sequence[str]) -> list[Ints]:
        """Token rows of each text, ``[L]`` int64 with L <= ``max_tokens``: the input of ``encode_rows``.

        A word missing from the vocabulary becomes pieces; row ``len(words)`` stands for an unknown word.
        """
        check_sequence(texts, "encode")
        said = [read(text).text for text in texts]
        limit = self.max_tokens
        split_rows = self.words.vocabulary.split_rows
        return [split_rows(words[:limit])[0][:limit] for words in self.tokenizer.words(said, most=limit)]

    def tokenize_nonempty(self, texts: Sequence[str]) -> list[Ints]:
        """``tokenize``; raises InvalidInputError for a text without words."""
        rows = self.tokenize(texts)
        for position, row in enumerate(rows):
            if not len(row):
                raise InvalidInputError("has no words, expected at least one", path=("texts", position))
        return rows

    @torch.inference_mode()
    def encode_rows(self, rows: Sequence[Ints]) -> Floats:
        """Facet embeddings ``[len(rows), K, D]`` float32 of tokenized texts, in order; ``rows``: see ``tokenize``."""
        facets_BKD = np.empty((len(rows), self.num_facets, self.dim), dtype=np.float32)
        for batch, rows_BL, lengths_B in self._batches(rows):
            facets_BKD[batch] = self.network(rows_BL, lengths_B).float().cpu().numpy()
        return facets_BKD

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> Floats:
        """One embedding per text, ``[len(texts), H]``: the mean of the states of its tokens, without <eos>.

        "Ours Emb" of Chang 2022, section 3.2.2.5. Raises as ``encode``.
        """
        rows, encoder = self.tokenize_nonempty(texts), self.network.encoder
        embeddings_BH = np.empty((len(rows), encoder.width), dtype=np.float32)
        for batch, rows_BL, lengths_B in self._batches(rows):
            embeddings_BH[batch] = encoder.embed(rows_BL, lengths_B).float().cpu().numpy()
        return embeddings_BH

    def save(self, folder: Path) -> None:
        """Writes a checkpoint folder, with the word vectors unless the configuration names another model's."""
        tensors = dict(self.network.state_dict())
        tensors |= {_COMPONENT_PREFIX + name: torch.from_numpy(v) for name, v in self.common_components.items()}
        write_checkpoint(folder, self.config, tensors, **_SENTENCE_TRANSFORMERS)
        if self.config.words == ".":
            self.words.save(folder)

    @classmethod
    def describe(cls, folder: Path) -> ModelDescription:
        """The description of the model in a folder, without its weights; raises CheckpointError."""
        config = read_config(folder, CheckpointConfig)
        sizes = config.model.num_facets, config.model.dim, config.model.max_tokens
        revision = revision_of(*revision_files(folder, config))
        return config.describe(sizes, revision, borrowed_folder(folder, config.words))

    @classmethod
    def from_folder(cls, folder: Path, *, device: str = "cpu") -> Self:
        """Loads a checkpoint folder of this task; raises as ``facets.load``, which also finds models by name."""
        config = read_config(folder, CheckpointConfig)
        tensors = read_weights(folder)
        words = read_words(borrowed_folder(folder, config.words), config.model.dim)
        components = {
            name.removeprefix(_COMPONENT_PREFIX): tensors.pop(name).numpy()
            for name in list(tensors)
            if name.startswith(_COMPONENT_PREFIX)
        }
        network = fit_weights(folder, lambda: FacetNetwork(config.model, WordTable.of(words)), tensors)
        network.use_int8()
        revision = revision_of(*revision_files(folder, config))
        return cls(
            network,
            words,
            config=config,
            revision=revision,
            common_components=components,
            score_curves=read_score_curves(folder, revision),
            device=device,
        )
