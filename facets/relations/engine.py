"""Relations between entities: scores of patterns, extraction from texts, slot filling, entailment."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from itertools import accumulate, chain
from pathlib import Path

import numpy as np
from torch import Tensor

from facets.arrays import Floats
from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.sentences import sentences_of
from facets.language.tokenizer import check_text, check_texts
from facets.relations.additions import Additions
from facets.relations.assertion import assertion_of
from facets.relations.entailment import Entailment, background_facets, detect_entailment
from facets.relations.entities import EntitySpan, checked_spans
from facets.relations.extraction import PairMention, asserted_relations, group_tails, pair_mentions, symmetrised
from facets.relations.model import RelationModel
from facets.relations.patterns import mirrored, tokenize_patterns
from facets.relations.results import EntityPair, PatternScore, RankedTail, Relation
from facets.relations.scoring import PatternDecisions, RelationFacets, ScoreArrays, TrainingPatterns, score_arrays
from facets.storage.sql import SqlDatabase

MAX_TOP_K = 1_000  # relations of one result, or tails of a slot
MAX_RELATIONS_PER_PAIR = 50


class RelationEngine:
    """Scores sentence patterns against relations, extracts relations from texts, fills slots. Thread-safe.

    ``data_dir``: folder for added relations, created when absent, or a database shared by several servers; None: added
    relations are kept in memory only. Raises StorageError if it cannot be read or is damaged.
    """

    def __init__(self, model: RelationModel, *, data_dir: str | Path | SqlDatabase | None = None) -> None:
        self.model = model
        self._additions = Additions(model, Path(data_dir) if isinstance(data_dir, str) else data_dir)
        self._training_patterns = TrainingPatterns(model)

    def close(self) -> None:
        """Closes the file of the added relations."""
        self._additions.close()

    def score(
        self,
        patterns: Sequence[str],
        relations: Sequence[str] | None = None,
        *,
        top_k: int | None = None,
        evidence: bool = True,
    ) -> list[PatternScore]:
        """Scores patterns against relations.

        ``patterns``: each holds ``$ARG1`` and ``$ARG2`` exactly once; other entities may be ``$ENT``. ``relations``:
        names or aliases to restrict to; an inverse alias (``capitalOf``) is scored with the arguments exchanged and
        reported under that alias; None: all. ``top_k``: most relations in a result, the most probable ones, 1 to
        `MAX_TOP_K`; None: all. ``evidence``: add the closest facets, the relations near each facet and similar training
        patterns; False is three times as fast.

        Raises InvalidInputError (its ``field`` is the argument, such as ``patterns[i]``), and NotFoundError
        (``resource_type`` is ``relation``) for an unknown relation, which lists similar names.

        Example:
            >>> import facets
            >>> engine = RelationEngine(facets.load("facets-relations-en"))
            >>> [scores] = engine.score(["$ARG1 was born in $ARG2"], ["birthPlace", "spouse"])
            >>> scores.best.relation
            'birthPlace'
        """
        top_k = _in_range(top_k, "top_k")
        tokens = tokenize_patterns(patterns, self.model.tokenizer)
        chosen = self._additions.chosen(relations)
        inverse = [name for name in relations or () if self._additions.is_inverse(name)]
        if not inverse:
            return self._scores(tokens, chosen, top_k=top_k, evidence=evidence)
        straight = chosen.restricted([i for i, name in enumerate(relations or ()) if name not in inverse])
        exchanged = replace(self._additions.chosen(inverse), names=tuple(inverse))
        scores = self._scores(tokens, straight, top_k=top_k, evidence=evidence)
        mirror_images = self._scores([mirrored(p) for p in tokens], exchanged, top_k=top_k, evidence=evidence)
        return [score.merged(other, top_k=top_k) for score, other in zip(scores, mirror_images, strict=True)]

    def score_arrays(self, patterns: Sequence[str], relations: Sequence[str]) -> ScoreArrays:
        """``score`` as arrays ``[len(patterns), R]``, in the order of ``relations``, without assertion and evidence."""
        tokens = tokenize_patterns(patterns, self.model.tokenizer)
        return score_arrays(self.model, tokens, self._additions.chosen(relations))

    def extract(
        self,
        texts: Sequence[str],
        *,
        spans: Sequence[Sequence[EntitySpan]],
        relations: Sequence[str] | None = None,
        max_relations_per_pair: int | None = 1,
        top_k: int | None = None,
        evidence: bool = True,
        include_unrelated: bool = False,
        max_scores: int | None = None,
    ) -> list[list[EntityPair]]:
        """Relations between the entities of each sentence.

        Only relations that the sentence asserts are accepted; a symmetric relation only in text order. Returns one list
        per text: all ordered pairs of close entities in text order, including those without an accepted relation
        (``relations == ()``). Dates and numbers are never heads; two mentions of the same entity are not paired.

        ``spans``: entities of each text, in any order, such as ``Gazetteer(names).find(texts)``.
        ``max_relations_per_pair``: most accepted relations between two entities, counting both directions, 1 to 50;
        None: all that reach their thresholds. ``top_k``: relations of a pair, accepted or not; None: the accepted ones.
        ``include_unrelated``: also for pairs without an accepted relation, and evidence for these. ``max_scores``:
        InvalidInputError for more relations, where a pair with none counts as one, before results are made; None: any
        number. Other arguments and errors are those of ``score``.
        """
        max_per_pair = _in_range(max_relations_per_pair, "max_relations_per_pair", MAX_RELATIONS_PER_PAIR)
        top_k = _in_range(top_k, "top_k")
        chosen = self._additions.chosen(relations)
        check_texts(texts, "extract")
        mentions = list(pair_mentions(texts, checked_spans(texts, spans), self.model.tokenizer, sentences_of))
        return self._pairs(texts, mentions, chosen, max_per_pair, top_k, evidence, include_unrelated, max_scores)

    def fill_slots(
        self,
        slots: Sequence[tuple[str, str]],
        texts: Sequence[str],
        *,
        spans: Sequence[Sequence[EntitySpan]],
        top_k: int | None = None,
        evidence: bool = True,
        max_pairs: int | None = None,
    ) -> Iterator[tuple[int, list[RankedTail]]]:
        """Yields the index and the tails of each slot: entities t with ``relation(head, t)`` in the texts.

        ``slots``: heads and relations; those of one head follow one another. All mentions of a head are found, ignoring
        case; ``spans`` are candidates for the tail. The best ``top_k`` candidates in a sentence with the head are
        yielded (None: all), best first, ties by name; ``accepted`` says which reach the threshold. ``max_pairs``:
        InvalidInputError for more pairs in all slots together, before any is scored; None: any number. Other arguments
        and errors are those of ``extract``.
        """
        _in_range(top_k, "top_k")
        check_texts(texts, "fill_slots")
        entities, sentences = checked_spans(texts, spans), cache(sentences_of)
        encode = lru_cache(maxsize=1)(self.model.encode_patterns)  # the next slot often has the same head
        mentions_of = partial(pair_mentions, texts, entities, self.model.tokenizer, sentences)
        chosen, numbers_by_head = [], defaultdict[str, list[int]](list)
        for number, (head, relation) in enumerate(slots):
            check_text(head, ("slots", number, "head"))
            chosen.append(self._additions.chosen([relation]))
            numbers_by_head[head.strip()].append(number)
        nums = (len(numbers) for head, numbers in numbers_by_head.items() for _ in mentions_of(head=head))
        if max_pairs is not None and any(total > max_pairs for total in accumulate(nums)):
            rule = f"have more than {max_pairs} pairs of a head and another entity in the texts, the limit"
            raise InvalidInputError(f"{rule}: send fewer slots or texts", path="slots")

        def filled() -> Iterator[tuple[int, list[RankedTail]]]:
            for head, numbers in numbers_by_head.items():
                mentions = list(mentions_of(head=head))
                for number in numbers:
                    by_text = self._pairs(texts, mentions, chosen[number], 1, 1, evidence, True, encode=encode)
                    is_inverse = self._additions.is_inverse(slots[number][1])
                    pairs = [
                        pair
                        for pair in chain.from_iterable(by_text)
                        if (pair.tail if is_inverse else pair.head).text.casefold() == head.casefold()
                    ]
                    yield number, group_tails(pairs, is_inverse=is_inverse)[:top_k]

        return filled()

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[Entailment]:
        """Whether each premise entails the hypothesis at the same position, and vice versa.

        Raises InvalidInputError for different lengths and for a bad pattern (``premises[i]``, ``hypotheses[i]``).
        """
        return detect_entailment(self.model, premises, hypotheses, self._background)

    def relations(self) -> list[Relation]:
        """All relations, trained and added, by name."""
        return self._additions.relations()

    def add_relation(self, name: str, examples: Sequence[str], *, threshold: float | None = None) -> Relation:
        """Adds a relation from example patterns, without training; durable in ``data_dir`` when the call returns.

        ``name``: 1 to 200 printable characters. ``examples``: 1 to 100 patterns. ``threshold``: lowest accepted score,
        in ``[-1, 1]``; None: the model's default. Raises ConflictError if a relation of that name exists.
        """
        return self._additions.add(name, examples, threshold=threshold)

    def remove_relation(self, name: str) -> Relation:
        """Removes an added relation and returns it.

        Raises NotFoundError if there is none of that name, InvalidInputError if it is one of the model's own.
        """
        return self._additions.remove(name)

    @cached_property
    def _background(self) -> Tensor:
        return background_facets(self.model)

    def _pairs(
        self,
        texts: Sequence[str],
        mentions: Sequence[PairMention],
        chosen: RelationFacets,
        max_per_pair: int | None,
        top_k: int | None,
        evidence: bool,
        include_unrelated: bool,
        max_scores: int | None = None,
        encode: Callable[..., Floats] | None = None,
    ) -> list[list[EntityPair]]:
        num_of_pair = min(top_k or 1, len(chosen.names))
        _check_scores(len(mentions) * num_of_pair * include_unrelated, max_scores)  # before any is scored
        # Identical patterns are scored once.
        mirror_images = {m.pattern: (mirrored(m.tokens), m.tail.type, m.head.type) for m in mentions}
        rows = {pattern: row for row, pattern in enumerate(mirror_images)}
        types = [(head, tail) for _, head, tail in mirror_images]
        arrays = score_arrays(self.model, tuple(tokens for tokens, _, _ in mirror_images), chosen, types, encode)
        symmetric_R = np.array([name in self.model.relations.symmetric_names for name in chosen.names], dtype=np.bool_)
        arrays = symmetrised(arrays, mirror_images, symmetric_R)
        rows_M = np.array([rows[mention.pattern] for mention in mentions], dtype=np.int64)
        asserted_MR = asserted_relations(mentions, arrays, rows_M, symmetric_R=symmetric_R, max_per_pair=max_per_pair)
        num_accepted_M = asserted_MR.sum(axis=1)
        is_shown_M = np.full(len(mentions), include_unrelated) | (num_accepted_M > 0)
        nums_M = num_accepted_M if top_k is None else is_shown_M * num_of_pair
        _check_scores(np.maximum(nums_M, is_shown_M).sum(), max_scores)
        plain = PatternDecisions(chosen, arrays, None)
        full = PatternDecisions(chosen, arrays, self._training_patterns) if evidence else plain
        pairs: list[list[EntityPair]] = [[] for _ in texts]
        shown = zip(mentions, rows_M.tolist(), asserted_MR, nums_M.tolist(), is_shown_M.tolist(), strict=True)
        for mention, row, accepted_R, num, is_shown in shown:
            check_interrupted()
            scores = (full if is_shown else plain).result(row, mention.tokens, mention.assertion, num, accepted_R)
            pairs[mention.text_position].append(mention.result(texts, scores))
        return pairs

    def _scores(
        self, tokens: Sequence[Sequence[str]], chosen: RelationFacets, *, top_k: int | None, evidence: bool
    ) -> list[PatternScore]:
        arrays = score_arrays(self.model, tokens, chosen)
        decisions = PatternDecisions(chosen, arrays, self._training_patterns if evidence else None)
        return [decisions.result(row, pattern, assertion_of(pattern), top_k) for row, pattern in enumerate(tokens)]


def _check_scores(num_scores: int, limit: int | None) -> None:
    if limit is not None and num_scores > limit:
        rule = f"have more relations of pairs of entities than the {limit} left within the limit"
        raise InvalidInputError(f"{rule}: send fewer texts or a smaller top_k", path="texts")


def _in_range(number: int | None, name: str, limit: int = MAX_TOP_K) -> int | None:
    if number is not None and not 1 <= number <= limit:
        raise InvalidInputError(f"must be 1 to {limit}, got {number}", path=name)
    return number
