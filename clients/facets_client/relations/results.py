"""What the calls about relations take and return: plain frozen dataclasses, never protobuf.

A sentence pattern is what stands between two entities of a sentence, as tokens separated by blanks, with ``$ARG1`` for
the head and ``$ARG2`` for the tail. Offsets count characters, as Python does.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class PairLimits:
    """Which pairs of entities of one sentence are looked at; None: the server's choice."""

    max_tokens_between: int | None = None
    max_entities_between: int | None = None
    max_pairs: int | None = None  # of one sentence, the closest first


@dataclass(frozen=True, slots=True)
class EntityMention:
    """An entity where it stands in a text: ``text == source[start:end]``; ``type`` is empty where it is not known."""

    text: str
    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class FacetMeeting:
    """The closest pair of a pattern's and a relation's facets."""

    pattern_facet: int
    relation_facet: int
    cosine: float  # in [-1, 1]


@dataclass(frozen=True, slots=True)
class SimilarPattern:
    """A pattern of the training data that expresses a relation."""

    pattern: str
    score: float  # in [-1, 1]


@dataclass(frozen=True, slots=True)
class RelationScore:
    """How well a relation fits a pattern.

    Attributes:
        relation: Its name.
        score: What ranks, in [-1, 1]; -1 when the sentence does not assert it.
        probability: Confidence that the relation holds, in [0, 1]; 0 when the sentence does not assert it.
        accepted: The score reaches the relation's threshold, and between the two entities nothing fits better.
        symmetric_score: How alike the facets are, in [-1, 1].
        universal_schema_score: Of the look-up table, in [-1, 1]; None when pattern or relation was not seen.
        meeting: Which facet met which; only with evidence.
        similar_patterns: Nearest patterns of the training data that express it; only with evidence, for the first and
            accepted relations.
        known_pairs: Well-known heads and tails of the relation; where there are similar patterns.
    """

    relation: str
    score: float
    probability: float
    accepted: bool
    symmetric_score: float
    universal_schema_score: float | None
    meeting: FacetMeeting | None
    similar_patterns: tuple[SimilarPattern, ...]
    known_pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NearRelation:
    """A relation near a facet."""

    relation: str
    cosine: float  # in [-1, 1]


@dataclass(frozen=True, slots=True)
class FacetRelations:
    """One facet of a pattern and the relations near it, closest first."""

    facet: int
    relations: tuple[NearRelation, ...]


@dataclass(frozen=True, slots=True)
class PatternScore:
    """What a sentence pattern says.

    Attributes:
        pattern: As the model reads it.
        relations: Accepted ones first, then highest probability first.
        no_relation_probability: Confidence that none of the candidates holds, in [0, 1].
        assertion: ``asserted``, ``negated``, ``questioned``, ``hypothetical`` or ``attributed``.
        assertion_cue: The word that tells so; empty when asserted.
        known: The pattern stands in the model's look-up table.
        facets: The relations near each facet; only with evidence.
    """

    pattern: str
    relations: tuple[RelationScore, ...]
    no_relation_probability: float
    assertion: str
    assertion_cue: str
    known: bool
    facets: tuple[FacetRelations, ...]

    @property
    def best(self) -> RelationScore | None:
        """The most probable accepted relation; None is the answer "no relation"."""
        return next((score for score in self.relations if score.accepted), None)


@dataclass(frozen=True, slots=True)
class EntityPair:
    """An ordered pair of entities of one sentence: ``relation(head, tail)``.

    Attributes:
        head: In place of ``$ARG1``.
        tail: In place of ``$ARG2``.
        sentence_start: First character of the sentence.
        sentence_end: One past its last character.
        pattern_score: What the pattern between them says.
    """

    head: EntityMention
    tail: EntityMention
    sentence_start: int
    sentence_end: int
    pattern_score: PatternScore

    @property
    def relations(self) -> tuple[RelationScore, ...]:
        """The accepted relations, most probable first; empty is "no relation"."""
        return tuple(score for score in self.pattern_score.relations if score.accepted)


@dataclass(frozen=True, slots=True)
class TextRelations:
    """What one text says.

    Attributes:
        pairs: Pairs of entities in the order of the text.
        num_pairs: Ordered pairs that were looked at.
        num_not_asserted: How many of these the text does not assert: questions, negations, what others say ...
        entities: The entities in the order of the text, given or found.
    """

    pairs: tuple[EntityPair, ...]
    num_pairs: int
    num_not_asserted: int
    entities: tuple[EntityMention, ...]


@dataclass(frozen=True, slots=True)
class TailMention:
    """A pair of entities that names a tail, and in which of the texts."""

    text: int
    pair: EntityPair


@dataclass(frozen=True, slots=True)
class RankedTail:
    """An answer of slot filling.

    Attributes:
        tail: As it stands in the best of its mentions.
        score: Of the best mention, in [-1, 1].
        probability: Confidence of the best mention, in [0, 1].
        accepted: The best mention reaches the relation's threshold.
        mentions: Every pair that names the tail, best first.
    """

    tail: str
    score: float
    probability: float
    accepted: bool
    mentions: tuple[TailMention, ...]


@dataclass(frozen=True, slots=True)
class Entailment:
    """Both directions of a pair of patterns.

    Attributes:
        premise: As the model reads it.
        hypothesis: As the model reads it.
        forward_score: How well the hypothesis follows from the premise, in [-1, 1].
        backward_score: How well the premise follows from the hypothesis, in [-1, 1].
        direction: Probability of ``entails`` less that of ``entailed_by``, in [-1, 1]; above 0 the premise is the
            more specific pattern.
        label: ``entails``, ``entailed_by``, ``paraphrase`` or ``neutral``.
        confidence: Probability of the label, in [0, 1].
        negation_differs: One side is negated and the other is not; the label is then ``neutral``.
    """

    premise: str
    hypothesis: str
    forward_score: float
    backward_score: float
    direction: float
    label: str
    confidence: float
    negation_differs: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation a model knows; of an added one only the first five are given."""

    name: str
    threshold: float  # scores from here on are accepted, in [-1, 1]
    num_pairs: int  # entity pairs it was trained on; 0 for an added one
    examples: tuple[str, ...]  # patterns it was added by; empty for a trained one
    added: bool
    description: str
    example: str  # a sentence, its head in [..], its tail in {..}
    aliases: tuple[str, ...]
    inverse_aliases: tuple[str, ...]  # with head and tail exchanged
    head_types: tuple[str, ...]  # empty: anything
    tail_types: tuple[str, ...]
    symmetric: bool
