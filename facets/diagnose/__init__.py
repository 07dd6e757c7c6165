"""Diagnosis of vectors: duplicates, hubs, and a two-dimensional layout."""

from facets.diagnose.plane import Plane, lay_out
from facets.diagnose.vectors import Neighbours, VectorReport, describe

__all__ = ["Neighbours", "Plane", "VectorReport", "describe", "lay_out"]
