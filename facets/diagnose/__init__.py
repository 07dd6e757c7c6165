"""What a team wants to know of its vectors: duplicates, hubs, unreachable rows, a map."""

from facets.diagnose.hull import HullReport, Reach, certify
from facets.diagnose.plane import Plane, lay_out
from facets.diagnose.vectors import Neighbours, VectorReport, describe

__all__ = [
    "HullReport",
    "Neighbours",
    "Plane",
    "Reach",
    "VectorReport",
    "certify",
    "describe",
    "lay_out",
]
