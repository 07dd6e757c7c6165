"""The relations that are known: those of the model and those added at run time by example patterns.

Added ones are durable before the caller hears of it, in a file or where several servers share them; their facets are
fitted to the examples'.

Shape suffixes: E examples, N their facets, K pattern facets, J relation facets, D dimensions.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConflictError, InvalidInputError, NotFoundError
from facets.language.interruption import interrupted_by
from facets.language.near_names import NearNames
from facets.language.vectors import unit_rows
from facets.relations.model import RelationModel
from facets.relations.patterns import tokenize_patterns
from facets.relations.results import Relation
from facets.relations.scoring import RelationFacets
from facets.relations.tables import RelationDetails, RelationTable
from facets.storage import NO_NEWS, News, Record, RecordFollower, RecordStore, SqlDatabase, record_schema

_MAX_NAME_CHARS = 200
_MAX_EXAMPLES = 100
_FILE = "relations.sqlite3"
_ITERATIONS = 10  # of k-means
_KIND = "relation"
SCHEMA = record_schema("file of added relations", 0x46415245)  # "FARE"


@dataclass(frozen=True, slots=True)
class AddedRelation:
    """A relation and the patterns it was added by."""

    name: str  # distinct from all others
    examples: tuple[str, ...]  # normalised patterns
    threshold: float  # scores from here on are accepted


class AddedRelationStore(RecordStore):
    """The relations added to one model.

    ``place``: a folder, which is made when absent, or the database that servers share.

    Raises:
        StorageError: See :class:`facets.storage.RecordStore`.
    """

    def __init__(self, place: Path | SqlDatabase, model: str) -> None:
        super().__init__(place / _FILE if isinstance(place, Path) else place, f"relations/{model}", SCHEMA)

    def read(self) -> list[AddedRelation]:
        """All added relations, in the order they were added.

        Raises:
            StorageError: The store cannot be read.
        """
        return _after([], self.news())

    def add(self, relation: AddedRelation, *, after: int | None = None) -> int:
        """Adds a relation, see :meth:`facets.storage.RecordStore.write`."""
        return self.write([Record(_KIND, relation.name, json.dumps(asdict(relation)).encode())], after=after)

    def remove(self, name: str, *, after: int | None = None) -> int:
        """Takes a relation away for good, likewise."""
        return self.write([Record(_KIND, name, None)], after=after)


def _after(known: Sequence[AddedRelation], news: News) -> list[AddedRelation]:
    named = {relation.name: relation for relation in known}
    for _, name, value in news.records:
        named.pop(name, None)
        if value is not None:
            values = json.loads(value)
            examples = tuple(map(str, values["examples"]))
            named[name] = AddedRelation(str(values["name"]), examples, float(values["threshold"]))
    return list(named.values())


class Additions(RecordFollower[AddedRelationStore]):
    """The additions to a model; one writer at a time, readers never wait.

    ``place``: folder of the additions, made when absent, or the database that servers share; None: they live in memory
    only.

    Attributes:
        symmetric: Names of relations that hold both ways round.

    Raises:
        StorageError: ``place`` cannot be read or is damaged.
    """

    def __init__(self, model: RelationModel, place: Path | SqlDatabase | None) -> None:
        super().__init__(None if place is None else AddedRelationStore(place, model.name))
        self._model = model
        self._known: tuple[list[AddedRelation], RelationFacets]  # the added ones, and all; one pair, so they agree
        self.take(NO_NEWS)
        self.follow(now=True)
        self._aliases = _aliases(model.relations)
        self.symmetric = model.relations.symmetric_names

    @property
    def all(self) -> RelationFacets:
        """Every relation, trained and added."""
        self.follow()
        return self._known[1]

    @interrupted_by(lambda: None)  # a caller in a hurry must not keep all who come after him from what others added
    def take(self, news: News) -> None:
        """Has the relations that were added by whichever server."""
        added = _after([] if news.is_all else self._known[0], news)
        self._known = added, self._with_added(added)

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

    def infos(self) -> list[Relation]:
        """What is known of every relation, by name."""
        self.follow()
        added, everything = self._known
        examples = {relation.name: relation.examples for relation in added}
        counts = dict(zip(self._model.relations.names, self._model.relations.num_pairs, strict=True))
        details = dict(zip(self._model.relations.names, self._model.relations.details, strict=True))
        return [
            Relation(
                name=name,
                threshold=float(threshold),
                num_pairs=counts.get(name, 0),
                examples=examples.get(name, ()),
                **asdict(details.get(name, RelationDetails())),
            )
            for name, threshold in sorted(zip(everything.names, everything.thresholds, strict=True))
        ]

    def add(self, name: str, examples: Sequence[str], *, threshold: float | None = None) -> Relation:
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
        with self.lock:
            self.follow(now=True)
            added, everything = self._known
            if name in everything.names:
                raise ConflictError(f"relation {name!r} exists; choose another name")
            relation = AddedRelation(name, patterns, float(np.float32(value)))  # as it is scored with
            added = [*added, relation]
            everything = self._with_added(added)
            if self.store is not None:
                self.seen = self.store.add(relation, after=self.seen)
            self._known = added, everything
        return _info(relation)

    def remove(self, name: str) -> Relation:
        """See ``RelationEngine.remove_relation``."""
        with self.lock:
            self.follow(now=True)
            found = [relation for relation in self._known[0] if relation.name == name]
            if not found:
                if name in self._model.relations.names:
                    raise InvalidInputError(f"is {name!r}, a relation of the model's own, which stays", path="name")
                raise self._unknown(name)
            left = [relation for relation in self._known[0] if relation.name != name]
            everything = self._with_added(left)
            if self.store is not None:
                self.seen = self.store.remove(name, after=self.seen)
            self._known = left, everything
        return _info(found[0])

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


def _info(relation: AddedRelation) -> Relation:
    return Relation(name=relation.name, threshold=relation.threshold, examples=relation.examples)


def _aliases(relations: RelationTable) -> dict[str, tuple[str, bool]]:
    """Relation behind each other name, and whether head and tail are exchanged; however it is spelled."""
    meanings: dict[str, tuple[str, bool]] = {}
    for other, meaning in relations.meanings().items():
        meanings.setdefault(_plain(other), meaning)
    return meanings


def _plain(name: str) -> str:
    """``birth place`` and ``Birth_Place`` are ``birthPlace``."""
    return "".join(filter(str.isalnum, name)).casefold()


def fitted_facets(facets_EKD: NDArray[np.float32], num_facets: int) -> NDArray[np.float32]:
    """Cluster centres of the examples' facets: spherical k-means from the facets that are farthest apart.

    ``facets_EKD``: facets of the examples, ``[E, K, D]``, any lengths. ``num_facets``: J; with fewer facets than that,
    they are repeated in turn. Returns ``[J, D]`` float32, unit length; the same for the same examples.
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
        # A centre without facets stays where it is.
        empty_J1 = (np.bincount(nearest_N, minlength=num_facets) == 0)[:, None]
        centres_JD = unit_rows(np.where(empty_J1, centres_JD, sums_JD))
    return centres_JD
