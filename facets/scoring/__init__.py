"""Scores of facets and of word vectors, as pure functions; higher is better."""

from facets.scoring.coverage import added_coverage, coverage_gain, word_coverage
from facets.scoring.facets import (
    attention,
    best_facet_match,
    closest_facet_weight,
    codebook_contributions,
    codebook_score,
    unit_facets,
)
from facets.scoring.words import (
    ALPHA,
    average,
    cosine_score,
    fit_common_component,
    probability_average,
    probability_weights,
    probability_wmd,
    remove_component,
    sif,
    wmd,
)

__all__ = [
    "ALPHA",
    "added_coverage",
    "attention",
    "average",
    "best_facet_match",
    "closest_facet_weight",
    "codebook_contributions",
    "codebook_score",
    "cosine_score",
    "coverage_gain",
    "fit_common_component",
    "probability_average",
    "probability_weights",
    "probability_wmd",
    "remove_component",
    "sif",
    "unit_facets",
    "wmd",
    "word_coverage",
]
