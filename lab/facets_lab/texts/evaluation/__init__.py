"""Evaluation on data of texts."""
