"""Text in, plain results out: similarity, explanations, summaries."""

from facets.model.contract import TextModel
from facets.texts.explanation import TextExplanation, explain
from facets.texts.similarity import PairScores, SimilarityMethod, score_pairs
from facets.texts.summarization import Summary, summarize
from facets.texts.words import fit_common_components

__all__ = [
    "PairScores",
    "SimilarityMethod",
    "Summary",
    "TextExplanation",
    "TextModel",
    "explain",
    "fit_common_components",
    "score_pairs",
    "summarize",
]
