"""Relations: patterns, the relations they express, and which pattern entails which (Chang 2022, section 3.3)."""

from facets.relations.engine import RelationEngine
from facets.relations.entailment import EntailmentLabel, EntailmentResult
from facets.relations.entities import EntitySpan, EntityType, Gazetteer
from facets.relations.patterns import PatternLimits
from facets.relations.recognizer import SpacyEntities
from facets.relations.results import PairRelations, PatternScores, RankedTail, RelationInfo

__all__ = [
    "EntailmentLabel",
    "EntailmentResult",
    "EntitySpan",
    "EntityType",
    "Gazetteer",
    "PairRelations",
    "PatternLimits",
    "PatternScores",
    "RankedTail",
    "RelationEngine",
    "RelationInfo",
    "SpacyEntities",
]
