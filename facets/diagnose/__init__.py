"""What a team wants to know of its vectors: duplicates and hubs, whether facets pay, what no query can reach."""

from facets.diagnose.hull import HullReport, Reach, certify
from facets.diagnose.payoff import FacetChoice, Payoff, payoff
from facets.diagnose.vectors import Neighbours, VectorReport, describe

__all__ = [
    "FacetChoice",
    "HullReport",
    "Neighbours",
    "Payoff",
    "Reach",
    "VectorReport",
    "certify",
    "describe",
    "payoff",
]
