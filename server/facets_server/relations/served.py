"""The served models of relations.

Long requests are processed in parts, so that a single question does not wait for a whole bulk request.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets.relations.engine import RelationEngine
from facets.relations.entailment import Entailment
from facets.relations.entities import EntityFinder, EntitySpan
from facets.relations.patterns import PairLimits
from facets.relations.results import EntityMention, EntityPair, PatternScore, RankedTail
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import ITEM, FieldNames, in_request
from facets_server.runtime.models import ServedModel, TaskModels

_TEXTS_AT_A_TIME = 32
_PATTERNS_AT_A_TIME = 256
_WARM_UP_PATTERN = "$ARG1 , the partner of fellow $ARG2"
# Arguments of the library -> fields of the requests.
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
    """Entities of the texts of one request: found by ``finder`` if it is set, else the given spans of each text."""

    spans: tuple[tuple[EntitySpan, ...], ...]
    finder: EntityFinder | None

    def of(self, texts: Sequence[str], start: int) -> Sequence[Sequence[EntitySpan]]:
        """Entities of texts that begin at index ``start`` of the request."""
        if self.finder is None:
            return self.spans[start : start + len(texts)]
        return self.finder.find(texts)


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The entities of one text in text order, and its entity pairs."""

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
    ) -> Iterator[ExtractedText]:
        """Extracts from one text after the other, see ``RelationEngine.extract``."""
        for start in range(0, len(texts), _TEXTS_AT_A_TIME):
            part = texts[start : start + _TEXTS_AT_A_TIME]
            with in_request(FIELDS, start=start):
                spans = entities.of(part, start)
                with self.exclusive(call) as engine:
                    pairs = engine.extract(
                        part,
                        spans=spans,
                        relations=relations,
                        limits=limits,
                        max_relations_per_pair=max_relations_per_pair,
                        top_k=top_k,
                        evidence=evidence,
                    )
            for text, text_spans, text_pairs in zip(part, spans, pairs, strict=True):
                mentions = (EntityMention(text[s.start : s.end], s.start, s.end, s.type) for s in sorted(text_spans))
                yield ExtractedText(tuple(mentions), text_pairs)

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
        """Fills one pair of head and relation after the other, see ``RelationEngine.fill_slot``."""
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
        """Scores one pattern after the other, see ``RelationEngine.score``."""
        for start in range(0, len(patterns), _PATTERNS_AT_A_TIME):
            with in_request(FIELDS, start=start), self.exclusive(call) as engine:
                part = patterns[start : start + _PATTERNS_AT_A_TIME]
                scored = engine.score(part, relations, top_k=top_k, evidence=evidence)
            yield from scored

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str], call: CallContext) -> list[Entailment]:
        """See ``RelationEngine.entailment``."""
        with in_request(FIELDS), self.exclusive(call) as engine:
            return engine.entailment(premises, hypotheses)

    def probe(self, call: CallContext) -> None:
        """Scores a fixed pattern."""
        list(self.score([_WARM_UP_PATTERN], call, relations=None, top_k=1))

    def close(self) -> None:
        """Refuses further work and closes the file of the added relations."""
        super().close()
        self.engine.close()


RelationModels = TaskModels[ServedRelations]
