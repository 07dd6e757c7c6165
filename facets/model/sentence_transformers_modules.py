"""Models of passages for users of sentence-transformers (extra ``backbone``): one vector a text, or its facets.

>>> from facets.model.sentence_transformers_modules import PassageFacetsModule, PassageVectorModule
>>> from sentence_transformers import MultiVectorEncoder, SentenceTransformer
>>> dense = SentenceTransformer(modules=[PassageVectorModule("facets-passages-small-en")], device="cpu")
>>> dense.encode(["A dog barks."]).shape
(1, 384)
>>> facets_of = MultiVectorEncoder(modules=[PassageFacetsModule("facets-passages-small-en")], device="cpu")
>>> facets_of.encode_document(["A dog barks. Taxes are due."])[0].shape[1]
384

Shape suffixes: B texts, K facets of the text that has most, D dimensions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers.base.modules import InputModule

from facets.model.loading import load
from facets.model.passage_model import PassageModel

__all__ = ["PassageFacetsModule", "PassageVectorModule"]


class _PassageModule(InputModule):  # type: ignore[misc]  # its types are skipped, see pyproject.toml
    """The one module of a pipeline: it takes texts as they are, because the model reads long ones window by window."""

    def __init__(self, name_or_path: str | Path, *, device: str = "cpu") -> None:
        super().__init__()
        self.model = load(name_or_path, PassageModel, device=device)
        self.network = self.model.network  # so that the pipeline knows where it runs

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, task: str | None = None, **_settings: object
    ) -> dict[str, Any]:
        """The texts, and what they are: ``query``, or anything else for documents."""
        return {"texts": [(prompt or "") + text for text in inputs], "task": task}

    def save(self, output_path: str, *_args: object, **_settings: object) -> None:
        """Writes the whole checkpoint."""
        self.model.save(Path(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, **_settings: Any) -> "_PassageModule":
        """Opens a checkpoint folder; nothing is downloaded."""
        return cls(model_name_or_path)

    def get_embedding_dimension(self) -> int:
        """D."""
        return self.model.dim


class PassageVectorModule(_PassageModule):
    """One vector a text, for ``SentenceTransformer(modules=[...])``.

    Args:
        name_or_path: A model for passages, by name or folder.
        device: Where it runs; the pipeline gets the same one.
    """

    def forward(self, features: dict[str, Any], **_settings: object) -> dict[str, Any]:
        """Adds ``sentence_embedding`` ``[B, D]``, unit norm."""
        return {**features, "sentence_embedding": torch.from_numpy(self.model.embed(features["texts"]))}


class PassageFacetsModule(_PassageModule):
    """Facets of documents and of queries, for ``MultiVectorEncoder(modules=[...])``.

    MaxSim of what it gives is the score of a search by facets: facets of a query are scaled by what they count.

    Args:
        name_or_path: A model for passages, by name or folder.
        device: Where it runs; the pipeline gets the same one.
    """

    def forward(self, features: dict[str, Any], **_settings: object) -> dict[str, Any]:
        """Adds ``token_embeddings`` ``[B, K, D]`` and ``attention_mask`` ``[B, K]``, 0 beyond the facets of a text."""
        rows = self._queries(features["texts"]) if features["task"] == "query" else self._documents(features["texts"])
        facets_BKD = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)
        return {
            **features,
            "token_embeddings": facets_BKD,
            "attention_mask": facets_BKD.any(dim=2).to(torch.int64),
        }

    def _queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        found = self.model.encode_queries(texts)
        return list(found.facets * found.weights[:, :, None])

    def _documents(self, texts: Sequence[str]) -> list[np.ndarray]:
        found = self.model.encode_passages(texts)
        return [found.document(place)[0] for place in range(len(texts))]
