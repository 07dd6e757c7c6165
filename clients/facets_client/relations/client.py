"""The blocking client's methods about relations."""

from collections.abc import Sequence
from typing import TypeVar

from facets_client.core.commands import Operation
from facets_client.core.operations import Operations
from facets_client.relations import results
from facets_client.relations.convert import EntitySource, Spans
from facets_client.relations.operations import RelationOperations

__all__ = ["RelationCalls"]

T = TypeVar("T")


class RelationCalls:
    """Part of ``FacetsClient``."""

    _operations: Operations

    def _run(self, operation: Operation[T]) -> T:
        raise NotImplementedError

    @property
    def _relations(self) -> RelationOperations:
        return RelationOperations(self._operations)

    def extract_relations(
        self,
        texts: Sequence[str],
        *,
        spans: Spans | None = None,
        entity_source: EntitySource = "any",
        gazetteer: Sequence[str] = (),
        relations: Sequence[str] = (),
        pair_limits: results.PairLimits | None = None,
        include_unrelated: bool = False,
        top_k: int | None = None,
        evidence: bool = False,
        model: str = "",
    ) -> list[results.TextRelations]:
        """Relations between the entities of texts, in both directions of every pair of a sentence.

        Args:
            texts: At least one.
            spans: Entities of each text as ``(start, end)`` in characters; None: found by the server.
            entity_source: Where entities come from; ``any``: spans, else the gazetteer, else what the server has.
            gazetteer: Names of entities to find.
            relations: Candidates by name; empty: every relation.
            pair_limits: Which pairs are looked at.
            include_unrelated: Also tell pairs without an accepted relation.
            top_k: Tell this many relations of each pair, accepted or not; None: the accepted ones.
            evidence: Say which facet met which, and the relations near each facet.
            model: Name; empty: the server's default for relations.
        """
        return self._run(
            self._relations.extract(
                texts,
                spans=spans,
                entity_source=entity_source,
                gazetteer=gazetteer,
                relations=relations,
                pair_limits=pair_limits,
                include_unrelated=include_unrelated,
                top_k=top_k,
                evidence=evidence,
                model=model,
            )
        )

    def fill_slots(
        self,
        slots: Sequence[tuple[str, str]],
        texts: Sequence[str],
        *,
        spans: Spans | None = None,
        entity_source: EntitySource = "any",
        gazetteer: Sequence[str] = (),
        pair_limits: results.PairLimits | None = None,
        top_k: int | None = None,
        evidence: bool = False,
        model: str = "",
    ) -> list[tuple[results.RankedTail, ...]]:
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
        return self._run(
            self._relations.fill_slots(
                slots,
                texts,
                spans=spans,
                entity_source=entity_source,
                gazetteer=gazetteer,
                pair_limits=pair_limits,
                top_k=top_k,
                evidence=evidence,
                model=model,
            )
        )

    def score_relations(
        self,
        patterns: Sequence[str],
        *,
        relations: Sequence[str] = (),
        top_k: int | None = None,
        evidence: bool = False,
        model: str = "",
    ) -> list[results.PatternScore]:
        """How well relations fit sentence patterns.

        Args:
            patterns: Each with ``$ARG1`` and ``$ARG2`` exactly once; other entities may be ``$ENT``.
            relations: Candidates by name; empty: every relation.
            top_k: Most relations of a pattern; None: all candidates, or the server's choice without any.
            evidence: Say which facet met which, and the relations near each facet.
            model: Name; empty: the server's default for relations.
        """
        return self._run(
            self._relations.score(patterns, relations=relations, top_k=top_k, evidence=evidence, model=model)
        )

    def detect_entailment(self, pairs: Sequence[tuple[str, str]], *, model: str = "") -> list[results.Entailment]:
        """Whether one sentence pattern entails another, in both directions.

        Args:
            pairs: ``(premise, hypothesis)`` of each, patterns as in ``score_relations``.
            model: Name; empty: the server's default for relations.
        """
        return self._run(self._relations.entailment(pairs, model=model))

    def list_relations(self, *, model: str = "") -> list[results.Relation]:
        """The relations a model knows, trained and added, by name."""
        return self._run(self._relations.all(model=model))

    def add_relation(
        self, name: str, examples: Sequence[str], *, threshold: float | None = None, model: str = ""
    ) -> results.Relation:
        """Adds a relation by example patterns, without training; durable on return.

        Args:
            name: AlreadyExistsError when the model knows a relation of that name.
            examples: Sentence patterns that express it.
            threshold: Scores from here on are accepted, in [-1, 1]; None: the server's choice.
            model: Name; empty: the server's default for relations.
        """
        return self._run(self._relations.add(name, examples, threshold=threshold, model=model))

    def delete_relation(self, name: str, *, model: str = "") -> results.Relation:
        """Takes a relation away that was added; NotFoundError when there is none of that name."""
        return self._run(self._relations.delete(name, model=model))
