"""Evaluation on data of relations."""
