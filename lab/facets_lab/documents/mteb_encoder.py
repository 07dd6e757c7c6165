"""A model of passages in MTEB's benchmarks (extra ``mteb``).

>>> import mteb  # doctest: +SKIP
>>> from facets_lab.documents.mteb_encoder import FacetsEncoder  # doctest: +SKIP
>>> tasks = mteb.get_tasks(["SciFact"])  # doctest: +SKIP
>>> mteb.evaluate(FacetsEncoder("facets-passages-small-en"), tasks)  # doctest: +SKIP
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
    """Meets ``mteb.EncoderProtocol``: facets for queries and documents, one vector for every other text.

    Retrieval is scored as a search by facets is, similarity and classification by the vector of the text.

    Args:
        model_name: A model for passages, by name or folder.
        revision: Must be the model's, where it is given.
        device: Where it runs.

    Raises:
        ImportError: MTEB is not installed.
    """

    def __init__(self, model_name: str | Path, revision: str | None = None, *, device: str | None = None) -> None:
        require_extra("mteb", "mteb")
        from mteb.models import ModelMeta

        self.model = load(model_name, PassageModel, device=device or "cpu")
        if revision not in (None, self.model.revision):
            raise ValueError(f"{self.model.name} is of revision {self.model.revision}, expected {revision}")
        about = {
            "name": f"facets/{self.model.name}",
            "revision": self.model.revision,
            "embed_dim": self.model.dim,
            "languages": ["eng-Latn"],
            "open_weights": True,
            "framework": ["PyTorch"],
        }
        self.mteb_model_meta = ModelMeta.create_empty(overwrites=about)

    def encode(
        self, inputs: Iterable[Mapping[str, Sequence[str]]], *, prompt_type: object = None, **_settings: object
    ) -> Embeddings:
        """Embeddings of texts, batch by batch.

        Args:
            inputs: MTEB's batches, each with ``text``.
            prompt_type: ``query``, ``document``, or None for a text that is neither.

        Returns:
            A tensor ``[facets, D]`` for each query and document; ``[texts, D]`` float32 for other texts.
        """
        batches = [[text if text.strip() else "." for text in batch["text"]] for batch in inputs]
        kind = getattr(prompt_type, "value", prompt_type)
        if kind is None:
            return np.concatenate([self.model.embed(batch) for batch in batches])
        facets_of = self._queries if kind == "query" else self._documents
        return [torch.from_numpy(row) for batch in batches for row in facets_of(batch)]

    def similarity(self, embeddings1: Embeddings, embeddings2: Embeddings) -> torch.Tensor:
        """Scores ``[N, M]`` of every pair."""
        from mteb.similarity_functions import cos_sim, max_sim

        score = max_sim if _have_facets(embeddings1) else cos_sim
        return torch.as_tensor(score(embeddings1, embeddings2))

    def similarity_pairwise(self, embeddings1: Embeddings, embeddings2: Embeddings) -> torch.Tensor:
        """Scores ``[N]`` of pairs in their order."""
        from mteb.similarity_functions import pairwise_cos_sim, pairwise_max_sim

        score = pairwise_max_sim if _have_facets(embeddings1) else pairwise_cos_sim
        return torch.as_tensor(score(embeddings1, embeddings2))

    def _queries(self, texts: Sequence[str]) -> Iterable[NDArray[np.float32]]:
        """Facets scaled by what they count, so that MaxSim is the score of a search."""
        found = self.model.encode_queries(texts)
        return map(_without_zeros, found.facets * found.weights[:, :, None])

    def _documents(self, texts: Sequence[str]) -> Iterable[NDArray[np.float32]]:
        found = self.model.encode_passages(texts)
        return (_without_zeros(found.document(place)[0]) for place in range(len(texts)))


def _without_zeros(facets_KD: NDArray[np.float32]) -> NDArray[np.float32]:
    return facets_KD[facets_KD.any(axis=1)]


def _have_facets(embeddings: Embeddings) -> bool:
    return embeddings[0].ndim == 2
