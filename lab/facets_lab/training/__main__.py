"""``facets-train``: pack a corpus, make word vectors, train a model, export it."""

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

from facets_lab.program import make_program, run_program
from facets_lab.training.commands.corpus import pack
from facets_lab.training.commands.papers import paper_sentences, papers, papers_card
from facets_lab.training.commands.passages import export_passages, passages, passages_card, prepare_passages
from facets_lab.training.commands.relations import export_relations, relation_facts, relations
from facets_lab.training.commands.texts import card, export, sentences
from facets_lab.training.commands.words import words

__all__ = ["COMMANDS", "main"]

# Command -> what it does. A new one is a line here.
COMMANDS: dict[str, Callable[..., Any]] = {
    "pack": pack,
    "words": words,
    "sentences": sentences,
    "export": export,
    "card": card,
    "prepare-passages": prepare_passages,
    "passages": passages,
    "export-passages": export_passages,
    "passages-card": passages_card,
    "relations": relations,
    "relation-facts": relation_facts,
    "export-relations": export_relations,
    "papers": papers,
    "paper-sentences": paper_sentences,
    "papers-card": papers_card,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code: 0, 1 after an error that was reported, 2 for wrong usage."""
    program = make_program("Train Facets models on a CPU or a GPU.", COMMANDS)
    return run_program("facets-train", program, arguments, log_level=logging.INFO)


if __name__ == "__main__":
    sys.exit(main())
