"""Plain results of the relation task: what was found, where, how sure, and why."""

from dataclasses import dataclass, replace

from facets.relations.assertion import AssertionStatus
from facets.relations.entities import EntityType
from facets.relations.tables import RelationDetails


@dataclass(frozen=True, slots=True)
class EntityMention:
    """An entity where it stands in a text: ``text == source[start:end]``; offsets count characters."""

    text: str
    start: int
    end: int
    type: EntityType = EntityType.UNKNOWN


@dataclass(frozen=True, slots=True)
class FacetMeeting:
    """The closest pair of a pattern's and a relation's facets."""

    pattern_facet: int  # in `[0, K)`
    relation_facet: int  # in `[0, K_rel)`
    cosine: float  # in `[-1, 1]`


@dataclass(frozen=True, slots=True)
class NearRelation:
    """A relation near one facet of a pattern; ``cosine`` in ``[-1, 1]`` is the one of its closest facet."""

    relation: str
    cosine: float


@dataclass(frozen=True, slots=True)
class FacetRelations:
    """One facet of a pattern, in ``[0, K)``, and the relations near it, nearest first."""

    facet: int
    relations: tuple[NearRelation, ...]


@dataclass(frozen=True, slots=True)
class SimilarPattern:
    """A pattern of the training data that expresses a relation."""

    pattern: str  # its tokens, separated by one blank
    score: float  # how alike its facets and those of the pattern in question are (eq. 3.11), in `[-1, 1]`.


@dataclass(frozen=True, slots=True)
class RelationScore:
    """How well a relation fits a pattern."""

    relation: str  # its name
    # What ranks, in `[-1, 1]`: the facets' score (symmetric or asymmetric, as `Confidence` says), or the look-up's,
    # moved to the same scale, where that is higher; -1 when not asserted.
    score: float
    probability: float  # fitted on development data, in `[0, 1]`; 0 when not asserted
    accepted: bool  # `score` reaches the relation's threshold, and between these two entities nothing fits better
    symmetric_score: float  # eq. 3.11 of the pattern's and the relation's facets, in `[-1, 1]`.
    # The look-up's cosine, in `[-1, 1]`; None where pattern or relation was not seen.
    universal_schema_score: float | None
    meeting: FacetMeeting | None  # which facet met which; None without evidence
    # Nearest patterns of the training data that express the relation, closest first; only with evidence, and for the
    # first and the accepted relations.
    similar_patterns: tuple[SimilarPattern, ...] = ()
    # Well-known heads and tails of the relation; only where there are similar patterns.
    known_pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PatternScore:
    """All asked-for relations of one pattern."""

    pattern: str  # normalised: tokens separated by one blank
    relations: tuple[RelationScore, ...]  # accepted ones first, then highest probability first, ties by name
    no_relation_probability: float  # that none of the asked-for relations holds, in `[0, 1]`
    known: bool  # the look-up table of the universal schema holds the pattern
    # Every facet of the pattern with the relations near it; empty when no evidence was asked for.
    facets: tuple[FacetRelations, ...] = ()
    # Whether the sentence asserts what the pattern says; without it nothing is accepted.
    assertion: AssertionStatus = AssertionStatus.ASSERTED
    assertion_cue: str = ""  # the word that says so; empty when asserted

    @property
    def best(self) -> RelationScore | None:
        """The most probable accepted relation; None is the answer "no relation"."""
        return next((score for score in self.relations if score.accepted), None)

    def merged(self, other: "PatternScore", *, top_k: int | None) -> "PatternScore":
        """With the relations of another result for the same pattern."""
        scores = (*self.relations, *other.relations)
        scores = tuple(sorted(scores, key=lambda s: (not s.accepted, -s.probability, s.relation)))[:top_k]
        sure = min(self.no_relation_probability, other.no_relation_probability)
        return replace(self, relations=scores, no_relation_probability=sure)


@dataclass(frozen=True, slots=True)
class ExtractedRelation:
    """One accepted relation between two mentions: ``relation(head, tail)``."""

    head: EntityMention
    tail: EntityMention
    score: RelationScore


@dataclass(frozen=True, slots=True)
class EntityPair:
    """An ordered pair of mentions of one sentence and what its pattern says."""

    text_position: int  # which of the given texts
    head: EntityMention  # `$ARG1`
    tail: EntityMention  # `$ARG2`
    sentence_start: int  # character offset of the sentence in the text
    sentence_end: int  # offset after its last character
    pattern_score: PatternScore  # scores of the pattern; `best` of them is None for "no relation"

    @property
    def relations(self) -> tuple[ExtractedRelation, ...]:
        """The accepted relations, most probable first; empty is "no relation"."""
        return tuple(ExtractedRelation(self.head, self.tail, s) for s in self.pattern_score.relations if s.accepted)


@dataclass(frozen=True, slots=True)
class TailMention:
    """A pair that names a tail, and which of the given texts it stands in."""

    text: int
    pair: EntityPair


@dataclass(frozen=True, slots=True)
class RankedTail:
    """An answer of slot filling."""

    tail: str  # the answer as it stands in the best of its mentions
    score: float  # of the best mention, in `[-1, 1]`
    probability: float  # of the best mention, in `[0, 1]`
    accepted: bool  # the best mention reaches the relation's threshold
    mentions: tuple[TailMention, ...]  # every pair that supports it, best first


@dataclass(frozen=True, kw_only=True, slots=True)
class Relation(RelationDetails):
    """One relation that is known, with what it means."""

    name: str  # as `score` takes it
    threshold: float  # scores from here on are accepted, in `[-1, 1]`
    num_pairs: int = 0  # entity pairs it was trained on; 0 for one added at run time
    examples: tuple[str, ...] = ()  # patterns it was added by; empty for a trained one

    @property
    def added(self) -> bool:
        """Whether it was added at run time."""
        return bool(self.examples)
