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
        from mteb import similarity_functions
        from mteb.models import ModelMeta

        self._similarity = similarity_functions
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
        """Embeddings of batches of ``text``: ``[K, D]`` each for queries and documents, else ``[N, D]`` float32."""
        batches = [[text if text.strip() else "." for text in batch["text"]] for batch in inputs]
        kind = getattr(prompt_type, "value", prompt_type)
        if kind is None:
            return np.concatenate([self.model.embed(batch) for batch in batches])
        facets: list[NDArray[np.float32]] = []
        for batch in batches:
            if kind == "query":  # scaled by their weights, so that MaxSim is the score of a search
                queries = self.model.encode_queries(batch)
                facets += list(queries.facets * queries.weights[:, :, None])
            else:
                passages = self.model.encode_passages(batch)
                facets += [passages.document(row)[0] for row in range(len(batch))]
        return [torch.from_numpy(of_text[of_text.any(axis=1)]) for of_text in facets]

    def similarity(self, embeddings1: Embeddings, embeddings2: Embeddings) -> torch.Tensor:
        """Scores ``[N, M]`` of every pair."""
        score = self._similarity.max_sim if embeddings1[0].ndim == 2 else self._similarity.cos_sim
        return torch.as_tensor(score(embeddings1, embeddings2))

    def similarity_pairwise(self, embeddings1: Embeddings, embeddings2: Embeddings) -> torch.Tensor:
        """Scores ``[N]`` of pairs in their order."""
        kinds = self._similarity.pairwise_max_sim, self._similarity.pairwise_cos_sim
        return torch.as_tensor(kinds[embeddings1[0].ndim != 2](embeddings1, embeddings2))
