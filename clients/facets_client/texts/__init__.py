"""Embeddings, similarity, explanations and summaries."""
