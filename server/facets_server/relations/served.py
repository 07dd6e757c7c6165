"""The served models of relations; long requests are processed in parts, so that others do not wait for them."""

from collections.abc import Iterator, Sequence

from facets_proto.v1 import relations_pb2 as pb

from facets.relations.engine import RelationEngine
from facets.relations.results import EntityMention, EntityPair, PatternScore
from facets_server.relations.requests import FIELDS, Entities
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import in_request
from facets_server.runtime.models import ServedModel, TaskModels

_TEXTS_AT_A_TIME = 32
_PATTERNS_AT_A_TIME = 256
_WARM_UP = pb.ScoreRelationsRequest(patterns=["$ARG1 , the partner of fellow $ARG2"])


class ServedRelations(ServedModel[RelationEngine]):
    """One model for relations; one call at a time."""

    def extract(
        self, texts: Sequence[str], entities: Entities, request: pb.ExtractRelationsRequest, call: CallContext
    ) -> Iterator[tuple[list[EntityMention], Sequence[EntityPair]]]:
        """Yields the entities of each text of a request in text order, and its entity pairs."""
        most = request.max_relations_per_pair if request.HasField("max_relations_per_pair") else 1
        for start in range(0, len(texts), _TEXTS_AT_A_TIME):
            part = texts[start : start + _TEXTS_AT_A_TIME]
            with in_request(FIELDS, start=start):
                spans = entities(part, start)
                with self.exclusive(call) as engine:
                    pairs = engine.extract(
                        part,
                        spans=spans,
                        relations=list(request.relations) or None,
                        max_relations_per_pair=most,
                        top_k=request.top_k if request.HasField("top_k") else most,
                        evidence=request.evidence,
                    )
            for text, text_spans, text_pairs in zip(part, spans, pairs, strict=True):
                yield (
                    [EntityMention(text[s.start : s.end], s.start, s.end, s.type) for s in sorted(text_spans)],
                    text_pairs,
                )

    def score(
        self, request: pb.ScoreRelationsRequest, call: CallContext, *, top_k: int | None
    ) -> Iterator[PatternScore]:
        """Yields the scores of each pattern of a request; ``top_k`` None: of every candidate."""
        patterns, relations = list(request.patterns), list(request.relations) or None
        for start in range(0, len(patterns), _PATTERNS_AT_A_TIME):
            part = patterns[start : start + _PATTERNS_AT_A_TIME]
            with in_request(FIELDS, start=start), self.exclusive(call) as engine:
                scores = engine.score(part, relations, top_k=top_k, evidence=request.evidence)
            yield from scores

    def probe(self, call: CallContext) -> None:
        """Scores a fixed pattern."""
        list(self.score(_WARM_UP, call, top_k=1))

    def close(self) -> None:
        """Refuses further work and closes the file of the added relations."""
        super().close()
        self.engine.close()


RelationModels = TaskModels[ServedRelations]
