"""Relations between entities: patterns scored against relations, extraction from text, slot filling."""

from collections.abc import Sequence
from pathlib import Path

from facets.tasks.entailment import EntailmentResult
from facets.tasks.relations_results import PairRelations, PatternScores, RankedTail, RelationInfo
from facets.text.entities import EntityFinder, EntitySpan
from facets.text.patterns import PatternLimits

__all__ = ["RelationScorer"]


class RelationScorer:
    """Scores sentence patterns against relations, finds relations in texts, fills slots; may be shared by threads.

    Attributes:
        num_facets: K of a pattern.
        num_relation_facets: K_rel of a relation.
    """

    @classmethod
    def load(cls, name_or_path: str | Path | None = None, *, data_dir: Path | None = None) -> "RelationScorer":
        """Loads a model with its tables; the shipped ``facets-relations-en`` without an argument.

        Args:
            name_or_path: A shipped model's name or a checkpoint folder.
            data_dir: Folder of the relations added at run time, made when absent; None: they live in memory only.

        Raises:
            NotFoundError: No model of that name, no such folder.
            CheckpointError: The folder is damaged, or its task is not relations.
            StorageError: ``data_dir`` cannot be read or written.
        """
        raise NotImplementedError

    def score(self, patterns: Sequence[str], relations: Sequence[str] | None = None) -> list[PatternScores]:
        """Scores patterns against relations.

        Args:
            patterns: Each holds ``$ARG1`` and ``$ARG2`` exactly once; other entities may be ``$ENT``.
            relations: Names to restrict to; None: all.

        Returns:
            One result a pattern, in order.

        Raises:
            InvalidInputError: A pattern lacks an argument or has one twice (``field`` is ``patterns[i]``), or
                ``relations`` is empty or has a name twice.
            NotFoundError: No such relation; the message lists near names (``resource_type`` is ``relation``).
            TypeError: ``patterns`` is one ``str``.
        """
        raise NotImplementedError

    def extract(
        self,
        texts: Sequence[str],
        *,
        spans: Sequence[Sequence[EntitySpan]] | None = None,
        finder: EntityFinder | None = None,
        relations: Sequence[str] | None = None,
        limits: PatternLimits | None = None,
    ) -> list[list[PairRelations]]:
        """Relations between the entities of each sentence, both directions.

        Entities come from exactly one of ``spans`` (the caller's) and ``finder`` (a gazetteer or a spaCy pipeline).

        Args:
            texts: Each with at least one word.
            spans: Entities of each text, one sequence a text; character offsets, in any order.
            finder: ``Gazetteer(names)`` or ``SpacyEntities(pipeline)``.
            relations: Names to restrict to; None: all.
            limits: How far apart two entities may be.

        Returns:
            One list a text: every ordered pair of mentions of a sentence within the limits, in the order of the text;
            pairs without an accepted relation too (``relations == ()``).

        Raises:
            InvalidInputError: Blank text, both or neither source of entities, spans outside the text, empty or
                overlapping (``field`` is ``texts[i]`` or ``spans[i][j]``).
            NotFoundError: No such relation; the message lists near names.
            TypeError: ``texts`` is one ``str``.
        """
        raise NotImplementedError

    def fill_slot(
        self,
        head: str,
        relation: str,
        texts: Sequence[str],
        *,
        spans: Sequence[Sequence[EntitySpan]] | None = None,
        finder: EntityFinder | None = None,
        limits: PatternLimits | None = None,
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

        Returns:
            Every candidate that stands in a sentence with the head; ``accepted`` tells which reach the threshold.

        Raises:
            InvalidInputError: Blank head, or as for ``extract``.
            NotFoundError: No such relation; the message lists near names.
        """
        raise NotImplementedError

    def entailment(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[EntailmentResult]:
        """Whether each premise entails the hypothesis beside it, and the other way round.

        Raises:
            InvalidInputError: Different lengths, or a bad pattern (``field`` is ``premises[i]`` or ``hypotheses[i]``).
            TypeError: One of them is one ``str``.
        """
        raise NotImplementedError

    def relations(self) -> list[RelationInfo]:
        """Every relation, trained and added, by name."""
        raise NotImplementedError

    def add_relation(self, name: str, examples: Sequence[str], *, threshold: float | None = None) -> RelationInfo:
        """Adds a relation by example patterns, without training; durable in ``data_dir`` when this returns.

        Args:
            name: 1 to 200 printable characters without tabs.
            examples: 1 to 100 patterns.
            threshold: Scores from here on are accepted, in ``[-1, 1]``; None: the median of the trained relations'.

        Raises:
            InvalidInputError: A bad name (``field`` is ``name``), pattern (``examples[i]``) or threshold (``threshold``).
            ConflictError: A relation of that name exists.
            StorageError: It could not be written; nothing was added.
        """
        raise NotImplementedError

    def remove_relation(self, name: str) -> None:
        """Takes a relation away that was added at run time.

        Raises:
            NotFoundError: No relation of that name was added.
            InvalidInputError: It is one of the model's own.
            StorageError: The change could not be written.
        """
        raise NotImplementedError

    def near_names(self, name: str, *, top_k: int = 5) -> list[str]:
        """Known names most like an unknown one, for error messages."""
        raise NotImplementedError


