"""The models for relations, each behind its turns, and what the service does with one.

Long requests take several turns, so that a single question is never behind a whole bulk load.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from facets.errors import FacetsError
from facets.model.contract import ModelInfo
from facets.relations.engine import RelationEngine
from facets.relations.entailment import EntailmentResult
from facets.relations.entities import EntityFinder, EntitySpan
from facets.relations.patterns import PatternLimits
from facets.relations.results import PairRelations, PatternScores, RankedTail, RelationInfo
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.fair_lock import FairLock
from facets_server.runtime.field_names import ITEM, FieldNames, in_request
from facets_server.runtime.model_registry import TaskModels

__all__ = ["FIELDS", "Entities", "RelationModels", "ServedRelations"]

logger = logging.getLogger(__name__)

_TEXTS_A_TURN = 32
_PATTERNS_A_TURN = 256
_FAILURES_UNTIL_UNHEALTHY = 3
_PROBE_S = 30.0
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


class ServedRelations:
    """One model for relations; may be shared by threads, which take turns."""

    def __init__(self, scorer: RelationEngine, info: ModelInfo) -> None:
        self.info = info
        self._scorer = scorer
        self._turns = FairLock()
        self._num_failures = 0

    def extract(
        self,
        texts: Sequence[str],
        entities: Entities,
        call: CallContext,
        *,
        relations: Sequence[str] | None,
        limits: PatternLimits,
        top_k: int,
        evidence: bool,
    ) -> Iterator[list[PairRelations]]:
        """Pairs of entities of one text after the other, see ``RelationEngine.extract``."""
        for start in range(0, len(texts), _TEXTS_A_TURN):
            part = texts[start : start + _TEXTS_A_TURN]
            with in_request(FIELDS, start=start):
                spans = entities.of(part, start)
                with self._turn(call):
                    found = self._scorer.extract(
                        part, spans=spans, relations=relations, limits=limits, top_k=top_k, evidence=evidence
                    )
            yield from found

    def fill_slots(
        self,
        slots: Sequence[tuple[str, str]],
        texts: Sequence[str],
        entities: Entities,
        call: CallContext,
        *,
        limits: PatternLimits,
    ) -> Iterator[list[RankedTail]]:
        """Tails of one ``(head, relation)`` after the other, see ``RelationEngine.fill_slot``."""
        with in_request(FIELDS):
            spans = entities.of(texts, 0)
            for number, (head, relation) in enumerate(slots):
                with in_request({"head": ("slots", number, "head")}), self._turn(call):
                    tails = self._scorer.fill_slot(head, relation, texts, spans=spans, limits=limits)
                yield tails

    def score(
        self,
        patterns: Sequence[str],
        call: CallContext,
        *,
        relations: Sequence[str] | None,
        top_k: int | None,
        evidence: bool = False,
    ) -> Iterator[PatternScores]:
        """Scores of one pattern after the other, see ``RelationEngine.score``."""
        for start in range(0, len(patterns), _PATTERNS_A_TURN):
            with in_request(FIELDS, start=start), self._turn(call):
                scored = self._scorer.score(
                    patterns[start : start + _PATTERNS_A_TURN], relations, top_k=top_k, evidence=evidence
                )
            yield from scored

    def entailment(
        self, premises: Sequence[str], hypotheses: Sequence[str], call: CallContext
    ) -> list[EntailmentResult]:
        """See ``RelationEngine.entailment``."""
        with in_request(FIELDS), self._turn(call):
            return self._scorer.entailment(premises, hypotheses)

    def relations(self) -> list[RelationInfo]:
        """Every relation, by name."""
        return self._scorer.relations()

    def add_relation(
        self, name: str, examples: Sequence[str], threshold: float | None, call: CallContext
    ) -> RelationInfo:
        """See ``RelationEngine.add_relation``."""
        with self._turn(call):
            self._scorer.add_relation(name, examples, threshold=threshold)
            return next(info for info in self._scorer.relations() if info.name == name)  # as it is listed

    def delete_relation(self, name: str, call: CallContext) -> RelationInfo:
        """Takes an added relation away; see ``RelationEngine.remove_relation``."""
        with self._turn(call):
            found = [info for info in self._scorer.relations() if info.name == name]
            self._scorer.remove_relation(name)  # refuses a name that is none of those added
            return found[0]

    def warm_up(self) -> None:
        """Runs the model once; raises what the model raises."""
        list(self.score([_WARM_UP_PATTERN], CallContext(method="warm-up"), relations=None, top_k=1))

    def is_healthy(self) -> bool:
        """True while the model answers; after failures in a row it is asked with a pattern of our own."""
        if self._num_failures < _FAILURES_UNTIL_UNHEALTHY:
            return True
        try:
            probe = CallContext(method="probe", deadline=time.monotonic() + _PROBE_S)
            list(self.score([_WARM_UP_PATTERN], probe, relations=None, top_k=1))
        except Exception as error:  # whatever it is: the model does not answer
            logger.warning("model %s does not answer: %s", self.info.name, type(error).__name__)
            return False
        return True

    def close(self) -> None:
        """Refuses further work."""
        self._turns.close()

    @contextmanager
    def _turn(self, call: CallContext) -> Iterator[None]:
        with self._turns.hold(call):
            try:
                yield
            except FacetsError:
                raise  # the caller's mistake, or the disk's
            except Exception:
                self._num_failures += 1
                raise
            self._num_failures = 0


RelationModels = TaskModels[ServedRelations]
