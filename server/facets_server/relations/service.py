"""RelationService: relations between entities, and which sentence pattern entails which."""

from collections.abc import Iterator

from facets_proto.codec import message_of
from facets_proto.v1 import relations_pb2 as pb
from facets_proto.v1 import relations_pb2_grpc

from facets_server.relations.entities import EntityFinders
from facets_server.relations.replies import extractions_to_message, pattern_scores_to_message
from facets_server.relations.requests import (
    ExtractionQuery,
    adding_of,
    entailment_of,
    extraction_of,
    patterns_of,
    slots_of,
)
from facets_server.relations.served import ReadText, RelationModels, ServedRelations
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.limits import LimitsConfig, page_of


class RelationService(relations_pb2_grpc.RelationServiceServicer):
    """Finds relations, fills slots, scores patterns, keeps relations that are added."""

    def __init__(self, models: RelationModels, finders: EntityFinders, limits: LimitsConfig) -> None:
        self._models = models
        self._finders = finders
        self._limits = limits

    def ExtractRelations(self, request: pb.ExtractRelationsRequest, call: CallContext) -> pb.ExtractRelationsResponse:
        """Relations between the entities of a batch of texts."""
        served = self._models.get(request.model)
        query = extraction_of(request, self._finders, self._limits)
        call.num_items = len(query.texts)
        return extractions_to_message(
            _extract(query, served, call), query, served.info, call, max_scores=self._limits.max_relation_scores
        )

    def FillSlots(self, request: pb.FillSlotsRequest, call: CallContext) -> pb.FillSlotsResponse:
        """Ranked tails for heads and relations."""
        served = self._models.get(request.model)
        query = slots_of(request, self._finders, self._limits)
        call.num_items = len(query.slots)
        filled = served.fill_slots(
            query.slots, query.texts, query.entities, call, limits=query.pair_limits, evidence=query.evidence
        )
        slots = [tails[: query.top_k] for tails in filled]
        return message_of(pb.FillSlotsResponse, slots=slots, model=served.info, timings=call)

    def ScoreRelations(self, request: pb.ScoreRelationsRequest, call: CallContext) -> pb.ScoreRelationsResponse:
        """Relations of a batch of patterns."""
        served = self._models.get(request.model)
        query = patterns_of(request, self._limits)
        call.num_items = len(query.patterns)
        scores = served.score(
            query.patterns, call, relations=query.relations or None, top_k=query.top_k, evidence=query.evidence
        )
        return pattern_scores_to_message(scores, served.info, call)

    def DetectEntailment(self, request: pb.DetectEntailmentRequest, call: CallContext) -> pb.DetectEntailmentResponse:
        """Both directions of a batch of pairs of patterns."""
        served = self._models.get(request.model)
        premises, hypotheses = entailment_of(request, self._limits)
        call.num_items = len(premises)
        entailments = served.entailment(premises, hypotheses, call)
        return message_of(pb.DetectEntailmentResponse, entailments=entailments, model=served.info, timings=call)

    def ListRelations(self, request: pb.ListRelationsRequest, call: CallContext) -> pb.ListRelationsResponse:
        """The relations a model knows, by name."""
        served = self._models.get(request.model)
        page = page_of(
            served.relations(), size=request.page_size, token=request.page_token, limit=self._limits.max_page_size
        )
        return message_of(
            pb.ListRelationsResponse, relations=page.items, next_page_token=page.next_token, model=served.info
        )

    def AddRelation(self, request: pb.AddRelationRequest, call: CallContext) -> pb.AddRelationResponse:
        """Adds a relation by example patterns."""
        served = self._models.get(request.model)
        name, examples, threshold = adding_of(request, self._limits)
        call.num_items = len(examples)
        info = served.add_relation(name, examples, threshold, call)
        return message_of(pb.AddRelationResponse, relation=info, model=served.info)

    def DeleteRelation(self, request: pb.DeleteRelationRequest, call: CallContext) -> pb.DeleteRelationResponse:
        """Takes an added relation away."""
        info = self._models.get(request.model).delete_relation(request.name, call)
        return message_of(pb.DeleteRelationResponse, relation=info)


def _extract(query: ExtractionQuery, served: ServedRelations, call: CallContext) -> Iterator[ReadText]:
    return served.extract(
        query.texts,
        query.entities,
        call,
        relations=query.relations or None,
        limits=query.pair_limits,
        max_relations_per_pair=query.max_relations_per_pair,
        top_k=query.top_k or query.max_relations_per_pair,
        evidence=query.evidence,
    )
