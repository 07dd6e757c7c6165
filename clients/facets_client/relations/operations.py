"""What the clients do about relations, written once (see ``commands.py``)."""

from collections.abc import Sequence

from facets_client.core import rpc
from facets_client.core.batching import text_bytes
from facets_client.core.commands import Operation, call, call_part, check_sequence
from facets_client.core.operations import Operations
from facets_client.core.results import Limits
from facets_client.relations import convert, results
from facets_client.relations.convert import EntitySource, Spans

__all__ = ["RelationOperations"]

_DEFAULT_TOP_K = 10  # of the server, when it is asked for all relations and no number


class RelationOperations:
    """The operations of RelationService; inputs are cut with the help of the other operations."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def extract(
        self,
        texts: Sequence[str],
        *,
        spans: Spans | None,
        entity_source: EntitySource,
        gazetteer: Sequence[str],
        relations: Sequence[str],
        pair_limits: results.PairLimits | None,
        include_unrelated: bool,
        top_k: int | None,
        evidence: bool,
        model: str,
    ) -> Operation[list[results.TextRelations]]:
        """Relations between the entities of texts."""
        _check_lists(texts=texts, gazetteer=gazetteer, relations=relations)
        messages = convert.from_texts(texts, spans)
        repeated = sum(text_bytes(name) + 4 for names in (gazetteer, relations) for name in names)
        found: list[results.TextRelations] = []
        sizes = [message.ByteSize() for message in messages]
        for part in (
            yield from self._operations.cut(
                "texts", sizes, model, lambda it: it.max_texts_per_request, repeated_bytes=repeated
            )
        ):
            request = convert.extract_request(
                messages[part],
                model=model,
                entity_source=entity_source,
                gazetteer=gazetteer,
                relations=relations,
                pair_limits=pair_limits,
                include_unrelated=include_unrelated,
                top_k=top_k,
                evidence=evidence,
            )
            reply = yield from call_part(rpc.EXTRACT_RELATIONS, request, field="texts", offset=part.start)
            found += convert.to_text_relations(reply)
        return found

    def fill_slots(
        self,
        slots: Sequence[tuple[str, str]],
        texts: Sequence[str],
        *,
        spans: Spans | None,
        entity_source: EntitySource,
        gazetteer: Sequence[str],
        pair_limits: results.PairLimits | None,
        top_k: int | None,
        evidence: bool,
        model: str,
    ) -> Operation[list[tuple[results.RankedTail, ...]]]:
        """Ranked tails; every request holds all the texts."""
        _check_lists(slots=slots, texts=texts, gazetteer=gazetteer)
        messages = convert.from_texts(texts, spans)
        repeated = sum(message.ByteSize() + 8 for message in messages)
        repeated += sum(text_bytes(name) + 4 for name in gazetteer)
        sizes = [text_bytes(head) + text_bytes(relation) + 8 for head, relation in slots]
        tails: list[tuple[results.RankedTail, ...]] = []
        for part in (
            yield from self._operations.cut(
                "slots", sizes, model, lambda it: it.max_slots_per_request, repeated_bytes=repeated
            )
        ):
            request = convert.fill_request(
                slots[part],
                messages,
                model=model,
                entity_source=entity_source,
                gazetteer=gazetteer,
                pair_limits=pair_limits,
                top_k=top_k,
                evidence=evidence,
            )
            reply = yield from call_part(rpc.FILL_SLOTS, request, field="slots", offset=part.start)
            tails += convert.to_tails(reply)
        return tails

    def score(
        self, patterns: Sequence[str], *, relations: Sequence[str], top_k: int | None, evidence: bool, model: str
    ) -> Operation[list[results.PatternScore]]:
        """Relations of patterns."""
        _check_lists(patterns=patterns, relations=relations)
        repeated = sum(text_bytes(name) + 4 for name in relations)
        told = min(top_k or len(relations) or _DEFAULT_TOP_K, len(relations) or top_k or _DEFAULT_TOP_K)

        def max_patterns(limits: Limits) -> int:
            if not limits.max_relation_scores:
                return limits.max_patterns_per_request
            within_scores = max(1, limits.max_relation_scores // told)
            return min(limits.max_patterns_per_request or within_scores, within_scores)

        scores: list[results.PatternScore] = []
        sizes = [text_bytes(pattern) for pattern in patterns]
        for part in (yield from self._operations.cut("patterns", sizes, model, max_patterns, repeated_bytes=repeated)):
            request = convert.score_request(
                patterns[part], model=model, relations=relations, top_k=top_k, evidence=evidence
            )
            reply = yield from call_part(rpc.SCORE_RELATIONS, request, field="patterns", offset=part.start)
            scores += [convert.to_pattern_score(score) for score in reply.scores]
        return scores

    def entailment(self, pairs: Sequence[tuple[str, str]], *, model: str) -> Operation[list[results.Entailment]]:
        """Both directions of pairs of patterns."""
        check_sequence("pairs", pairs)
        sizes = [text_bytes(premise) + text_bytes(hypothesis) for premise, hypothesis in pairs]
        found: list[results.Entailment] = []
        for part in (yield from self._operations.cut("pairs", sizes, model, lambda it: it.max_pairs_per_request)):
            request = convert.entailment_request(pairs[part], model=model)
            reply = yield from call_part(rpc.DETECT_ENTAILMENT, request, field="pairs", offset=part.start)
            found += convert.to_entailments(reply)
        return found

    def all(self, *, model: str) -> Operation[list[results.Relation]]:
        """All relations, page by page."""
        relations: list[results.Relation] = []
        token = ""
        while True:
            reply = yield from call(rpc.LIST_RELATIONS, convert.list_request(token, model=model))
            relations += convert.to_relations(reply.relations)
            token = reply.next_page_token
            if not token:
                return relations

    def add(
        self, name: str, examples: Sequence[str], *, threshold: float | None, model: str
    ) -> Operation[results.Relation]:
        """A new relation."""
        check_sequence("examples", examples)
        request = convert.add_request(name, examples, threshold=threshold, model=model)
        reply = yield from call(rpc.ADD_RELATION, request)
        return convert.to_relation(reply.relation)

    def delete(self, name: str, *, model: str) -> Operation[results.Relation]:
        """Takes a relation away."""
        reply = yield from call(rpc.DELETE_RELATION, convert.delete_request(name, model=model))
        return convert.to_relation(reply.relation)


def _check_lists(**lists: object) -> None:
    for name, items in lists.items():
        check_sequence(name, items)
