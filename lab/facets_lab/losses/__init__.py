"""Training losses of all tasks: pure functions of tensors."""

from facets_lab.losses.papers import best_products, paper_autoencoder_loss, softmax_loss, squared_loss
from facets_lab.losses.passages import distillation_loss, facet_losses, soft_maximum
from facets_lab.losses.relations import (
    closest_facet_distance,
    direction_loss,
    no_relation_loss,
    ranking_loss,
    universal_schema_loss,
)
from facets_lab.losses.texts import nnsc_loss

__all__ = [
    "best_products",
    "closest_facet_distance",
    "direction_loss",
    "distillation_loss",
    "facet_losses",
    "nnsc_loss",
    "no_relation_loss",
    "paper_autoencoder_loss",
    "ranking_loss",
    "soft_maximum",
    "softmax_loss",
    "squared_loss",
    "universal_schema_loss",
]
