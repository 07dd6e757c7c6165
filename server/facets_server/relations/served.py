"""The served models of relations; long requests are processed in parts, so that others do not wait for them."""

from collections.abc import Iterator, Sequence

from facets.relations.engine import RelationEngine
from facets.relations.results import EntityMention, EntityPair, PatternScore, RankedTail
from facets_server.relations.requests import FIELDS, ExtractionQuery, PatternQuery, SlotQuery
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import in_request
from facets_server.runtime.models import ServedModel, TaskModels

_TEXTS_AT_A_TIME = 32
_PATTERNS_AT_A_TIME = 256
_WARM_UP = PatternQuery(patterns=("$ARG1 , the partner of fellow $ARG2",), relations=(), top_k=1, evidence=False)


class ServedRelations(ServedModel[RelationEngine]):
    """One model for relations; one call at a time."""

    def extract(
        self, query: ExtractionQuery, call: CallContext
    ) -> Iterator[tuple[list[EntityMention], Sequence[EntityPair]]]:
        """Yields the entities of each text in text order, and its entity pairs."""
        for start in range(0, len(query.texts), _TEXTS_AT_A_TIME):
            part = query.texts[start : start + _TEXTS_AT_A_TIME]
            with in_request(FIELDS, start=start):
                spans = query.entities.of(part, start)
                with self.exclusive(call) as engine:
                    pairs = engine.extract(
                        part,
                        spans=spans,
                        relations=query.relations or None,
                        max_relations_per_pair=query.max_relations_per_pair,
                        top_k=query.max_relations_per_pair if query.top_k is None else query.top_k,
                        evidence=query.evidence,
                    )
            for text, text_spans, text_pairs in zip(part, spans, pairs, strict=True):
                yield (
                    [EntityMention(text[s.start : s.end], s.start, s.end, s.type) for s in sorted(text_spans)],
                    text_pairs,
                )

    def fill_slots(self, query: SlotQuery, call: CallContext) -> list[list[RankedTail]]:
        """The best tails for each pair of head and relation."""
        slots = []
        with in_request(FIELDS):
            spans = query.entities.of(query.texts, 0)
            for number, (head, relation) in enumerate(query.slots):
                with in_request({"head": ("slots", number, "head")}), self.exclusive(call) as engine:
                    tails = engine.fill_slot(
                        head, relation, query.texts, spans=spans, top_k=query.top_k, evidence=query.evidence
                    )
                slots.append(tails)
        return slots

    def score(self, query: PatternQuery, call: CallContext) -> Iterator[PatternScore]:
        """Yields the scores of each pattern."""
        for start in range(0, len(query.patterns), _PATTERNS_AT_A_TIME):
            part = query.patterns[start : start + _PATTERNS_AT_A_TIME]
            with in_request(FIELDS, start=start), self.exclusive(call) as engine:
                scores = engine.score(part, query.relations or None, top_k=query.top_k, evidence=query.evidence)
            yield from scores

    def probe(self, call: CallContext) -> None:
        """Scores a fixed pattern."""
        list(self.score(_WARM_UP, call))

    def close(self) -> None:
        """Refuses further work and closes the file of the added relations."""
        super().close()
        self.engine.close()


RelationModels = TaskModels[ServedRelations]
