"""``facets-eval``: the published tables and the calibration of shipped models; each command prints one JSON object."""

import logging
import sys
from functools import partial

from facets_lab.program import run_program

COMMANDS = {
    "sts": ("facets_lab.texts.pairs:evaluate_sts", "Sentence similarity."),
    "opposed-pairs": ("facets_lab.texts.pairs:evaluate_opposed_pairs", "Paraphrases above contradictions."),
    "phrase-pairs": ("facets_lab.texts.pairs:evaluate_phrase_pairs", "Similar phrases and words."),
    "phrase-choice": ("facets_lab.texts.pairs:evaluate_phrase_choice", "The word that means the same as a phrase."),
    "summarization": ("facets_lab.texts.summaries:evaluate_summarization", "Extractive summaries."),
    "entailment": ("facets_lab.relations.entailment:evaluate_entailment", "Entailment of patterns."),
    "relations": ("facets_lab.relations.evaluation:evaluate_relations", "Relations of entity pairs."),
    "recommendation": ("facets_lab.papers.evaluation:evaluate_recommendation", "Authors and citations of papers."),
    "reviewers": ("facets_lab.papers.reviewers:evaluate_reviewers", "Reviewers added by their papers."),
    "retrieval": ("facets_lab.documents.retrieval:evaluate_retrieval", "Search."),
    "calibrate-similarity": ("facets_lab.texts.calibration:calibrate_similarity", "Fit what similarity scores mean."),
    "calibrate-relations": (
        "facets_lab.relations.calibration:calibrate_relations",
        "Fit threshold and probabilities of relations.",
    ),
    "calibrate-search": (
        "facets_lab.documents.calibration:calibrate_search",
        "Fit the probability that a hit is relevant.",
    ),
    "calibrate-reader": (
        "facets_lab.documents.reader_calibration:calibrate_reader",
        "Fit the confidence of hits that the answer reader has read.",
    ),
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
