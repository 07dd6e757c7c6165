"""The models for relations, and what the service does with one.

Long requests are worked on in parts, so that a single question is never behind a whole bulk load.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets.relations.engine import RelationEngine
from facets.relations.entailment import Entailment
from facets.relations.entities import EntityFinder, EntitySpan
from facets.relations.patterns import PairLimits
from facets.relations.results import EntityMention, EntityPair, PatternScore, RankedTail, Relation
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import ITEM, FieldNames, in_request
from facets_server.runtime.models import ServedModel, TaskModels

_TEXTS_AT_A_TIME = 32
_PATTERNS_AT_A_TIME = 256
_WARM_UP_PATTERN = "$ARG1 , the partner of fellow $ARG2"
# Arguments of the library -> fields of our requests.
FIELDS: FieldNames = {
    "texts": ("texts", ITEM, "text"),
    "spans": ("texts", ITEM, "entities"),
    "patterns": ("patterns", ITEM),
    "premises": ("pairs", ITEM, "premise"),
    "hypotheses": ("pairs", ITEM, "hypothesis"),
    "names": ("gazetteer_names", ITEM),
}


@dataclass(frozen=True, slots=True)
class Entities:
    """Entities of the texts of one request: given, or found by ``finder``.

    Attributes:
        spans: Entry i belongs to texts[i].
        finder: None: ``spans`` are the entities.
    """

    spans: tuple[tuple[EntitySpan, ...], ...]
    finder: EntityFinder | None

    def of(self, texts: Sequence[str], start: int) -> Sequence[Sequence[EntitySpan]]:
        """Entities of texts that stand in the request from ``start`` on."""
        if self.finder is None:
            return self.spans[start : start + len(texts)]
        return self.finder.find(texts)


@dataclass(frozen=True, slots=True)
class ReadText:
    """What was found in one text: its entities in order, and what it says of pairs of them."""

    entities: tuple[EntityMention, ...]
    pairs: Sequence[EntityPair]


class ServedRelations(ServedModel[RelationEngine]):
    """One model for relations; one call at a time."""

    def extract(
        self,
        texts: Sequence[str],
        entities: Entities,
        call: CallContext,
        *,
        relations: Sequence[str] | None,
        limits: PairLimits,
        max_relations_per_pair: int,
        top_k: int,
        evidence: bool,
    ) -> Iterator[ReadText]:
        """Entities of one text after the other and their pairs, see ``RelationEngine.extract``."""
        for start in range(0, len(texts), _TEXTS_AT_A_TIME):
            part = texts[start : start + _TEXTS_AT_A_TIME]
            with in_request(FIELDS, start=start):
                spans = entities.of(part, start)
                with self.exclusive(call) as engine:
                    found = engine.extract(
                        part,
                        spans=spans,
                        relations=relations,
                        limits=limits,
                        max_relations_per_pair=max_relations_per_pair,
                        top_k=top_k,
                        evidence=evidence,
                    )
            for text, own, pairs in zip(part, spans, found, strict=True):
                yield ReadText(tuple(_mention(text, span) for span in sorted(own)), pairs)

    def fill_slots(
        self,
        slots: Sequence[tuple[str, str]],
        texts: Sequence[str],
        entities: Entities,
        call: CallContext,
        *,
        limits: PairLimits,
        evidence: bool,
    ) -> Iterator[list[RankedTail]]:
        """Tails of one ``(head, relation)`` after the other, see ``RelationEngine.fill_slot``."""
        with in_request(FIELDS):
            spans = entities.of(texts, 0)
            for number, (head, relation) in enumerate(slots):
                with in_request({"head": ("slots", number, "head")}), self.exclusive(call) as engine:
                    tails = engine.fill_slot(head, relation, texts, spans=spans, limits=limits, evidence=evidence)
                yield tails

    def score(
        self,
        patterns: Sequence[str],
        call: CallContext,
        *,
        relations: Sequence[str] | None,
        top_k: int | None,
        evidence: bool = False,
    ) -> Iterator[PatternScore]:
        """Scores of one pattern after the other, see ``RelationEngine.score``."""
        for start in range(0, len(patterns), _PATTERNS_AT_A_TIME):
            with in_request(FIELDS, start=start), self.exclusive(call) as engine:
                scored = engine.score(
                    patterns[start : start + _PATTERNS_AT_A_TIME], relations, top_k=top_k, evidence=evidence
                )
            yield from scored

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str], call: CallContext) -> list[Entailment]:
        """See ``RelationEngine.entailment``."""
        with in_request(FIELDS), self.exclusive(call) as engine:
            return engine.entailment(premises, hypotheses)

    def relations(self) -> list[Relation]:
        """Every relation, by name."""
        return self.engine.relations()

    def add_relation(self, name: str, examples: Sequence[str], threshold: float | None, call: CallContext) -> Relation:
        """See ``RelationEngine.add_relation``."""
        with self.exclusive(call) as engine:
            return engine.add_relation(name, examples, threshold=threshold)

    def delete_relation(self, name: str, call: CallContext) -> Relation:
        """Takes an added relation away; see ``RelationEngine.remove_relation``."""
        with self.exclusive(call) as engine:
            return engine.remove_relation(name)

    def probe(self, call: CallContext) -> None:
        """Scores a pattern of our own."""
        list(self.score([_WARM_UP_PATTERN], call, relations=None, top_k=1))

    def close(self) -> None:
        """Refuses further work and closes the file of the added relations."""
        super().close()
        self.engine.close()


def _mention(text: str, span: EntitySpan) -> EntityMention:
    return EntityMention(text[span.start : span.end], span.start, span.end, span.type)


RelationModels = TaskModels[ServedRelations]
