from facets_proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EntitySource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENTITY_SOURCE_UNSPECIFIED: _ClassVar[EntitySource]
    ENTITY_SOURCE_SPANS: _ClassVar[EntitySource]
    ENTITY_SOURCE_GAZETTEER: _ClassVar[EntitySource]
    ENTITY_SOURCE_NER: _ClassVar[EntitySource]

class EntityType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENTITY_TYPE_UNSPECIFIED: _ClassVar[EntityType]
    ENTITY_TYPE_PERSON: _ClassVar[EntityType]
    ENTITY_TYPE_ORGANIZATION: _ClassVar[EntityType]
    ENTITY_TYPE_PLACE: _ClassVar[EntityType]
    ENTITY_TYPE_DATE: _ClassVar[EntityType]
    ENTITY_TYPE_NUMBER: _ClassVar[EntityType]
    ENTITY_TYPE_WORK: _ClassVar[EntityType]
    ENTITY_TYPE_EVENT: _ClassVar[EntityType]
    ENTITY_TYPE_GROUP: _ClassVar[EntityType]
    ENTITY_TYPE_THING: _ClassVar[EntityType]

class AssertionStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ASSERTION_STATUS_UNSPECIFIED: _ClassVar[AssertionStatus]
    ASSERTION_STATUS_ASSERTED: _ClassVar[AssertionStatus]
    ASSERTION_STATUS_NEGATED: _ClassVar[AssertionStatus]
    ASSERTION_STATUS_QUESTIONED: _ClassVar[AssertionStatus]
    ASSERTION_STATUS_HYPOTHETICAL: _ClassVar[AssertionStatus]
    ASSERTION_STATUS_ATTRIBUTED: _ClassVar[AssertionStatus]

class EntailmentLabel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENTAILMENT_LABEL_UNSPECIFIED: _ClassVar[EntailmentLabel]
    ENTAILMENT_LABEL_ENTAILS: _ClassVar[EntailmentLabel]
    ENTAILMENT_LABEL_ENTAILED_BY: _ClassVar[EntailmentLabel]
    ENTAILMENT_LABEL_PARAPHRASE: _ClassVar[EntailmentLabel]
    ENTAILMENT_LABEL_NEUTRAL: _ClassVar[EntailmentLabel]
    ENTAILMENT_LABEL_CONTRADICTS: _ClassVar[EntailmentLabel]
ENTITY_SOURCE_UNSPECIFIED: EntitySource
ENTITY_SOURCE_SPANS: EntitySource
ENTITY_SOURCE_GAZETTEER: EntitySource
ENTITY_SOURCE_NER: EntitySource
ENTITY_TYPE_UNSPECIFIED: EntityType
ENTITY_TYPE_PERSON: EntityType
ENTITY_TYPE_ORGANIZATION: EntityType
ENTITY_TYPE_PLACE: EntityType
ENTITY_TYPE_DATE: EntityType
ENTITY_TYPE_NUMBER: EntityType
ENTITY_TYPE_WORK: EntityType
ENTITY_TYPE_EVENT: EntityType
ENTITY_TYPE_GROUP: EntityType
ENTITY_TYPE_THING: EntityType
ASSERTION_STATUS_UNSPECIFIED: AssertionStatus
ASSERTION_STATUS_ASSERTED: AssertionStatus
ASSERTION_STATUS_NEGATED: AssertionStatus
ASSERTION_STATUS_QUESTIONED: AssertionStatus
ASSERTION_STATUS_HYPOTHETICAL: AssertionStatus
ASSERTION_STATUS_ATTRIBUTED: AssertionStatus
ENTAILMENT_LABEL_UNSPECIFIED: EntailmentLabel
ENTAILMENT_LABEL_ENTAILS: EntailmentLabel
ENTAILMENT_LABEL_ENTAILED_BY: EntailmentLabel
ENTAILMENT_LABEL_PARAPHRASE: EntailmentLabel
ENTAILMENT_LABEL_NEUTRAL: EntailmentLabel
ENTAILMENT_LABEL_CONTRADICTS: EntailmentLabel

class EntitySpan(_message.Message):
    __slots__ = ("start", "end", "type")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    type: EntityType
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ..., type: _Optional[_Union[EntityType, str]] = ...) -> None: ...

