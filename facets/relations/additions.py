"""The relations that are known: those of the model and those added at run time by example patterns."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConflictError, InvalidInputError, NotFoundError
from facets.relations.contract import PatternEncoder
from facets.relations.fitting import fitted_facets
from facets.relations.patterns import tokenize_patterns
from facets.relations.ranking import RelationFacets
from facets.relations.results import RelationInfo
from facets.relations.store import AddedRelation, read_added, write_added
from facets.text.near_names import NearNames

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

    Raises:
        StorageError: ``data_dir`` cannot be read or is damaged.
    """

    def __init__(self, model: PatternEncoder, data_dir: Path | None) -> None:
        self._model = model
        self._data_dir = data_dir
        self._lock = threading.Lock()
        self._added = read_added(data_dir) if data_dir is not None else []
        self.all = self._with_added(self._added)

    def chosen(self, relations: Sequence[str] | None) -> RelationFacets:
        """The relations of these names, in their order; None: all.

        Raises:
            InvalidInputError: No name, or one twice.
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
        for position, name in enumerate(relations):
            if name not in places:
                raise self._unknown(name)
            if name in relations[:position]:
                raise InvalidInputError(f"must be distinct, got {name!r} twice", path="relations")
        return everything.restricted([places[name] for name in relations])

    def infos(self) -> list[RelationInfo]:
        """What is known of every relation, by name."""
        examples = {relation.name: relation.examples for relation in self._added}
        counts = dict(zip(self._model.relations.names, self._model.relations.num_pairs, strict=True))
        everything = self.all
        return [
            RelationInfo(name, float(threshold), counts.get(name, 0), examples.get(name, ()))
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
            self._replace_added([*self._added, AddedRelation(name, patterns, float(value))])
        return RelationInfo(name, float(value), 0, patterns)

    def remove(self, name: str) -> None:
        """See ``RelationEngine.remove_relation``."""
        with self._lock:
            left = [relation for relation in self._added if relation.name != name]
            if len(left) == len(self._added):
                if name in self._model.relations.names:
                    raise InvalidInputError(f"is {name!r}, a relation of the model's own, which stays", path="name")
                raise self._unknown(name)
            self._replace_added(left)

    def near_names(self, name: str, *, top_k: int = 5) -> list[str]:
        """Known names most like an unknown one, for error messages."""
        names = self.all.names
        return [names[place] for place in NearNames(names).find(name, top_k=top_k)]

    def _unknown(self, name: str) -> NotFoundError:
        near = ", ".join(self.near_names(name)) or "none"
        return NotFoundError(
            f"no relation {name[:80]!r}; near names: {near}", resource_type="relation", resource_name=name[:80]
        )

    def _replace_added(self, added: list[AddedRelation]) -> None:
        everything = self._with_added(added)
        if self._data_dir is not None:
            write_added(self._data_dir, added)
        self._added, self.all = added, everything

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
