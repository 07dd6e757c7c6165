"""Facets for users of sentence-transformers: a checkpoint opens as a ``MultiVectorEncoder``.

Every checkpoint folder names ``FacetModule`` in its ``modules.json``, so that ::

    MultiVectorEncoder("models/facets-en", trust_remote_code=True)

gives K unit vectors a text (``trust_remote_code`` because the class is ours, not theirs: no code of
the folder runs). ``SentenceTransformer`` would silently drop what it does not know; use the class above.

Shape suffixes: B texts, L tokens, K facets, D dimensions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.base.modules import InputModule
from torch import Tensor
from torch.nn import functional

from facets.errors import InvalidInputError
from facets.model.base import FacetNetworkModel
from facets.model.loading import load

__all__ = ["FacetModule"]


class FacetModule(InputModule):  # type: ignore[misc]  # its types are skipped, see pyproject.toml
    """The one module of the pipeline: tokens in, K facets as the "token" embeddings out."""

    def __init__(self, model: FacetNetworkModel) -> None:
        super().__init__()
        self.model = model
        self.network = model.network

    def preprocess(self, inputs: Sequence[str], prompt: str | None = None, **_settings: object) -> dict[str, Tensor]:
        """Token rows of texts.

        Args:
            inputs: Texts, each with at least one word.
            prompt: Put before every text.

        Returns:
            ``input_ids`` ``[B, L]`` int64 padded with 0, and ``lengths`` ``[B]``.

        Raises:
            InvalidInputError: A text has no word.
        """
        rows = self.model.tokenize_nonempty([(prompt or "") + text for text in inputs])
        tensors = [torch.from_numpy(row) for row in rows]
        lengths_B = torch.tensor([len(row) for row in rows])
        return {"input_ids": torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True), "lengths": lengths_B}

    def forward(self, features: dict[str, Tensor], **_settings: object) -> dict[str, Tensor]:
        """Adds ``token_embeddings`` ``[B, K, D]``, unit facets, and an all-ones ``attention_mask`` ``[B, K]``."""
        facets_BKD = self.network(features["input_ids"], features["lengths"])
        features["token_embeddings"] = functional.normalize(facets_BKD, dim=-1)
        features["attention_mask"] = torch.ones(facets_BKD.shape[:2], dtype=torch.int64, device=facets_BKD.device)
        return features

    def save(self, output_path: str, *_args: object, **_settings: object) -> None:
        """Writes the whole checkpoint."""
        self.model.save(Path(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, **_settings: Any) -> "FacetModule":
        """Opens a checkpoint folder; nothing is downloaded.

        Raises:
            InvalidInputError: The model has a network of its own, as those of papers have.
        """
        model = load(model_name_or_path)
        if not isinstance(model, FacetNetworkModel):
            raise InvalidInputError(f"{model.name}: expected a model around a facet network, got one for {model.task}")
        return cls(model)

    def get_embedding_dimension(self) -> int:
        """D."""
        return self.model.dim
