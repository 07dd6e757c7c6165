"""Training losses, one a file: pure functions of tensors."""

from facets_lab.losses.autoencoder import paper_autoencoder_loss, pattern_autoencoder_loss, weighted_word_sum
from facets_lab.losses.sparse_coding import sparse_coding_loss

__all__ = [
    "paper_autoencoder_loss",
    "pattern_autoencoder_loss",
    "sparse_coding_loss",
    "weighted_word_sum",
]
