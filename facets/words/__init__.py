"""Static word vectors: loading, training, distilling, nearest words."""

from facets.words.load import read_word_vectors
from facets.words.vectors import WordVectors

__all__ = ["WordVectors", "read_word_vectors"]
