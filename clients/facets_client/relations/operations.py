"""What the clients do with relations between entities (see ``core/operations.py``)."""

from collections.abc import Sequence
from dataclasses import asdict

from facets_proto.codec import from_message
from facets_proto.v1 import relations_pb2 as pb

from facets_client.core.commands import Operation, call, call_pages
from facets_client.core.operations import RoomOperations, least, text_bytes
from facets_client.core.types import Limits
from facets_client.core.values import enum_name, finite_double, unsigned
from facets_client.relations.types import (
    Entailment,
    EntitySource,
    EntityType,
    PairLimits,
    PatternScore,
    RankedTail,
    Relation,
    TextRelations,
)

Spans = Sequence[Sequence[tuple[int, int] | tuple[int, int, EntityType]]]

_DEFAULT_TOP_K = 10  # of the server, when it is asked for all relations and no number


class RelationOperations(RoomOperations):
    """RelationService."""

    def extract_relations(
        self,
        texts: Sequence[str],
        *,
        spans: Spans | None = None,
        entity_source: EntitySource = "any",
        gazetteer: Sequence[str] = (),
        relations: Sequence[str] = (),
        pair_limits: PairLimits | None = None,
        include_unrelated: bool = False,
        max_relations_per_pair: int | None = None,
        top_k: int | None = None,
        evidence: bool = False,
        model: str = "",
    ) -> Operation[list[TextRelations]]:
        """What texts assert of each two entities of a sentence: one relation in one direction at most, unless asked.

        Args:
            texts: At least one.
            spans: Entities of each text as ``(start, end)`` in characters, or with a type, ``(0, 11, "person")``; None:
                found by the server.
            entity_source: Where entities come from; ``any``: spans, else the gazetteer, else what the server has.
            gazetteer: Names of entities to find.
            relations: Candidates by name or alias; empty: every relation.
            pair_limits: Which pairs are looked at.
            include_unrelated: Also return pairs without an accepted relation.
            max_relations_per_pair: Accepted relations of two entities at most, both directions together; None: 1.
            top_k: Return this many relations of each pair, accepted or not; None: the accepted ones.
            evidence: Say which facet met which, the relations near each facet, and the nearest training patterns.
            model: Name; empty: the server's default for relations.
        """
        messages = _from_texts(texts, spans)
        wanted = pb.ExtractRelationsRequest(
            model=model,
            entity_source=enum_name("ENTITY_SOURCE", entity_source, EntitySource, name="entity_source"),
            gazetteer_names=gazetteer,
            relations=relations,
            pair_limits=_from_limits(pair_limits),
            include_unrelated=include_unrelated,
            max_relations_per_pair=unsigned(max_relations_per_pair, "max_relations_per_pair"),
            top_k=unsigned(top_k, "top_k"),
            evidence=evidence,
        )

        def request(part: slice) -> pb.ExtractRelationsRequest:
            made = pb.ExtractRelationsRequest(texts=messages[part])
            made.MergeFrom(wanted)
            return made

        parts = yield from self._requests.call_parts(
            "texts",
            [message.ByteSize() for message in messages],
            request,
            pb.ExtractRelationsResponse,
            max_items=lambda limits: limits.max_texts_per_request,
            model=model,
            repeated_bytes=wanted.ByteSize(),
        )
        return [from_message(text, TextRelations) for part in parts for text in part.texts]

    def fill_slots(
        self,
        slots: Sequence[tuple[str, str]],
        texts: Sequence[str],
        *,
        spans: Spans | None = None,
        entity_source: EntitySource = "any",
        gazetteer: Sequence[str] = (),
        pair_limits: PairLimits | None = None,
        top_k: int | None = None,
        evidence: bool = False,
        model: str = "",
    ) -> Operation[list[tuple[RankedTail, ...]]]:
        """Tail entities for heads and relations, best first.

        Args:
            slots: ``(head, relation)`` of each; each is filled from all texts.
            texts: At least one and at most what one request takes: tails are ranked over all of them.
            spans: Entities of each text as ``(start, end)`` in characters; None: found by the server.
            entity_source: As in ``extract_relations``; heads are found besides.
            gazetteer: Names of entities to find.
            pair_limits: Which pairs are looked at.
            top_k: Most tails of a slot; None: the server's choice.
            evidence: Say which facet met which.
            model: Name; empty: the server's default for relations.
        """
        wanted = pb.FillSlotsRequest(
            texts=_from_texts(texts, spans),
            model=model,
            entity_source=enum_name("ENTITY_SOURCE", entity_source, EntitySource, name="entity_source"),
            gazetteer_names=gazetteer,
            pair_limits=_from_limits(pair_limits),
            top_k=unsigned(top_k, "top_k"),
            evidence=evidence,
        )

        def request(part: slice) -> pb.FillSlotsRequest:
            made = pb.FillSlotsRequest(slots=[pb.Slot(head=head, relation=name) for head, name in slots[part]])
            made.MergeFrom(wanted)
            return made

        parts = yield from self._requests.call_parts(
            "slots",
            [text_bytes(head) + text_bytes(relation) + 8 for head, relation in slots],
            request,
            pb.FillSlotsResponse,
            max_items=lambda limits: limits.max_slots_per_request,
            model=model,
            repeated_bytes=wanted.ByteSize(),
        )
        return [tuple(from_message(tail, RankedTail) for tail in slot.tails) for part in parts for slot in part.slots]

    def score_relations(
        self,
        patterns: Sequence[str],
        *,
        relations: Sequence[str] = (),
        top_k: int | None = None,
        evidence: bool = False,
        model: str = "",
    ) -> Operation[list[PatternScore]]:
        """How well relations fit sentence patterns.

        Args:
            patterns: Each with ``$ARG1`` and ``$ARG2`` exactly once; other entities may be ``$ENT``.
            relations: Candidates by name or alias; empty: every relation.
            top_k: Most relations of a pattern; None: all candidates, or the server's choice without any.
            evidence: Say which facet met which, and the relations near each facet.
            model: Name; empty: the server's default for relations.
        """
        most = unsigned(top_k, "top_k")
        num_returned = least(top_k or 0, len(relations)) or _DEFAULT_TOP_K

        def max_patterns(limits: Limits) -> int:
            of_scores = limits.max_relation_scores and max(1, limits.max_relation_scores // num_returned)
            return least(limits.max_patterns_per_request, of_scores)

        parts = yield from self._requests.call_parts(
            "patterns",
            [text_bytes(pattern) for pattern in patterns],
            lambda part: pb.ScoreRelationsRequest(
                patterns=patterns[part], model=model, relations=relations, top_k=most, evidence=evidence
            ),
            pb.ScoreRelationsResponse,
            max_items=max_patterns,
            model=model,
            repeated_bytes=sum(text_bytes(name) + 4 for name in relations),
        )
        return [from_message(score, PatternScore) for part in parts for score in part.scores]

    def detect_entailment(self, pairs: Sequence[tuple[str, str]], *, model: str = "") -> Operation[list[Entailment]]:
        """Whether one sentence pattern entails another, in both directions.

        Args:
            pairs: ``(premise, hypothesis)`` of each, patterns as in ``score_relations``.
            model: Name; empty: the server's default for relations.
        """
        parts = yield from self._requests.call_parts(
            "pairs",
            [text_bytes(premise) + text_bytes(hypothesis) for premise, hypothesis in pairs],
            lambda part: pb.DetectEntailmentRequest(
                pairs=[pb.EntailmentPair(premise=premise, hypothesis=other) for premise, other in pairs[part]],
                model=model,
            ),
            pb.DetectEntailmentResponse,
            max_items=lambda limits: limits.max_pairs_per_request,
            model=model,
        )
        return [from_message(item, Entailment) for part in parts for item in part.entailments]

    def list_relations(self, *, model: str = "") -> Operation[list[Relation]]:
        """The relations a model knows, trained and added, by name."""
        found = yield from call_pages(
            lambda token: pb.ListRelationsRequest(model=model, page_token=token),
            pb.ListRelationsResponse,
            lambda reply: (reply.relations, reply.next_page_token),
        )
        return [from_message(relation, Relation) for relation in found]

    def add_relation(
        self, name: str, examples: Sequence[str], *, threshold: float | None = None, model: str = ""
    ) -> Operation[Relation]:
        """Adds a relation by example patterns, without training; durable on return.

        Args:
            name: AlreadyExistsError when the model knows a relation of that name.
            examples: Sentence patterns that express it.
            threshold: Scores from here on are accepted, in [-1, 1]; None: the server's choice.
            model: Name; empty: the server's default for relations.
        """
        least_score = None if threshold is None else finite_double(threshold, "threshold")
        request = pb.AddRelationRequest(model=model, name=name, examples=examples, threshold=least_score)
        reply = yield from call(request, pb.AddRelationResponse)
        return from_message(reply.relation, Relation)

    def delete_relation(self, name: str, *, model: str = "") -> Operation[Relation]:
        """Takes a relation away that was added; NotFoundError when there is none of that name."""
        reply = yield from call(pb.DeleteRelationRequest(model=model, name=name), pb.DeleteRelationResponse)
        return from_message(reply.relation, Relation)


def _from_texts(texts: Sequence[str], spans: Spans | None) -> list[pb.RelationText]:
    """Texts with their entities.

    Raises:
        ValueError: Not one list of spans for each text, or an offset that no field holds.
    """
    if spans is None:
        return [pb.RelationText(text=text) for text in texts]
    if len(spans) != len(texts):
        raise ValueError(f"spans must have one list for each of {len(texts)} texts, got {len(spans)}")
    return [
        pb.RelationText(text=text, entities=[_from_span(span, f"spans[{i}][{j}]") for j, span in enumerate(own)])
        for i, (text, own) in enumerate(zip(texts, spans, strict=True))
    ]


def _from_span(span: tuple[int, int] | tuple[int, int, EntityType], name: str) -> pb.EntitySpan:
    start, end, *kind = span
    return pb.EntitySpan(
        start=unsigned(start, f"{name} start"),
        end=unsigned(end, f"{name} end"),
        type=enum_name("ENTITY_TYPE", kind[0], EntityType, name=f"{name} type") if kind else None,
    )


def _from_limits(limits: PairLimits | None) -> pb.PairLimits | None:
    """Which pairs are looked at, as a message; None stays None."""
    if limits is None:
        return None
    return pb.PairLimits(**{name: unsigned(value, name) for name, value in asdict(limits).items()})
