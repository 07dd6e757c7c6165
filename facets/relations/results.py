"""Results of the relation task: what was found, where, how likely it is, and why."""

from dataclasses import dataclass, replace

from facets.relations.assertion import AssertionStatus
from facets.relations.entities import EntityType
from facets.relations.tables import RelationDetails


@dataclass(frozen=True, slots=True)
class EntityMention:
    """An entity in a text: ``text == source[start:end]``; offsets count characters."""

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
    """A relation near one facet of a pattern."""

    relation: str
    cosine: float  # cosine with the relation's closest facet, in `[-1, 1]`


@dataclass(frozen=True, slots=True)
class FacetRelations:
    """One facet of a pattern and the relations near it."""

    facet: int  # in `[0, K)`
    relations: tuple[NearRelation, ...]  # nearest first


@dataclass(frozen=True, slots=True)
class SimilarPattern:
    """A pattern of the training data that expresses a relation."""

    pattern: str  # tokens separated by blanks
    score: float  # similarity of its facets to those of the scored pattern (eq. 3.11), in `[-1, 1]`


@dataclass(frozen=True, slots=True)
class RelationScore:
    """How well a relation fits a pattern."""

    relation: str  # name of the relation
    # Ranks the relations, in `[-1, 1]`: the higher of the facet score (symmetric or asymmetric, see `Confidence`) and
    # the look-up score on the same scale; -1 when not asserted.
    score: float
    probability: float  # fitted on development data, in `[0, 1]`; 0 when not asserted
    accepted: bool  # the score reaches the relation's threshold, and no other relation of the two entities fits better
    symmetric_score: float  # eq. 3.11 of the pattern's and the relation's facets, in `[-1, 1]`
    universal_schema_score: float | None  # cosine of the look-up, in `[-1, 1]`; None: pattern or relation not seen
    meeting: FacetMeeting | None  # which facets are closest; None without evidence
    # Nearest training patterns, closest first; only with evidence, and only for the first and accepted relations.
    similar_patterns: tuple[SimilarPattern, ...] = ()
    known_pairs: tuple[tuple[str, str], ...] = ()  # well-known heads and tails; set only with similar patterns


@dataclass(frozen=True, slots=True)
class PatternScore:
    """All requested relations of one pattern."""

    pattern: str  # normalised: tokens separated by blanks
    relations: tuple[RelationScore, ...]  # accepted ones first, then by probability, ties by name
    no_relation_probability: float  # probability that none of the requested relations holds, in `[0, 1]`
    known: bool  # the look-up table of the universal schema holds the pattern
    facets: tuple[FacetRelations, ...] = ()  # each facet with the relations near it; only with evidence
    assertion: AssertionStatus = AssertionStatus.ASSERTED  # relations are accepted only if the sentence asserts them
    assertion_cue: str = ""  # the word that decides the status; empty when asserted

    @property
    def best(self) -> RelationScore | None:
        """The most probable accepted relation; None: no relation."""
        return next((score for score in self.relations if score.accepted), None)

    def merged(self, other: "PatternScore", *, top_k: int | None) -> "PatternScore":
        """A copy that includes the relations of another result for the same pattern."""
        scores = (*self.relations, *other.relations)
        scores = tuple(sorted(scores, key=lambda s: (not s.accepted, -s.probability, s.relation)))[:top_k]
        no_relation = min(self.no_relation_probability, other.no_relation_probability)
        return replace(self, relations=scores, no_relation_probability=no_relation)


@dataclass(frozen=True, slots=True)
class ExtractedRelation:
    """An accepted relation between two mentions: ``relation(head, tail)``."""

    head: EntityMention
    tail: EntityMention
    score: RelationScore


@dataclass(frozen=True, slots=True)
class EntityPair:
    """An ordered pair of mentions in one sentence, and the scores of its pattern."""

    text_position: int  # index of the text
    head: EntityMention  # `$ARG1`
    tail: EntityMention  # `$ARG2`
    sentence_start: int  # offset of the sentence in the text
    sentence_end: int  # offset after its last character
    pattern_score: PatternScore

    @property
    def relations(self) -> tuple[ExtractedRelation, ...]:
        """The accepted relations, most probable first."""
        return tuple(ExtractedRelation(self.head, self.tail, s) for s in self.pattern_score.relations if s.accepted)


@dataclass(frozen=True, slots=True)
class TailMention:
    """A mention pair that supports a tail."""

    text: int  # index of the text
    pair: EntityPair


@dataclass(frozen=True, slots=True)
class RankedTail:
    """An answer of slot filling."""

    tail: str  # the answer, as written in its best mention
    score: float  # score of the best mention, in `[-1, 1]`
    probability: float  # probability of the best mention, in `[0, 1]`
    accepted: bool  # the best mention reaches the relation's threshold
    mentions: tuple[TailMention, ...]  # supporting pairs, best first


@dataclass(frozen=True, kw_only=True, slots=True)
class Relation(RelationDetails):
    """A known relation and what it means."""

    name: str
    threshold: float  # lowest accepted score, in `[-1, 1]`
    num_pairs: int = 0  # number of entity pairs it was trained on; 0 for an added relation
    examples: tuple[str, ...] = ()  # patterns it was added from; empty for a trained relation

    @property
    def added(self) -> bool:
        """Whether the relation was added at run time."""
        return bool(self.examples)
