"""Training losses, one a file: pure functions of tensors."""

from facets.losses.autoencoder import paper_autoencoder_loss, pattern_autoencoder_loss, weighted_word_sum
from facets.losses.sparse_coding import sparse_coding_loss
from facets.losses.universal_schema import bpr_loss, closest_facet_distance, universal_schema_loss

__all__ = [
    "bpr_loss",
    "closest_facet_distance",
    "paper_autoencoder_loss",
    "pattern_autoencoder_loss",
    "sparse_coding_loss",
    "universal_schema_loss",
    "weighted_word_sum",
]
