"""Measuring word vectors."""
