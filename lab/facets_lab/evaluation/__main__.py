"""``facets-eval``: the published tables and the calibration of shipped models; each command prints one JSON object."""

import logging
import sys
from functools import partial

from facets_lab.program import run_program

COMMANDS = {
    "sts": ("texts.pairs:evaluate_sts", "Sentence similarity."),
    "phrase-pairs": ("texts.pairs:evaluate_phrase_pairs", "Similar phrases and words."),
    "phrase-choice": ("texts.pairs:evaluate_phrase_choice", "The word that means the same as a phrase."),
    "summarization": ("texts.summaries:evaluate_summarization", "Extractive summaries."),
    "entailment": ("relations.entailment:evaluate_entailment", "Entailment of patterns."),
    "relations": ("relations.evaluation:evaluate_relations", "Relations of entity pairs."),
    "recommendation": ("papers.evaluation:evaluate_recommendation", "Authors and citations of papers."),
    "reviewers": ("papers.evaluation:evaluate_reviewers", "Reviewers added by their papers."),
    "retrieval": ("documents.retrieval:evaluate_retrieval", "Search."),
    "calibrate-similarity": ("texts.pairs:calibrate_similarity", "Fit what similarity scores mean."),
    "calibrate-relations": ("relations.evaluation:calibrate_relations", "Fit the probabilities of relations."),
    "calibrate-search": ("documents.calibration:calibrate_search", "Fit the probability that a hit is relevant."),
    "calibrate-reader": ("documents.calibration:calibrate_reader", "Fit the confidence of hits that were read."),
}

main = partial(
    run_program,
    "facets-eval",
    COMMANDS,
    help="Measure models on the paper's tasks; prints one JSON object.",
    log_level=logging.WARNING,
)

if __name__ == "__main__":
    sys.exit(main())
