"""What a team wants to know of its vectors: duplicates, hubs, a map."""

from facets.diagnose.plane import Plane, lay_out
from facets.diagnose.vectors import Neighbours, VectorReport, describe

__all__ = [
    "Neighbours",
    "Plane",
    "VectorReport",
    "describe",
    "lay_out",
]
