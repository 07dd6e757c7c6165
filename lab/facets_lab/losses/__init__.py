"""Training losses of all tasks: pure functions of tensors."""

from facets_lab.losses.papers import best_products, paper_autoencoder_loss, softmax_loss, squared_loss
from facets_lab.losses.passages import distillation_loss, facet_losses, soft_maximum
from facets_lab.losses.relations import (
    closest_facet_distance,
    direction_loss,
    no_relation_loss,
    ranking_loss,
    reference_closest_facet_distance,
    universal_schema_loss,
)
from facets_lab.losses.texts import sparse_coding_loss

__all__ = [
    "best_products",
    "closest_facet_distance",
    "direction_loss",
    "distillation_loss",
    "facet_losses",
    "no_relation_loss",
    "paper_autoencoder_loss",
    "ranking_loss",
    "reference_closest_facet_distance",
    "soft_maximum",
    "softmax_loss",
    "sparse_coding_loss",
    "squared_loss",
    "universal_schema_loss",
]
