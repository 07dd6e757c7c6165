"""Relations between entities: patterns scored against relations, extraction from text, slot filling."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path

import numpy as np
from torch import Tensor

from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted
from facets.language.tokenizer import check_text
from facets.model.loading import load
from facets.relations.additions import Additions
from facets.relations.assertion import assertion_of
from facets.relations.decisions import PatternDecisions, TrainingPatterns
from facets.relations.entailment import Entailment, background_facets, detect_entailment, entailment_features
from facets.relations.entailment_features import PairFeatures
from facets.relations.entities import EntityFinder, EntitySpan, EntityType
from facets.relations.extraction import (
    PairMention,
    asserted_relations,
    group_tails,
    head_spans,
    pair_mentions,
    resolve_spans,
    symmetrised,
)
from facets.relations.model import RelationModel
from facets.relations.patterns import PairLimits, mirrored, tokenize_patterns
from facets.relations.results import EntityPair, PatternScore, RankedTail, Relation
from facets.relations.scoring import PatternCache, RelationFacets, ScoreArrays, score_arrays
from facets.storage import SqlDatabase


class RelationEngine:
    """Scores sentence patterns against relations, finds relations in texts, fills slots; may be shared by threads.

    Args:
        model: A model of the task relations.
        data_dir: Folder of the relations added at run time, made when absent, or the database that servers share;
                None: they live in memory only.

    Attributes:
        model: The model.

    Raises:
        InvalidInputError: The model's task is not relations.
        StorageError: ``data_dir`` cannot be read or is damaged.
    """

    def __init__(self, model: RelationModel, *, data_dir: str | Path | SqlDatabase | None = None) -> None:
        if model.task != "relations":
            raise InvalidInputError(f"{model.name}: expected a model for relations, got one for {model.task}")
        self.model = model
        self._additions = Additions(model, Path(data_dir) if isinstance(data_dir, str) else data_dir)
        self._known = TrainingPatterns(model)
        self._patterns = PatternCache(model)
        self._lock = threading.Lock()
        self._background_MD: Tensor | None = None

    @classmethod
    def load(
        cls, name_or_path: str | Path | None = None, *, data_dir: str | Path | SqlDatabase | None = None
    ) -> "RelationEngine":
        """Loads a model with its tables; the shipped ``facets-relations-en`` without an argument.

        Args:
            name_or_path: A shipped model's name or a checkpoint folder.
            data_dir: Folder of the relations added at run time, made when absent, or the database that servers share;
                None: they live in memory only.

        Raises:
            NotFoundError: No model of that name, no such folder.
            CheckpointError: The folder is damaged.
            InvalidInputError: The model's task is not relations.
            StorageError: ``data_dir`` cannot be read or is damaged.
        """
        return cls(load(name_or_path, RelationModel), data_dir=data_dir)

    def close(self) -> None:
        """Closes the file of the added relations."""
        self._additions.close()

    @property
    def background(self) -> Tensor:
        """Facets of patterns in general, ``[M, D]``; encoded at the first use."""
        with self._lock:
            if self._background_MD is None:
                self._background_MD = background_facets(self.model)
            return self._background_MD

    def score(
        self,
        patterns: Sequence[str],
        relations: Sequence[str] | None = None,
        *,
        top_k: int | None = None,
        evidence: bool = True,
    ) -> list[PatternScore]:
        """Scores patterns against relations.

        Args:
            patterns: Each holds ``$ARG1`` and ``$ARG2`` exactly once; other entities may be ``$ENT``.
            relations: Names to restrict to, or aliases; an inverse alias (``capitalOf``) is scored the other way
                round, under its own name. None: all.
            top_k: Relations in each result at most, the most probable ones; None: all.
            evidence: Add which facet met which, the relations near each facet and the nearest patterns of the training
                data; False is three times as fast.

        Returns:
            One result a pattern, in order.

        Raises:
            InvalidInputError: A pattern lacks an argument or has one twice (``field`` is ``patterns[i]``),
                ``relations`` is empty or has a name twice, or ``top_k`` is below 1.
            NotFoundError: No such relation; the message lists near names (``resource_type`` is ``relation``).
            TypeError: ``patterns`` is one ``str``.

        Example:
            >>> engine = RelationEngine.load()
            >>> [scores] = engine.score(["$ARG1 was born in $ARG2"], ["birthPlace", "spouse"])
            >>> scores.best.relation
            'birthPlace'
        """
        top_k = _checked(top_k, "top_k")
        tokens = tokenize_patterns(patterns, self.model.tokenizer)
        inverse = [name for name in relations or () if self._additions.is_inverse(name)]
        chosen = self._additions.chosen(relations)
        if inverse:
            chosen = chosen.restricted([p for p, name in enumerate(relations or ()) if name not in inverse])
        scores = self._scores(tokens, chosen, top_k=top_k, evidence=evidence)
        if not inverse:
            return scores
        # The pattern the other way round says how well the inverse fits.
        others = replace(self._additions.chosen(inverse), names=tuple(inverse))
        mirror_images = self._scores([mirrored(p) for p in tokens], others, top_k=top_k, evidence=evidence)
        return [one.merged(other, top_k=top_k) for one, other in zip(scores, mirror_images, strict=True)]

    def score_arrays(self, patterns: Sequence[str], relations: Sequence[str] | None = None) -> ScoreArrays:
        """``score`` as arrays ``[len(patterns), R]``, without negation and evidence: the fast way for many patterns.

        Columns stand in the order of ``relations``, or of ``relations()`` of the whole model.

        Raises:
            InvalidInputError, NotFoundError, TypeError: As for ``score``.
        """
        tokens = tokenize_patterns(patterns, self.model.tokenizer)
        names = [info.name for info in self.relations()] if relations is None else relations
        return self.score_tokens(tokens, self._additions.chosen(names))

    def score_tokens(
        self,
        patterns: Sequence[Sequence[str]],
        relations: RelationFacets,
        types: Sequence[tuple[EntityType, EntityType]] | None = None,
    ) -> ScoreArrays:
        """Scores of tokenized patterns; of arguments of these types, where they are known."""
        return score_arrays(self.model, patterns, relations, types=types, encode=self._patterns.encode)

    def extract(
        self,
        texts: Sequence[str],
        *,
        spans: Sequence[Sequence[EntitySpan]] | None = None,
        finder: EntityFinder | None = None,
        relations: Sequence[str] | None = None,
        limits: PairLimits | None = None,
        max_relations_per_pair: int | None = 1,
        top_k: int | None = None,
        evidence: bool = True,
    ) -> list[list[EntityPair]]:
        """Relations between the entities of each sentence.

        Accepted are only relations that the sentence asserts (``assertion``), a symmetric one in the order of the text.

        Entities come from exactly one of ``spans`` (the caller's) and ``finder`` (a gazetteer or a spaCy pipeline).

        Args:
            texts: Each with at least one word.
            spans: Entities of each text, one sequence a text; character offsets, in any order.
            finder: ``Gazetteer(names)`` or ``SpacyEntities(pipeline)``.
            relations: Names to restrict to; None: all.
            limits: How far apart two entities may be.
            max_relations_per_pair: Accepted relations of two entities at most, both directions together, the most
                probable ones; None: all that reach their thresholds.
            top_k: Relations in each result at most, the most probable ones; None: all.
            evidence: Add which facet met which and the relations near each facet; False is three times as fast.

        Returns:
            One list a text: every ordered pair of mentions of a clause within the limits, in the order of the text;
            pairs without an accepted relation too (``relations == ()``). Dates and numbers are no heads, and two
            mentions of one entity no pair.

        Raises:
            InvalidInputError: Blank text, both or neither source of entities, spans outside the text, empty or
                overlapping (``field`` is ``texts[i]`` or ``spans[i][j]``).
            NotFoundError: No such relation; the message lists near names.
            TypeError: ``texts`` is one ``str``.
        """
        chosen = self._additions.chosen(relations)
        _check_texts(texts)
        found = resolve_spans(texts, spans, finder)
        mentions = pair_mentions(texts, found, self.model.tokenizer, limits or PairLimits())
        most = _checked(max_relations_per_pair, "max_relations_per_pair")
        return self._pairs(texts, mentions, chosen, most=most, top_k=_checked(top_k, "top_k"), evidence=evidence)

    def fill_slot(
        self,
        head: str,
        relation: str,
        texts: Sequence[str],
        *,
        spans: Sequence[Sequence[EntitySpan]] | None = None,
        finder: EntityFinder | None = None,
        limits: PairLimits | None = None,
        evidence: bool = True,
    ) -> list[RankedTail]:
        """Tail entities t with ``relation(head, t)`` in the texts, best first, ties by name.

        Args:
            head: The head entity's name; it is found in the texts without regard to case, also where neither
                ``spans`` nor ``finder`` names it.
            relation: Name of the relation.
            texts: Each with at least one word.
            spans: As for ``extract``; candidates for the tail.
            finder: As for ``extract``.
            limits: As for ``extract``.
            evidence: As for ``extract``.

        Returns:
            Every candidate that stands in a sentence with the head; ``accepted`` says which reach the threshold.

        Raises:
            InvalidInputError: Blank head, or as for ``extract``.
            NotFoundError: No such relation; the message lists near names.
        """
        check_text(head, ("head",))
        head = head.strip()
        chosen, is_inverse = self._additions.chosen([relation]), self._additions.is_inverse(relation)
        _check_texts(texts)
        places = head_spans(texts, resolve_spans(texts, spans, finder), head)
        mentions = [
            mention
            for mention in pair_mentions(texts, places, self.model.tokenizer, limits or PairLimits())
            if mention.is_about(texts, head)
        ]
        found = self._pairs(texts, mentions, chosen, most=1, top_k=1, evidence=evidence)
        pairs = [pair for own in found for pair in own]
        asked = [(pair.tail if is_inverse else pair.head).text.casefold() == head.casefold() for pair in pairs]
        return group_tails(list(compress(pairs, asked)), is_inverse=is_inverse)

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[Entailment]:
        """Whether each premise entails the hypothesis beside it, and the other way round.

        Raises:
            InvalidInputError: Different lengths, or a bad pattern (``field`` is ``premises[i]`` or ``hypotheses[i]``).
            TypeError: One of them is one ``str``.
        """
        return detect_entailment(self.model, premises, hypotheses, self.background)

    def entailment_features(self, premises: Sequence[str], hypotheses: Sequence[str]) -> PairFeatures:
        """What ``entailment`` decides by, as arrays, without negation; at least one pair.

        Raises:
            InvalidInputError, TypeError: As for ``entailment``.
        """
        return entailment_features(self.model, premises, hypotheses, self.background)

    def relations(self) -> list[Relation]:
        """Every relation, trained and added, by name."""
        return self._additions.infos()

    def add_relation(self, name: str, examples: Sequence[str], *, threshold: float | None = None) -> Relation:
        """Adds a relation by example patterns, without training; durable in ``data_dir`` when this returns.

        Args:
            name: 1 to 200 printable characters.
            examples: 1 to 100 patterns.
            threshold: Scores from here on are accepted, in ``[-1, 1]``; None: the model's default.

        Returns:
            The relation as it is listed.

        Raises:
            InvalidInputError: A bad name (``field`` is ``name``), pattern (``examples[i]``) or ``threshold``.
            ConflictError: A relation of that name exists.
            StorageError: It could not be written; nothing was added.
        """
        return self._additions.add(name, examples, threshold=threshold)

    def remove_relation(self, name: str) -> Relation:
        """Takes a relation away that was added at run time, by whichever server, and returns what it was.

        Raises:
            NotFoundError: No relation of that name was added.
            InvalidInputError: It is one of the model's own.
            StorageError: The change could not be written.
        """
        return self._additions.remove(name)

    def near_names(self, name: str, *, top_k: int = 5) -> list[str]:
        """Known names most like an unknown one, for error messages."""
        return self._additions.near_names(name, top_k=top_k)

    def _pairs(
        self,
        texts: Sequence[str],
        mentions: Sequence[PairMention],
        chosen: RelationFacets,
        *,
        most: int | None,
        top_k: int | None,
        evidence: bool = True,
    ) -> list[list[EntityPair]]:
        # Equal patterns are encoded once.
        mirror_images = {mention.pattern: mention.mirrored_pattern for mention in mentions}
        rows = {pattern: row for row, pattern in enumerate(mirror_images)}
        types = [(head, tail) for _, head, tail in mirror_images]
        arrays = self.score_tokens([tokens for tokens, _, _ in mirror_images], chosen, types)
        symmetric_R = np.array([name in self._additions.symmetric for name in chosen.names], dtype=np.bool_)
        arrays = symmetrised(arrays, mirror_images, symmetric_R)
        rows_M = np.fromiter((rows[mention.pattern] for mention in mentions), dtype=np.int64, count=len(mentions))
        best_MR = asserted_relations(
            mentions, arrays.accepted[rows_M], arrays.probabilities[rows_M], symmetric_R=symmetric_R, most=most
        )
        decisions = self._decisions(chosen, arrays, top_k=top_k, evidence=evidence)
        result: list[list[EntityPair]] = [[] for _ in texts]
        for mention, row, best_R in zip(mentions, rows_M.tolist(), best_MR, strict=True):
            check_interrupted()
            scores = decisions.scores(row, mention.tokens, assertion=mention.assertion, accepted_R=best_R)
            result[mention.text_position].append(mention.result(texts, scores))
        return result

    def _scores(
        self, tokens: Sequence[Sequence[str]], chosen: RelationFacets, *, top_k: int | None, evidence: bool
    ) -> list[PatternScore]:
        decisions = self._decisions(chosen, self.score_tokens(tokens, chosen), top_k=top_k, evidence=evidence)
        return [decisions.scores(row, pattern, assertion=assertion_of(pattern)) for row, pattern in enumerate(tokens)]

    def _decisions(
        self, chosen: RelationFacets, arrays: ScoreArrays, *, top_k: int | None, evidence: bool
    ) -> PatternDecisions:
        return PatternDecisions(
            chosen, arrays, top_k=top_k, known=self._known if evidence else None, details=self.model.relations.details
        )


def _check_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise TypeError(f"texts must be a sequence of str, got one str: try [{texts[:20]!r}]")
    for position, text in enumerate(texts):
        check_text(text, ("texts", position))


def _checked(number: int | None, name: str) -> int | None:
    if number is not None and number < 1:
        raise InvalidInputError(f"must be >= 1, got {number}", path=name)
    return number
