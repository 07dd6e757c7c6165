"""Recommendations of authors and citing papers."""
