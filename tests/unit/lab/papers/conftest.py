"""The trained toy model of papers, as fixtures."""

from toy_paper_fixtures import folder, with_additions, with_sentences

__all__ = ["folder", "with_additions", "with_sentences"]
