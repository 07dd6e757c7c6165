"""Modules for sentence-transformers (extra ``backbone``), which run checkpoints in its pipelines.

The ``modules.json`` of a sentence model names ``FacetModule``, so that ``MultiVectorEncoder("models/facets-en",
trust_remote_code=True)`` gives K unit vectors per text; no code from the folder runs. A passage model, or an encoder as
``sentence-transformers:NAME``, gives one vector per text, or its facets:

>>> from facets.model.multi_vector import PassageFacetsModule, PassageVectorModule
>>> from sentence_transformers import MultiVectorEncoder, SentenceTransformer
>>> dense = SentenceTransformer(modules=[PassageVectorModule("facets-passages-small-en")], device="cpu")
>>> dense.encode(["A dog barks."]).shape
(1, 384)
>>> facets_of = MultiVectorEncoder(modules=[PassageFacetsModule("facets-passages-small-en")], device="cpu")
>>> facets_of.encode_document(["A dog barks. Taxes are due."])[0].shape[1]
384

Shape suffixes: B texts, L tokens, K facets, D dimensions.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.base.modules import InputModule
from torch import Tensor
from torch.nn import functional

from facets.model.facet_model import FacetModel
from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets.model.shipped import ENCODER_PREFIX

_ENCODER = "encoder"  # holds the encoder of a saved pipeline, in a folder of its name


class _Module(InputModule):  # type: ignore[misc]  # untyped, see pyproject.toml
    """The only module of a pipeline, around a model."""

    kind: Any = PassageModel  # class of the model

    def __init__(self, name_or_path: str | Path, *, device: str = "cpu", **settings: Any) -> None:
        """``settings``: of ``facets.load``, for encoders."""
        super().__init__()
        self._name, self._settings = str(name_or_path), settings
        self.model: Any = load(name_or_path, self.kind, device=device, **settings)
        # Tells the pipeline which device to use.
        self.network: Any = getattr(self.model, "network", None) or self.model.encoder.network

    @classmethod
    def load(
        cls, model_name_or_path: str, *, trust_remote_code: bool = False, backend: str = "torch", **_settings: Any
    ) -> "_Module":
        """Opens a checkpoint folder, or the folder of an encoder within; nothing is downloaded."""
        encoders = Path(model_name_or_path) / _ENCODER
        if not encoders.is_dir():
            return cls(model_name_or_path)
        (folder,) = (path for path in encoders.iterdir() if not path.name.startswith("."))
        return cls(f"{ENCODER_PREFIX}{folder}", trust_remote_code=trust_remote_code, backend=backend)

    def save(self, output_path: str, *_args: object, **_settings: object) -> None:
        """Writes the whole checkpoint, or copies the files of an encoder."""
        if not self._name.startswith(ENCODER_PREFIX):
            self.model.save(Path(output_path))
            return
        from facets.model.sentence_transformer import find_encoder

        folder = find_encoder(self._name.removeprefix(ENCODER_PREFIX))
        unused = shutil.ignore_patterns(".*", *{"onnx", "openvino"} - {self._settings.get("backend")})
        target = Path(output_path) / _ENCODER / self.model.name
        if target.resolve() != folder.resolve():  # else it is saved to where it came from
            shutil.copytree(folder, target, ignore=unused, dirs_exist_ok=True)

    def get_embedding_dimension(self) -> int:
        """D, the width of a facet."""
        return int(self.model.dim)


class _PassageModule(_Module):
    """Passes texts on unchanged; the model reads long ones window by window."""

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, task: str | None = None, **_settings: object
    ) -> dict[str, Any]:
        """The texts, with a full stop for blank ones, and the task: ``query``, or anything else for documents."""
        return {"texts": [(prompt or "") + (text if text.strip() else ".") for text in inputs], "task": task}


class PassageVectorModule(_PassageModule):
    """One vector per text, for ``SentenceTransformer(modules=[...])``."""

    def forward(self, features: dict[str, Any], **_settings: object) -> dict[str, Any]:
        """Adds ``sentence_embedding`` ``[B, D]``, unit norm."""
        return {**features, "sentence_embedding": torch.from_numpy(self.model.embed(features["texts"]))}


class PassageFacetsModule(_PassageModule):
    """Facets of documents and queries, for ``MultiVectorEncoder(modules=[...])``.

    Query facets are scaled by their weights, so MaxSim equals the score of a facet search.
    """

    def forward(self, features: dict[str, Any], **_settings: object) -> dict[str, Any]:
        """Adds ``token_embeddings`` ``[B, K, D]`` and ``attention_mask`` ``[B, K]``, 0 for unused facets."""
        texts = features["texts"]
        if features["task"] == "query":
            queries = self.model.encode_queries(texts)
            rows = list(queries.facets * queries.weights[:, :, None])
        else:
            passages = self.model.encode_passages(texts)
            rows = [passages.document(text)[0] for text in range(len(texts))]
        facets_BKD = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)
        is_used_BK = facets_BKD.any(dim=2).to(torch.int64)
        return {**features, "token_embeddings": facets_BKD, "attention_mask": is_used_BK}


class FacetModule(_Module):
    """Token rows in, K facets as the "token" embeddings out."""

    kind = FacetModel

    def preprocess(self, inputs: Sequence[str], prompt: str | None = None, **_settings: object) -> dict[str, Tensor]:
        """``input_ids`` ``[B, L]`` int64, padded with 0, and ``lengths`` ``[B]`` of texts with the prompt."""
        rows = self.model.tokenize_nonempty([(prompt or "") + text for text in inputs])
        tensors = [torch.from_numpy(row) for row in rows]
        lengths_B = torch.tensor([len(row) for row in rows])
        return {"input_ids": torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True), "lengths": lengths_B}

    def forward(self, features: dict[str, Tensor], **_settings: object) -> dict[str, Tensor]:
        """Adds ``token_embeddings`` ``[B, K, D]`` of unit norm, and an ``attention_mask`` ``[B, K]`` of ones."""
        facets_BKD = self.network(features["input_ids"], features["lengths"])
        features["token_embeddings"] = functional.normalize(facets_BKD, dim=-1)
        features["attention_mask"] = torch.ones(facets_BKD.shape[:2], dtype=torch.int64, device=facets_BKD.device)
        return features
