"""Pure functions on facet arrays and word vectors; higher is better, the range stands in each docstring."""

from facets.scoring.averages import (
    ALPHA,
    average,
    cosine_score,
    fit_common_component,
    probability_average,
    probability_weights,
    remove_component,
    sif,
)
from facets.scoring.codebook import codebook_contributions, codebook_score
from facets.scoring.coverage import added_coverage, coverage, coverage_gain, word_coverage
from facets.scoring.curves import apply_curve
from facets.scoring.facet_match import attention, best_facet_match, closest_facet_weight, max_facet_score, unit_facets
from facets.scoring.transport import probability_wmd, wmd

__all__ = [
    "ALPHA",
    "added_coverage",
    "apply_curve",
    "attention",
    "average",
    "best_facet_match",
    "closest_facet_weight",
    "codebook_contributions",
    "codebook_score",
    "cosine_score",
    "coverage",
    "coverage_gain",
    "fit_common_component",
    "max_facet_score",
    "probability_average",
    "probability_weights",
    "probability_wmd",
    "remove_component",
    "sif",
    "unit_facets",
    "wmd",
    "word_coverage",
]
