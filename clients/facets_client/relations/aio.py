"""The asyncio client's methods about relations."""

from collections.abc import Sequence
from typing import TypeVar

from facets_client.core.commands import Operation
from facets_client.core.operations import Operations
from facets_client.relations import results
from facets_client.relations.convert import EntitySource, Spans
from facets_client.relations.operations import RelationOperations

__all__ = ["AsyncRelationCalls"]

T = TypeVar("T")


class AsyncRelationCalls:
    """Part of ``AsyncFacetsClient``; ``RelationCalls`` describes the arguments."""

    _operations: Operations

    async def _run(self, operation: Operation[T]) -> T:
        raise NotImplementedError

    @property
    def _relations(self) -> RelationOperations:
        return RelationOperations(self._operations)

    async def extract_relations(
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
        """Relations between the entities of texts, in both directions of every pair of a sentence."""
        return await self._run(
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

    async def fill_slots(
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
        """Tail entities for heads and relations, best first."""
        return await self._run(
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

    async def score_relations(
        self,
        patterns: Sequence[str],
        *,
        relations: Sequence[str] = (),
        top_k: int | None = None,
        evidence: bool = False,
        model: str = "",
    ) -> list[results.PatternScore]:
        """How well relations fit sentence patterns."""
        return await self._run(
            self._relations.score(patterns, relations=relations, top_k=top_k, evidence=evidence, model=model)
        )

    async def detect_entailment(self, pairs: Sequence[tuple[str, str]], *, model: str = "") -> list[results.Entailment]:
        """Whether one sentence pattern entails another, in both directions."""
        return await self._run(self._relations.entailment(pairs, model=model))

    async def list_relations(self, *, model: str = "") -> list[results.Relation]:
        """The relations a model knows, trained and added, by name."""
        return await self._run(self._relations.all(model=model))

    async def add_relation(
        self, name: str, examples: Sequence[str], *, threshold: float | None = None, model: str = ""
    ) -> results.Relation:
        """Adds a relation by example patterns, without training; durable on return."""
        return await self._run(self._relations.add(name, examples, threshold=threshold, model=model))

    async def delete_relation(self, name: str, *, model: str = "") -> results.Relation:
        """Takes a relation away that was added; NotFoundError when there is none of that name."""
        return await self._run(self._relations.delete(name, model=model))
