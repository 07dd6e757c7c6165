"""Evaluation on data of papers."""
