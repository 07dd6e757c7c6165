"""The known relations: those of the model, and those added at run time from example patterns.

An addition is durable before the call returns. Its facets are fitted to the facets of the examples.
Shape suffixes: E examples, N their facets, K pattern facets, J relation facets, D dimensions.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from facets.arrays import Floats
from facets.errors import ConflictError, InvalidInputError, NotFoundError
from facets.language.interruption import interrupted_by
from facets.language.near_names import NearNames
from facets.language.vectors import unit_rows
from facets.relations.model import RelationModel
from facets.relations.patterns import tokenize_patterns
from facets.relations.results import Relation
from facets.relations.scoring import RelationFacets
from facets.storage.records import NO_NEWS, News, Record, RecordFollower, RecordStore, record_schema
from facets.storage.sql import SqlDatabase

_MAX_NAME_CHARS = 200
_MAX_EXAMPLES = 100
_FILE = "relations.sqlite3"
_ITERATIONS = 10  # of k-means
_NEAR_NAMES = 5
_KIND = "relation"
SCHEMA = record_schema("file of added relations", 0x46415245)  # "FARE"


class AddedRelationStore(RecordStore):
    """The relations added to one model, in a folder, created when absent, or a database shared by several servers."""

    def __init__(self, place: Path | SqlDatabase, model: str) -> None:
        super().__init__(place / _FILE if isinstance(place, Path) else place, f"relations/{model}", SCHEMA)


def added_record(relation: Relation) -> Record:
    """An added relation as it is stored; a record of its name without a value removes it."""
    values = {name: getattr(relation, name) for name in ("name", "examples", "threshold")}
    return Record(_KIND, relation.name, json.dumps(values).encode())


def updated(known: Sequence[Relation], news: News) -> list[Relation]:
    """The added relations, in the order they were added, after news of the store."""
    relations = {relation.name: relation for relation in known}
    for _, name, value in news.records:
        relations.pop(name, None)
        if value is not None:
            values = json.loads(value)
            examples = tuple(map(str, values["examples"]))
            relations[name] = Relation(name=name, threshold=float(values["threshold"]), examples=examples)
    return list(relations.values())


class Additions(RecordFollower[AddedRelationStore]):
    """The relations of a model and those added to it: one writer at a time, readers never wait.

    ``place``: as for ``AddedRelationStore``; None: additions are kept in memory only.
    """

    def __init__(self, model: RelationModel, place: Path | SqlDatabase | None) -> None:
        super().__init__(None if place is None else AddedRelationStore(place, model.name))
        self._model = model
        # The added relations, and the facets of all relations; replaced together to stay consistent.
        self._known: tuple[list[Relation], RelationFacets]
        self.take(NO_NEWS)
        self.follow(now=True)
        # Normalised alias -> relation, and whether head and tail are exchanged.
        self._aliases: dict[str, tuple[str, bool]] = {}
        for alias, meaning in model.relations.meanings().items():
            self._aliases.setdefault(_normalised(alias), meaning)

    @property
    def all(self) -> RelationFacets:
        """All relations, trained and added."""
        self.follow()
        return self._known[1]

    @interrupted_by(lambda: None)  # a caller that gives up must not keep these additions from later callers
    def take(self, news: News) -> None:
        """Applies what was written to the store, by this server or another."""
        added = updated([] if news.is_all else self._known[0], news)
        self._known = added, self._with_added(added)

    def chosen(self, relations: Sequence[str] | None) -> RelationFacets:
        """The relations with these names or aliases, in the given order; None: all.

        Raises InvalidInputError for no name and for two names of one relation, NotFoundError for an unknown one.
        """
        known = self.all
        if relations is None:
            return known
        if isinstance(relations, str):
            raise TypeError(f"relations must be a sequence of str, got one str: try [{relations!r}]")
        if not relations:
            raise InvalidInputError("must name at least one relation, or be left out", path="relations")
        columns = {name: column for column, name in enumerate(known.names)}
        asked_as: dict[str, str] = {}
        for alias in relations:
            name = alias if alias in columns else self._aliases.get(_normalised(alias), ("", False))[0]
            if name not in columns:
                raise self._unknown(alias)
            if name in asked_as:
                rule = "twice" if asked_as[name] == alias else f"and {asked_as[name]!r}, which mean the same"
                raise InvalidInputError(f"must be distinct, got {alias!r} {rule}", path="relations")
            asked_as[name] = alias
        return known.restricted([columns[name] for name in asked_as])

    def is_inverse(self, name: str) -> bool:
        """Whether a name is an alias for a relation with head and tail exchanged."""
        return name not in self.all.names and self._aliases.get(_normalised(name), ("", False))[1]

    def relations(self) -> list[Relation]:
        """All relations and their meaning, by name."""
        self.follow()
        added, known = self._known
        own = self._model.relations
        trained = [
            Relation(name=name, threshold=threshold, num_pairs=num_pairs, **asdict(details))
            for name, threshold, num_pairs, details in zip(
                own.names, known.thresholds[: len(own.names)].tolist(), own.num_pairs, own.details, strict=True
            )
        ]
        return sorted([*trained, *added], key=lambda relation: relation.name)

    def add(self, name: str, examples: Sequence[str], *, threshold: float | None = None) -> Relation:
        """See ``RelationEngine.add_relation``."""
        if not name.strip() or len(name) > _MAX_NAME_CHARS or not name.isprintable():
            rule = f"must have 1 to {_MAX_NAME_CHARS} printable characters, got {name[:80]!r}"
            raise InvalidInputError(rule, path="name")
        tokens = tokenize_patterns(examples, self._model.tokenizer, path=("examples",))
        if not 1 <= len(tokens) <= _MAX_EXAMPLES:
            raise InvalidInputError(f"must be 1 to {_MAX_EXAMPLES}, got {len(tokens)}", path="examples")
        value = self._model.relations.confidence.default_threshold if threshold is None else threshold
        if not -1.0 <= value <= 1.0:
            raise InvalidInputError(f"must be in [-1, 1], got {threshold}", path="threshold")
        patterns = tuple(" ".join(pattern) for pattern in tokens)
        with self.lock:
            self.follow(now=True)
            added, known = self._known
            if name in known.names:
                raise ConflictError(f"relation {name!r} exists; choose another name")
            threshold = float(np.float32(value))  # the precision of scores
            relation = Relation(name=name, threshold=threshold, examples=patterns)
            self._replace([*added, relation], added_record(relation))
        return relation

    def remove(self, name: str) -> Relation:
        """See ``RelationEngine.remove_relation``."""
        with self.lock:
            self.follow(now=True)
            added = {relation.name: relation for relation in self._known[0]}
            if name not in added:
                if name in self._model.relations.names:
                    raise InvalidInputError(f"is {name!r}, a relation of the model's own, which stays", path="name")
                raise self._unknown(name)
            removed = added.pop(name)
            self._replace(list(added.values()), Record(_KIND, name, None))
        return removed

    def _replace(self, added: list[Relation], record: Record) -> None:
        """Computes the facets, writes the change, and then shows it to readers."""
        known = added, self._with_added(added)
        if self.store is not None:
            self.seen = self.store.write([record], after=self.seen)
        self._known = known

    def _unknown(self, name: str) -> NotFoundError:
        names = self.all.names
        near = ", ".join(names[index] for index in NearNames(names).find(name, top_k=_NEAR_NAMES)) or "none"
        return NotFoundError(
            f"no relation {name[:80]!r}; near names: {near}", resource_type="relation", resource_name=name[:80]
        )

    def _with_added(self, added: Sequence[Relation]) -> RelationFacets:
        own = self._model.relations
        facets: list[Floats] = [own.facets]
        for relation in added:
            patterns = self._model.encode_patterns([example.split() for example in relation.examples])
            facets.append(fitted_facets(patterns, own.facets.shape[1])[None])
        thresholds = [*own.confidence.thresholds, *(relation.threshold for relation in added)]
        return RelationFacets(
            (*own.names, *(relation.name for relation in added)),
            np.concatenate(facets),
            np.array(thresholds, dtype=np.float32),
            np.array([*range(len(own.names)), *[-1] * len(added)], dtype=np.int64),
        )


def _normalised(name: str) -> str:
    """``birth place`` and ``Birth_Place`` become ``birthplace``."""
    return "".join(filter(str.isalnum, name)).casefold()


def fitted_facets(facets_EKD: Floats, num_facets: int) -> Floats:
    """Cluster centres ``[J, D]`` of the examples' facets, at unit length; some repeat if there are fewer facets.

    Spherical k-means that starts from the facets farthest apart; deterministic.
    """
    units_ND = unit_rows(facets_EKD.reshape(-1, facets_EKD.shape[-1]))
    if len(units_ND) <= num_facets:
        return units_ND[np.arange(num_facets) % len(units_ND)]
    chosen = [0]
    while len(chosen) < num_facets:
        chosen.append(int((units_ND @ units_ND[chosen].T).max(axis=1).argmin()))
    centres_JD = units_ND[chosen]
    for _ in range(_ITERATIONS):
        nearest_N = (units_ND @ centres_JD.T).argmax(axis=1)
        sums_JD = np.zeros_like(centres_JD)
        np.add.at(sums_JD, nearest_N, units_ND)
        is_empty_J1 = (np.bincount(nearest_N, minlength=num_facets) == 0)[:, None]
        centres_JD = unit_rows(np.where(is_empty_J1, centres_JD, sums_JD))
    return centres_JD
