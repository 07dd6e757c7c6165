"""Methods of the clients about relations between entities."""

from collections.abc import Sequence

from facets_proto.codec import from_message
from facets_proto.v1 import relations_pb2 as pb

from facets_client.core.calls import AsyncCalls
from facets_client.core.requests import least, max_together, request_from, request_of
from facets_client.core.rows import Results
from facets_client.generated.types import Entailment, EntitySource, PatternScore, RankedTail, Relation, TextRelations
from facets_client.relations.messages import Spans, texts_with_entities


class AsyncRelationCalls(AsyncCalls):
    """Methods of RelationService."""

    async def extract_relations(
        self,
        texts: Sequence[str],
        *,
        spans: Spans | None = None,
        entity_source: EntitySource = "any",
        gazetteer_names: Sequence[str] = (),
        relations: Sequence[str] = (),
        include_unrelated: bool = False,
        max_relations_per_pair: int | None = None,
        top_k: int | None = None,
        evidence: bool = False,
        model: str = "",
    ) -> Results[TextRelations]:
        """Relations that texts assert between pairs of entities in a sentence.

        ``spans`` has the entities of each text, ``(start, end)`` in characters, or with a type, ``(0, 11, "person")``;
        without it, the server finds them.
        """
        request = request_from(pb.ExtractRelationsRequest, locals(), **texts_with_entities(texts, spans, entity_source))
        parts = await self._call_parts(request, "texts", "max_texts_per_request", bytes_limit="max_relation_characters")
        return Results(from_message(text, TextRelations) for part in parts for text in part.texts)

    async def fill_slots(
        self,
        slots: Sequence[tuple[str, str]],
        texts: Sequence[str],
        *,
        spans: Spans | None = None,
        entity_source: EntitySource = "any",
        gazetteer_names: Sequence[str] = (),
        top_k: int | None = None,
        evidence: bool = False,
        model: str = "",
    ) -> Results[tuple[RankedTail, ...]]:
        """Tail entities for heads and relations, best first; for ``spans`` see ``extract_relations``."""
        request = request_from(pb.FillSlotsRequest, locals(), **texts_with_entities(texts, spans, entity_source))
        parts = await self._call_parts(request, "slots", "max_slots_per_request")
        return Results(
            tuple(from_message(tail, RankedTail) for tail in slot.tails) for part in parts for slot in part.slots
        )

    async def score_relations(
        self,
        patterns: Sequence[str],
        *,
        relations: Sequence[str] = (),
        top_k: int | None = None,
        evidence: bool = False,
        model: str = "",
    ) -> Results[PatternScore]:
        """Scores how well relations fit sentence patterns."""
        request = request_from(pb.ScoreRelationsRequest, locals())
        parts = await self._call_parts(
            request,
            "patterns",
            "max_patterns_per_request",
            lambda limits: max_together(limits.max_relation_scores, least(request.top_k, len(request.relations))),
        )
        return Results(from_message(score, PatternScore) for part in parts for score in part.scores)

    async def detect_entailment(self, pairs: Sequence[tuple[str, str]], *, model: str = "") -> Results[Entailment]:
        """Whether one sentence pattern entails another, in both directions."""
        parts = await self._call_parts(
            request_of(pb.DetectEntailmentRequest, pairs=pairs, model=model), "pairs", "max_pairs_per_request"
        )
        return Results(from_message(item, Entailment) for part in parts for item in part.entailments)

    async def list_relations(self, *, model: str = "") -> Results[Relation]:
        """The relations that a model knows, trained and added, by name."""
        pages = self._pages(request_of(pb.ListRelationsRequest, model=model))
        return Results([from_message(relation, Relation) async for page in pages for relation in page.relations])

    async def add_relation(
        self, name: str, examples: Sequence[str], *, threshold: float | None = None, model: str = ""
    ) -> Relation:
        """Adds a relation by example patterns, without training; durable on return."""
        request = request_from(pb.AddRelationRequest, locals())
        return from_message((await self._call(request)).relation, Relation)

    async def delete_relation(self, name: str, *, model: str = "") -> Relation:
        """Removes an added relation; NotFoundError when it does not exist."""
        request = request_of(pb.DeleteRelationRequest, model=model, name=name)
        return from_message((await self._call(request)).relation, Relation)
