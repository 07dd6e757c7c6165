"""Text in, plain results out: similarity, explanations, summaries."""

from facets.tasks.calibration import ScoreRange
from facets.tasks.explanation import TextExplanation, explain
from facets.tasks.interface import TextModel
from facets.tasks.similarity import PairScores, SimilarityMethod, score_pairs
from facets.tasks.summarization import Summary, summarize
from facets.tasks.text_words import fit_common_components

__all__ = [
    "PairScores",
    "ScoreRange",
    "SimilarityMethod",
    "Summary",
    "TextExplanation",
    "TextModel",
    "explain",
    "fit_common_components",
    "score_pairs",
    "summarize",
]
