"""The trained toy model of papers, as fixtures."""

from toy_paper_fixtures import engine, folder, model, passages, sentence_model, with_additions, with_sentences

__all__ = ["engine", "folder", "model", "passages", "sentence_model", "with_additions", "with_sentences"]
