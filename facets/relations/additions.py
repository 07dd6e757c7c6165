"""The relations that are known: those of the model and those added at run time by example patterns."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConflictError, InvalidInputError, NotFoundError
from facets.language.near_names import NearNames
from facets.relations.contract import PatternEncoder
from facets.relations.details import RelationDetails
from facets.relations.fitting import fitted_facets
from facets.relations.patterns import tokenize_patterns
from facets.relations.ranking import RelationFacets
from facets.relations.results import RelationInfo
from facets.relations.store import AddedRelation, AddedRelationStore
from facets.relations.tables import RelationTable

__all__ = ["Additions"]

_MAX_NAME_CHARS = 200
_MAX_EXAMPLES = 100


class Additions:
    """The additions to a model; one writer at a time, readers never wait.

    Args:
        model: The model.
        data_dir: Folder of the additions, made when absent; None: they live in memory only.

    Attributes:
        all: Every relation, trained and added.
        symmetric: Names of those that hold both ways round.

    Raises:
        StorageError: ``data_dir`` cannot be read or is damaged.
    """

    def __init__(self, model: PatternEncoder, data_dir: Path | None) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._store = None if data_dir is None else AddedRelationStore(data_dir)
        self._added = [] if self._store is None else self._store.read()
        self.all = self._with_added(self._added)
        self._aliases = _aliases(model.relations)
        self.symmetric = model.relations.symmetric_names

    def close(self) -> None:
        """Closes the file."""
        if self._store is not None:
            self._store.close()

    def chosen(self, relations: Sequence[str] | None) -> RelationFacets:
        """The relations of these names or aliases, in their order; None: all.

        Raises:
            InvalidInputError: No name, or two of one relation.
            NotFoundError: No such relation; the message lists near names.
            TypeError: ``relations`` is one ``str``.
        """
        everything = self.all
        if relations is None:
            return everything
        if isinstance(relations, str):
            raise TypeError(f"relations must be a sequence of str, got one str: try [{relations!r}]")
        if not relations:
            raise InvalidInputError("must name at least one relation, or be left out", path="relations")
        places = {name: place for place, name in enumerate(everything.names)}
        named: dict[str, str] = {}
        for name in relations:
            known = name if name in places else self._aliases.get(_plain(name), ("", False))[0]
            if known not in places:
                raise self._unknown(name)
            if known in named:
                other = "twice" if named[known] == name else f"and {named[known]!r}, which mean the same"
                raise InvalidInputError(f"must be distinct, got {name!r} {other}", path="relations")
            named[known] = name
        return everything.restricted([places[name] for name in named])

    def is_inverse(self, name: str) -> bool:
        """Whether a name means one of the relations with head and tail exchanged."""
        return name not in self.all.names and self._aliases.get(_plain(name), ("", False))[1]

    def infos(self) -> list[RelationInfo]:
        """What is known of every relation, by name."""
        examples = {relation.name: relation.examples for relation in self._added}
        counts = dict(zip(self._model.relations.names, self._model.relations.num_pairs, strict=True))
        details = {name: self._model.relations.details_of(row) for row, name in enumerate(self._model.relations.names)}
        everything = self.all
        return [
            RelationInfo(
                name,
                float(threshold),
                counts.get(name, 0),
                examples.get(name, ()),
                details.get(name, RelationDetails()),
            )
            for name, threshold in sorted(zip(everything.names, everything.thresholds, strict=True))
        ]

    def add(self, name: str, examples: Sequence[str], *, threshold: float | None = None) -> RelationInfo:
        """See ``RelationEngine.add_relation``."""
        if not name.strip() or len(name) > _MAX_NAME_CHARS or not name.isprintable():
            raise InvalidInputError(
                f"must have 1 to {_MAX_NAME_CHARS} printable characters, got {name[:80]!r}", path="name"
            )
        tokens = tokenize_patterns(examples, self._model.tokenizer, path=("examples",))
        if not 1 <= len(tokens) <= _MAX_EXAMPLES:
            raise InvalidInputError(f"must be 1 to {_MAX_EXAMPLES}, got {len(tokens)}", path="examples")
        value = self._model.relations.confidence.default_threshold if threshold is None else threshold
        if not -1.0 <= value <= 1.0:
            raise InvalidInputError(f"must be in [-1, 1], got {threshold}", path="threshold")
        patterns = tuple(" ".join(pattern) for pattern in tokens)
        with self._lock:
            if name in self.all.names:
                raise ConflictError(f"relation {name!r} exists; choose another name")
            relation = AddedRelation(name, patterns, float(value))
            added = [*self._added, relation]
            everything = self._with_added(added)
            if self._store is not None:
                self._store.add(relation)
            self._added, self.all = added, everything
        return RelationInfo(name, float(value), 0, patterns)

    def remove(self, name: str) -> None:
        """See ``RelationEngine.remove_relation``."""
        with self._lock:
            left = [relation for relation in self._added if relation.name != name]
            if len(left) == len(self._added):
                if name in self._model.relations.names:
                    raise InvalidInputError(f"is {name!r}, a relation of the model's own, which stays", path="name")
                raise self._unknown(name)
            everything = self._with_added(left)
            if self._store is not None:
                self._store.remove(name)
            self._added, self.all = left, everything

    def near_names(self, name: str, *, top_k: int = 5) -> list[str]:
        """Known names most like an unknown one, for error messages."""
        names = self.all.names
        return [names[place] for place in NearNames(names).find(name, top_k=top_k)]

    def _unknown(self, name: str) -> NotFoundError:
        near = ", ".join(self.near_names(name)) or "none"
        return NotFoundError(
            f"no relation {name[:80]!r}; near names: {near}", resource_type="relation", resource_name=name[:80]
        )

    def _with_added(self, added: Sequence[AddedRelation]) -> RelationFacets:
        own = self._model.relations
        facets: list[NDArray[np.float32]] = [own.facets]
        for relation in added:
            patterns = self._model.encode_patterns([example.split() for example in relation.examples])
            facets.append(fitted_facets(patterns, self._model.num_relation_facets)[None])
        thresholds = [*own.confidence.thresholds, *(relation.threshold for relation in added)]
        return RelationFacets.of(
            (*own.names, *(relation.name for relation in added)),
            np.concatenate(facets),
            np.array(thresholds, dtype=np.float32),
            np.array([*range(len(own.names)), *[-1] * len(added)], dtype=np.int64),
        )


def _aliases(relations: RelationTable) -> dict[str, tuple[str, bool]]:
    """Relation behind each other name, and whether head and tail are exchanged; however it is spelled."""
    meanings: dict[str, tuple[str, bool]] = {}
    for row, name in enumerate(relations.names):
        details = relations.details_of(row)
        for others, is_inverse in (((name, *details.aliases), False), (details.inverse_aliases, True)):
            for other in others:
                meanings.setdefault(_plain(other), (name, is_inverse))
    return meanings


def _plain(name: str) -> str:
    """``birth place`` and ``Birth_Place`` are ``birthPlace``."""
    return "".join(filter(str.isalnum, name)).casefold()