class RelationText(_message.Message):
    __slots__ = ("text", "entities")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ENTITIES_FIELD_NUMBER: _ClassVar[int]
    text: str
    entities: _containers.RepeatedCompositeFieldContainer[EntitySpan]
    def __init__(self, text: _Optional[str] = ..., entities: _Optional[_Iterable[_Union[EntitySpan, _Mapping]]] = ...) -> None: ...

class EntityMention(_message.Message):
    __slots__ = ("text", "start", "end", "type")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    text: str
    start: int
    end: int
    type: EntityType
    def __init__(self, text: _Optional[str] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., type: _Optional[_Union[EntityType, str]] = ...) -> None: ...

class FacetMeeting(_message.Message):
    __slots__ = ("pattern_facet", "relation_facet", "cosine")
    PATTERN_FACET_FIELD_NUMBER: _ClassVar[int]
    RELATION_FACET_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    pattern_facet: int
    relation_facet: int
    cosine: float
    def __init__(self, pattern_facet: _Optional[int] = ..., relation_facet: _Optional[int] = ..., cosine: _Optional[float] = ...) -> None: ...

class SimilarPattern(_message.Message):
    __slots__ = ("pattern", "score")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    pattern: str
    score: float
    def __init__(self, pattern: _Optional[str] = ..., score: _Optional[float] = ...) -> None: ...

class NamedPair(_message.Message):
    __slots__ = ("head", "tail")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    head: str
    tail: str
    def __init__(self, head: _Optional[str] = ..., tail: _Optional[str] = ...) -> None: ...

class RelationScore(_message.Message):
    __slots__ = ("relation", "score", "probability", "accepted", "symmetric_score", "universal_schema_score", "meeting", "similar_patterns", "known_pairs")
    RELATION_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    SYMMETRIC_SCORE_FIELD_NUMBER: _ClassVar[int]
    UNIVERSAL_SCHEMA_SCORE_FIELD_NUMBER: _ClassVar[int]
    MEETING_FIELD_NUMBER: _ClassVar[int]
    SIMILAR_PATTERNS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_PAIRS_FIELD_NUMBER: _ClassVar[int]
    relation: str
    score: float
    probability: float
    accepted: bool
    symmetric_score: float
    universal_schema_score: float
    meeting: FacetMeeting
    similar_patterns: _containers.RepeatedCompositeFieldContainer[SimilarPattern]
    known_pairs: _containers.RepeatedCompositeFieldContainer[NamedPair]
    def __init__(self, relation: _Optional[str] = ..., score: _Optional[float] = ..., probability: _Optional[float] = ..., accepted: _Optional[bool] = ..., symmetric_score: _Optional[float] = ..., universal_schema_score: _Optional[float] = ..., meeting: _Optional[_Union[FacetMeeting, _Mapping]] = ..., similar_patterns: _Optional[_Iterable[_Union[SimilarPattern, _Mapping]]] = ..., known_pairs: _Optional[_Iterable[_Union[NamedPair, _Mapping]]] = ...) -> None: ...

class NearRelation(_message.Message):
    __slots__ = ("relation", "cosine")
    RELATION_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    relation: str
    cosine: float
    def __init__(self, relation: _Optional[str] = ..., cosine: _Optional[float] = ...) -> None: ...

class FacetRelations(_message.Message):
    __slots__ = ("facet", "relations")
    FACET_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    facet: int
    relations: _containers.RepeatedCompositeFieldContainer[NearRelation]
    def __init__(self, facet: _Optional[int] = ..., relations: _Optional[_Iterable[_Union[NearRelation, _Mapping]]] = ...) -> None: ...

class PatternScore(_message.Message):
    __slots__ = ("pattern", "relations", "no_relation_probability", "known", "facets", "assertion", "assertion_cue")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    NO_RELATION_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    FACETS_FIELD_NUMBER: _ClassVar[int]
    ASSERTION_FIELD_NUMBER: _ClassVar[int]
    ASSERTION_CUE_FIELD_NUMBER: _ClassVar[int]
    pattern: str
    relations: _containers.RepeatedCompositeFieldContainer[RelationScore]
    no_relation_probability: float
    known: bool
    facets: _containers.RepeatedCompositeFieldContainer[FacetRelations]
    assertion: AssertionStatus
    assertion_cue: str
    def __init__(self, pattern: _Optional[str] = ..., relations: _Optional[_Iterable[_Union[RelationScore, _Mapping]]] = ..., no_relation_probability: _Optional[float] = ..., known: _Optional[bool] = ..., facets: _Optional[_Iterable[_Union[FacetRelations, _Mapping]]] = ..., assertion: _Optional[_Union[AssertionStatus, str]] = ..., assertion_cue: _Optional[str] = ...) -> None: ...

