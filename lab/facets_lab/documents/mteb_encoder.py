"""A passage model in MTEB's benchmarks (extra ``mteb``).

>>> import mteb  # doctest: +SKIP
>>> from facets_lab.documents.mteb_encoder import FacetsEncoder  # doctest: +SKIP
>>> mteb.evaluate(FacetsEncoder("facets-passages-small-en"), mteb.get_tasks(["SciFact"]))  # doctest: +SKIP
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from facets.extras import require_extra
from facets.model import PassageModel
from facets.model.loading import load

Embeddings = NDArray[np.float32] | list[torch.Tensor]


class FacetsEncoder:
    """Implements ``mteb.EncoderProtocol``: facets for queries and documents, one vector for every other text."""

    def __init__(self, model_name: str | Path, revision: str | None = None, *, device: str | None = None) -> None:
        require_extra("mteb", "mteb")
        from mteb.models import ModelMeta

        self.model = load(model_name, PassageModel, device=device or "cpu")
        if revision not in (None, self.model.revision):
            raise ValueError(f"{self.model.name} has revision {self.model.revision}, expected {revision}")
        self.mteb_model_meta = ModelMeta.create_empty(
            overwrites={
                "name": f"facets/{self.model.name}",
                "revision": self.model.revision,
                "embed_dim": self.model.dim,
                "languages": ["eng-Latn"],
                "open_weights": True,
                "framework": ["PyTorch"],
            }
        )

    def encode(
        self, inputs: Iterable[Mapping[str, Sequence[str]]], *, prompt_type: object = None, **_settings: object
    ) -> Embeddings:
        """Embeddings of batches of ``text``.

        Returns:
            With prompt type ``query`` or ``document`` a tensor ``[K, D]`` for each text, else ``[N, D]`` float32.
        """
        batches = [[text if text.strip() else "." for text in batch["text"]] for batch in inputs]
        kind = getattr(prompt_type, "value", prompt_type)
        if kind is None:
            return np.concatenate([self.model.embed(batch) for batch in batches])
        facets_of = self._query_facets if kind == "query" else self._document_facets
        return [torch.from_numpy(facets[facets.any(axis=1)]) for batch in batches for facets in facets_of(batch)]

    def similarity(self, embeddings1: Embeddings, embeddings2: Embeddings) -> torch.Tensor:
        """Scores ``[N, M]`` of every pair."""
        from mteb.similarity_functions import cos_sim, max_sim

        score = max_sim if embeddings1[0].ndim == 2 else cos_sim
        return torch.as_tensor(score(embeddings1, embeddings2))

    def similarity_pairwise(self, embeddings1: Embeddings, embeddings2: Embeddings) -> torch.Tensor:
        """Scores ``[N]`` of pairs in their order."""
        from mteb.similarity_functions import pairwise_cos_sim, pairwise_max_sim

        score = pairwise_max_sim if embeddings1[0].ndim == 2 else pairwise_cos_sim
        return torch.as_tensor(score(embeddings1, embeddings2))

    def _query_facets(self, texts: Sequence[str]) -> Iterable[NDArray[np.float32]]:
        """Facets scaled by their weights, so that MaxSim is the score of a search."""
        encoded = self.model.encode_queries(texts)
        return encoded.facets * encoded.weights[:, :, None]

    def _document_facets(self, texts: Sequence[str]) -> Iterable[NDArray[np.float32]]:
        encoded = self.model.encode_passages(texts)
        return (encoded.document(row)[0] for row in range(len(texts)))
