"""``facets-train``: packs a corpus, makes word vectors, trains models."""

import sys
from functools import partial

from facets_lab.program import run_program

COMMANDS = {
    "pack": ("facets_lab.training.corpus:pack", "Split, tokenize and pack a corpus."),
    "words": ("facets_lab.language.word_vectors:words", "Make the word vectors of a packed corpus."),
    "sentences": ("facets_lab.texts.training:sentences", "Train a model of sentences or phrases."),
    "prepare-passages": ("facets_lab.documents.data:prepare_passages", "Prepare data for a model of passages."),
    "passages": ("facets_lab.documents.training:passages", "Distil a model of passages, or fit a head to one."),
    "prepare-reader": ("facets_lab.documents.reader_data:prepare_reader", "Prepare data for the answer reader."),
    "reader": ("facets_lab.documents.reader:reader", "Train the answer reader."),
    "relations": ("facets_lab.relations.export:relations", "Train a relation model, or mine its data."),
    "relation-facts": ("facets_lab.relations.facts:relation_facts", "Find facts in mined data."),
    "papers": ("facets_lab.papers.export:papers", "Train a model of papers."),
    "paper-sentences": ("facets_lab.papers.export:add_sentences", "Add sentence vectors to a model of papers."),
}

main = partial(run_program, "facets-train", COMMANDS, help="Train Facets models on a CPU or a GPU.")

if __name__ == "__main__":
    sys.exit(main())
