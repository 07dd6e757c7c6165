"""``facets-eval``: the published tables as commands, each prints one JSON object."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from facets_lab.evaluation.commands.documents import calibrate_search, retrieval
from facets_lab.evaluation.commands.papers import recommendation
from facets_lab.evaluation.commands.relations import entailment, fit_confidence, fit_entailment, relations
from facets_lab.evaluation.commands.texts import calibrate, phrase_choice, phrase_pairs, sts, summarization
from facets_lab.evaluation.commands.words import words
from facets_lab.program import make_program, run_program

__all__ = ["COMMANDS", "main"]

# Command -> what it does. A new one is a line here.
COMMANDS: dict[str, Callable[..., Any]] = {
    "sts": sts,
    "phrase-pairs": phrase_pairs,
    "phrase-choice": phrase_choice,
    "summarization": summarization,
    "relations": relations,
    "entailment": entailment,
    "recommendation": recommendation,
    "retrieval": retrieval,
    "words": words,
    "calibrate": calibrate,
    "calibrate-search": calibrate_search,
    "fit-confidence": fit_confidence,
    "fit-entailment": fit_entailment,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one evaluation; returns the exit code: 0, 1 after an error that was reported, 2 for wrong usage."""
    program = make_program("Measure models on the paper's tasks; one JSON object on standard output.", COMMANDS)
    return run_program("facets-eval", program, arguments)


if __name__ == "__main__":
    sys.exit(main())
