"""Relations: patterns, the relations they express, and which pattern entails which (Chang 2022, section 3.3)."""

from facets.relations.engine import RelationEngine
from facets.relations.entailment import Entailment, EntailmentLabel
from facets.relations.entities import EntitySpan, EntityType, Gazetteer
from facets.relations.results import EntityPair, PatternScore, RankedTail, Relation

__all__ = [
    "Entailment",
    "EntailmentLabel",
    "EntityPair",
    "EntitySpan",
    "EntityType",
    "Gazetteer",
    "PatternScore",
    "RankedTail",
    "Relation",
    "RelationEngine",
]
