"""``facets-train``: packs a corpus, makes word vectors, trains models."""

import sys
from functools import partial

from facets_lab.program import run_program

COMMANDS = {
    "pack": ("training.corpus:pack", "Split, tokenize and pack a corpus."),
    "words": ("language.word_vectors:words", "Make the word vectors of a packed corpus."),
    "sentences": ("texts.training:sentences", "Train a model of sentences."),
    "prepare-passages": ("documents.data:prepare_passages", "Prepare data for a model of passages."),
    "passages": ("documents.training:passages", "Distil a model of passages."),
    "prepare-reader": ("documents.reader_data:prepare_reader", "Prepare data for the answer reader."),
    "reader": ("documents.reader:reader", "Train the answer reader."),
    "pairs": ("texts.inference:pairs", "Train the pair reader."),
    "relations": ("relations.training:relations", "Train a relation model, or mine its data."),
    "relation-facts": ("relations.facts:relation_facts", "Find facts in mined data."),
    "papers": ("papers.training:papers", "Train a model of papers."),
    "paper-sentences": ("papers.training:add_sentences", "Add sentence vectors to a model of papers."),
}

main = partial(run_program, "facets-train", COMMANDS, help="Train Facets models on a CPU or a GPU.")

if __name__ == "__main__":
    sys.exit(main())