class ExtractRelationsRequest(_message.Message):
    __slots__ = ("texts", "model", "entity_source", "gazetteer_names", "relations", "include_unrelated", "top_k", "evidence", "max_relations_per_pair")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ENTITY_SOURCE_FIELD_NUMBER: _ClassVar[int]
    GAZETTEER_NAMES_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_UNRELATED_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    MAX_RELATIONS_PER_PAIR_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedCompositeFieldContainer[RelationText]
    model: str
    entity_source: EntitySource
    gazetteer_names: _containers.RepeatedScalarFieldContainer[str]
    relations: _containers.RepeatedScalarFieldContainer[str]
    include_unrelated: bool
    top_k: int
    evidence: bool
    max_relations_per_pair: int
    def __init__(self, texts: _Optional[_Iterable[_Union[RelationText, _Mapping]]] = ..., model: _Optional[str] = ..., entity_source: _Optional[_Union[EntitySource, str]] = ..., gazetteer_names: _Optional[_Iterable[str]] = ..., relations: _Optional[_Iterable[str]] = ..., include_unrelated: _Optional[bool] = ..., top_k: _Optional[int] = ..., evidence: _Optional[bool] = ..., max_relations_per_pair: _Optional[int] = ...) -> None: ...

class ExtractRelationsResponse(_message.Message):
    __slots__ = ("texts", "model", "timings")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedCompositeFieldContainer[TextRelations]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, texts: _Optional[_Iterable[_Union[TextRelations, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class TextRelations(_message.Message):
    __slots__ = ("pairs", "num_pairs", "num_not_asserted", "entities")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    NUM_PAIRS_FIELD_NUMBER: _ClassVar[int]
    NUM_NOT_ASSERTED_FIELD_NUMBER: _ClassVar[int]
    ENTITIES_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[EntityPair]
    num_pairs: int
    num_not_asserted: int
    entities: _containers.RepeatedCompositeFieldContainer[EntityMention]
    def __init__(self, pairs: _Optional[_Iterable[_Union[EntityPair, _Mapping]]] = ..., num_pairs: _Optional[int] = ..., num_not_asserted: _Optional[int] = ..., entities: _Optional[_Iterable[_Union[EntityMention, _Mapping]]] = ...) -> None: ...

class EntityPair(_message.Message):
    __slots__ = ("head", "tail", "sentence_start", "sentence_end", "pattern_score")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_START_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_END_FIELD_NUMBER: _ClassVar[int]
    PATTERN_SCORE_FIELD_NUMBER: _ClassVar[int]
    head: EntityMention
    tail: EntityMention
    sentence_start: int
    sentence_end: int
    pattern_score: PatternScore
    def __init__(self, head: _Optional[_Union[EntityMention, _Mapping]] = ..., tail: _Optional[_Union[EntityMention, _Mapping]] = ..., sentence_start: _Optional[int] = ..., sentence_end: _Optional[int] = ..., pattern_score: _Optional[_Union[PatternScore, _Mapping]] = ...) -> None: ...

class Slot(_message.Message):
    __slots__ = ("head", "relation")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    RELATION_FIELD_NUMBER: _ClassVar[int]
    head: str
    relation: str
    def __init__(self, head: _Optional[str] = ..., relation: _Optional[str] = ...) -> None: ...

class FillSlotsRequest(_message.Message):
    __slots__ = ("slots", "texts", "model", "entity_source", "gazetteer_names", "top_k", "evidence")
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ENTITY_SOURCE_FIELD_NUMBER: _ClassVar[int]
    GAZETTEER_NAMES_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    slots: _containers.RepeatedCompositeFieldContainer[Slot]
    texts: _containers.RepeatedCompositeFieldContainer[RelationText]
    model: str
    entity_source: EntitySource
    gazetteer_names: _containers.RepeatedScalarFieldContainer[str]
    top_k: int
    evidence: bool
    def __init__(self, slots: _Optional[_Iterable[_Union[Slot, _Mapping]]] = ..., texts: _Optional[_Iterable[_Union[RelationText, _Mapping]]] = ..., model: _Optional[str] = ..., entity_source: _Optional[_Union[EntitySource, str]] = ..., gazetteer_names: _Optional[_Iterable[str]] = ..., top_k: _Optional[int] = ..., evidence: _Optional[bool] = ...) -> None: ...

class FillSlotsResponse(_message.Message):
    __slots__ = ("slots", "model", "timings")
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    slots: _containers.RepeatedCompositeFieldContainer[FilledSlot]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, slots: _Optional[_Iterable[_Union[FilledSlot, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class FilledSlot(_message.Message):
    __slots__ = ("tails",)
    TAILS_FIELD_NUMBER: _ClassVar[int]
    tails: _containers.RepeatedCompositeFieldContainer[RankedTail]
    def __init__(self, tails: _Optional[_Iterable[_Union[RankedTail, _Mapping]]] = ...) -> None: ...

class RankedTail(_message.Message):
    __slots__ = ("tail", "score", "probability", "accepted", "mentions")
    TAIL_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    MENTIONS_FIELD_NUMBER: _ClassVar[int]
    tail: str
    score: float
    probability: float
    accepted: bool
    mentions: _containers.RepeatedCompositeFieldContainer[TailMention]
    def __init__(self, tail: _Optional[str] = ..., score: _Optional[float] = ..., probability: _Optional[float] = ..., accepted: _Optional[bool] = ..., mentions: _Optional[_Iterable[_Union[TailMention, _Mapping]]] = ...) -> None: ...

class TailMention(_message.Message):
    __slots__ = ("text", "pair")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PAIR_FIELD_NUMBER: _ClassVar[int]
    text: int
    pair: EntityPair
    def __init__(self, text: _Optional[int] = ..., pair: _Optional[_Union[EntityPair, _Mapping]] = ...) -> None: ...

class ScoreRelationsRequest(_message.Message):
    __slots__ = ("patterns", "model", "relations", "top_k", "evidence")
    PATTERNS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    patterns: _containers.RepeatedScalarFieldContainer[str]
    model: str
    relations: _containers.RepeatedScalarFieldContainer[str]
    top_k: int
    evidence: bool
    def __init__(self, patterns: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ..., relations: _Optional[_Iterable[str]] = ..., top_k: _Optional[int] = ..., evidence: _Optional[bool] = ...) -> None: ...

class ScoreRelationsResponse(_message.Message):
    __slots__ = ("scores", "model", "timings")
    SCORES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[PatternScore]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, scores: _Optional[_Iterable[_Union[PatternScore, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class DetectEntailmentRequest(_message.Message):
    __slots__ = ("pairs", "model")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[EntailmentPair]
    model: str
    def __init__(self, pairs: _Optional[_Iterable[_Union[EntailmentPair, _Mapping]]] = ..., model: _Optional[str] = ...) -> None: ...

class EntailmentPair(_message.Message):
    __slots__ = ("premise", "hypothesis")
    PREMISE_FIELD_NUMBER: _ClassVar[int]
    HYPOTHESIS_FIELD_NUMBER: _ClassVar[int]
    premise: str
    hypothesis: str
    def __init__(self, premise: _Optional[str] = ..., hypothesis: _Optional[str] = ...) -> None: ...

class DetectEntailmentResponse(_message.Message):
    __slots__ = ("entailments", "model", "timings")
    ENTAILMENTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    entailments: _containers.RepeatedCompositeFieldContainer[Entailment]
    model: _common_pb2.ModelVersion
    timings: _common_pb2.Timings
    def __init__(self, entailments: _Optional[_Iterable[_Union[Entailment, _Mapping]]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ..., timings: _Optional[_Union[_common_pb2.Timings, _Mapping]] = ...) -> None: ...

class Entailment(_message.Message):
    __slots__ = ("premise", "hypothesis", "forward_score", "backward_score", "direction", "label", "confidence", "negation_differs", "facet_score", "reason")
    PREMISE_FIELD_NUMBER: _ClassVar[int]
    HYPOTHESIS_FIELD_NUMBER: _ClassVar[int]
    FORWARD_SCORE_FIELD_NUMBER: _ClassVar[int]
    BACKWARD_SCORE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    NEGATION_DIFFERS_FIELD_NUMBER: _ClassVar[int]
    FACET_SCORE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    premise: str
    hypothesis: str
    forward_score: float
    backward_score: float
    direction: float
    label: EntailmentLabel
    confidence: float
    negation_differs: bool
    facet_score: float
    reason: str
    def __init__(self, premise: _Optional[str] = ..., hypothesis: _Optional[str] = ..., forward_score: _Optional[float] = ..., backward_score: _Optional[float] = ..., direction: _Optional[float] = ..., label: _Optional[_Union[EntailmentLabel, str]] = ..., confidence: _Optional[float] = ..., negation_differs: _Optional[bool] = ..., facet_score: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class Relation(_message.Message):
    __slots__ = ("name", "threshold", "num_pairs", "examples", "added", "description", "example", "aliases", "inverse_aliases", "head_types", "tail_types", "symmetric")
    NAME_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    NUM_PAIRS_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    INVERSE_ALIASES_FIELD_NUMBER: _ClassVar[int]
    HEAD_TYPES_FIELD_NUMBER: _ClassVar[int]
    TAIL_TYPES_FIELD_NUMBER: _ClassVar[int]
    SYMMETRIC_FIELD_NUMBER: _ClassVar[int]
    name: str
    threshold: float
    num_pairs: int
    examples: _containers.RepeatedScalarFieldContainer[str]
    added: bool
    description: str
    example: str
    aliases: _containers.RepeatedScalarFieldContainer[str]
    inverse_aliases: _containers.RepeatedScalarFieldContainer[str]
    head_types: _containers.RepeatedScalarFieldContainer[EntityType]
    tail_types: _containers.RepeatedScalarFieldContainer[EntityType]
    symmetric: bool
    def __init__(self, name: _Optional[str] = ..., threshold: _Optional[float] = ..., num_pairs: _Optional[int] = ..., examples: _Optional[_Iterable[str]] = ..., added: _Optional[bool] = ..., description: _Optional[str] = ..., example: _Optional[str] = ..., aliases: _Optional[_Iterable[str]] = ..., inverse_aliases: _Optional[_Iterable[str]] = ..., head_types: _Optional[_Iterable[_Union[EntityType, str]]] = ..., tail_types: _Optional[_Iterable[_Union[EntityType, str]]] = ..., symmetric: _Optional[bool] = ...) -> None: ...

class ListRelationsRequest(_message.Message):
    __slots__ = ("model", "page_size", "page_token")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    model: str
    page_size: int
    page_token: str
    def __init__(self, model: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRelationsResponse(_message.Message):
    __slots__ = ("relations", "next_page_token", "model")
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    relations: _containers.RepeatedCompositeFieldContainer[Relation]
    next_page_token: str
    model: _common_pb2.ModelVersion
    def __init__(self, relations: _Optional[_Iterable[_Union[Relation, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ...) -> None: ...

class AddRelationRequest(_message.Message):
    __slots__ = ("model", "name", "examples", "threshold")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    model: str
    name: str
    examples: _containers.RepeatedScalarFieldContainer[str]
    threshold: float
    def __init__(self, model: _Optional[str] = ..., name: _Optional[str] = ..., examples: _Optional[_Iterable[str]] = ..., threshold: _Optional[float] = ...) -> None: ...

class AddRelationResponse(_message.Message):
    __slots__ = ("relation", "model")
    RELATION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    relation: Relation
    model: _common_pb2.ModelVersion
    def __init__(self, relation: _Optional[_Union[Relation, _Mapping]] = ..., model: _Optional[_Union[_common_pb2.ModelVersion, _Mapping]] = ...) -> None: ...

class DeleteRelationRequest(_message.Message):
    __slots__ = ("model", "name")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    model: str
    name: str
    def __init__(self, model: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteRelationResponse(_message.Message):
    __slots__ = ("relation",)
    RELATION_FIELD_NUMBER: _ClassVar[int]
    relation: Relation
    def __init__(self, relation: _Optional[_Union[Relation, _Mapping]] = ...) -> None: ...
