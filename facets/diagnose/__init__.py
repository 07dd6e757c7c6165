"""What a team wants to know of its vectors: duplicates, hubs, whether facets pay, what is out of reach, a map."""

from facets.diagnose.hull import HullReport, Reach, certify
from facets.diagnose.payoff import FacetChoice, Payoff, payoff
from facets.diagnose.plane import Plane, lay_out
from facets.diagnose.vectors import Neighbours, VectorReport, describe

__all__ = [
    "FacetChoice",
    "HullReport",
    "Neighbours",
    "Payoff",
    "Plane",
    "Reach",
    "VectorReport",
    "certify",
    "describe",
    "lay_out",
    "payoff",
]
