"""Facets: several embeddings per text, for similarity, summaries and search."""

__version__ = "0.1.0"

__all__ = ["__version__"]
