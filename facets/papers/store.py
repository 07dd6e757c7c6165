"""Papers and vectors added since the training: how they are stored, and in memory whose papers are whose."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.errors import DamagedError, InvalidInputError
from facets.papers.records import Author, CandidateKind, Paper
from facets.papers.trained import TrainedLookup
from facets.storage import News, Record, RecordStore, SqlDatabase, record_schema

_FILE = "recommendation.sqlite3"
SCHEMA = record_schema("file of additions", 0x46415041)  # "FAPA"
_PAPER, _VECTOR, _SENTENCES, _MEMBERSHIP, _REVISION = "paper", "vector", "sentences", "membership", "revision"


@dataclass(frozen=True, slots=True)
class AddedVector:
    """The fitted vector of an author or a citing paper; ``vector`` is ``[D]`` float32."""

    kind: CandidateKind
    id: str
    name: str
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Added:
    """What was added."""

    papers: dict[str, Paper] = field(default_factory=dict)  # by id
    vectors: list[AddedVector] = field(default_factory=list)  # fitted ones
    # Sentence vectors `[P]` of papers, by id; of a model without any none.
    sentences: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    # Author and paper: papers of an author beyond those that name him or her.
    given: set[tuple[str, str]] = field(default_factory=set)
    revision: str = ""  # of the model that all vectors were made with; empty where nothing was added

    @classmethod
    def of(cls, news: News) -> "Added":
        """What was written, by kind and key.

        Raises:
            DamagedError: It is not what :meth:`AdditionStore.add` writes.
        """
        added, revision = cls(), ""
        try:
            for kind, text, value in sorted(news.records):
                key, blob = json.loads(text), value or b""
                if kind == _PAPER:
                    added.papers[key] = _decoded(json.loads(blob))
                elif kind == _VECTOR:
                    name, _, vector = blob.partition(b"\n")
                    added.vectors.append(AddedVector(CandidateKind(key[0]), key[1], json.loads(name), _vector(vector)))
                elif kind == _SENTENCES:
                    added.sentences[key] = _vector(blob)
                elif kind == _MEMBERSHIP:
                    added.given.add((key[0], key[1]))
                elif kind == _REVISION:
                    revision = blob.decode()
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise DamagedError(f"added papers are damaged: {error}") from error
        return cls(added.papers, added.vectors, added.sentences, added.given, revision)


class AdditionStore(RecordStore):
    """The papers added to one model, and what was fitted to them.

    ``place``: a folder, which is made when absent, or the database that servers share.

    Raises:
        StorageError: See :class:`facets.storage.RecordStore`.
    """

    def __init__(self, place: Path | SqlDatabase, model_name: str) -> None:
        super().__init__(place / _FILE if isinstance(place, Path) else place, f"papers/{model_name}", SCHEMA)

    def content(self) -> Added:
        """Everything that was added."""
        return Added.of(self.news())

    def add(
        self,
        *,
        revision: str,
        papers: Iterable[Paper] = (),
        vectors: Iterable[AddedVector] = (),
        sentences: Mapping[str, NDArray[np.float32]] | None = None,
        given: Iterable[tuple[str, str]] = (),
        after: int | None = None,
    ) -> int:
        """Stores everything in one durable transaction; papers and vectors of known ids are replaced.

        ``after``: see :meth:`facets.storage.RecordStore.write`.

        Raises:
            InvalidInputError: An id or a name is no valid Unicode; nothing was stored.
            StorageError: It could not be written; nothing was stored.
        """
        lines: list[tuple[str, object, bytes]] = [(_REVISION, "", revision.encode())]
        lines += [(_PAPER, paper.id, json.dumps(_encoded(paper)).encode()) for paper in papers]
        lines += [(_VECTOR, [v.kind, v.id], _text(v.name) + b"\n" + _bytes(v.vector)) for v in vectors]
        lines += [(_SENTENCES, key, _bytes(vector)) for key, vector in (sentences or {}).items()]
        lines += [(_MEMBERSHIP, pair, b"") for pair in given]
        return self.write([Record(kind, _text(key).decode(), value) for kind, key, value in lines], after=after)


def _text(value: object) -> bytes:
    """JSON in ASCII, which any database holds."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"ids and names must be valid Unicode, got a lone surrogate: {error}") from error
    return json.dumps(value).encode()


def _bytes(vector: NDArray[np.float32]) -> bytes:
    return vector.astype("<f4").tobytes()


def _vector(blob: bytes) -> NDArray[np.float32]:
    return np.frombuffer(blob, dtype="<f4").astype(np.float32)


def _encoded(paper: Paper) -> dict[str, object]:
    return {
        "id": paper.id,
        "title": paper.title,
        "abstract": paper.abstract,
        "authors": [[author.name, author.id] for author in paper.authors],
        "cited_by": list(paper.cited_by_ids),
        "year": paper.year,
    }


def _decoded(values: Mapping[str, Any]) -> Paper:
    return Paper(
        title=values["title"],
        abstract=values["abstract"],
        id=values["id"],
        authors=tuple(Author(name, key) for name, key in values["authors"]),
        cited_by_ids=tuple(values["cited_by"]),
        year=values["year"],
    )


# By kind and candidate: papers in order, as the keys of a dictionary.
_Members = dict[CandidateKind, dict[str, dict[str, None]]]


@dataclass(frozen=True, slots=True)
class Change:
    """What one call adds."""

    papers: Mapping[str, Paper]  # by id; one of a known id takes the old one's place
    # Author and paper: papers of an author beyond those that name him or her.
    given: frozenset[tuple[str, str]] = frozenset()
    named: _Members = field(init=False)  # by kind and candidate, the papers of this change that name it
    given_to: dict[str, set[str]] = field(init=False)  # by author, what `given` says

    def __post_init__(self) -> None:
        named: _Members = {kind: {} for kind in CandidateKind}
        for paper in self.papers.values():
            for kind, key in candidates_of(paper):
                named[kind].setdefault(key, {})[paper.id] = None
        given_to: dict[str, set[str]] = {}
        for key, paper_id in sorted(self.given):  # new authors stand in one order, whatever the order of a set
            given_to.setdefault(key, set()).add(paper_id)
        object.__setattr__(self, "named", named)
        object.__setattr__(self, "given_to", given_to)


_NOTHING = Change({})


class AddedPapers:
    """All papers added since the training, by id and by candidate.

    Attributes:
        papers: By id, in the order of their latest addition.
    """

    def __init__(self, trained: TrainedLookup) -> None:
        self._trained = trained
        self.papers: dict[str, Paper] = {}
        self._named: _Members = {kind: {} for kind in CandidateKind}
        self._given: dict[str, set[str]] = {}
        self._given_by_paper: dict[str, set[str]] = {}

    def concerned(self, change: Change) -> dict[CandidateKind, list[str]]:
        """By kind, the candidates whose papers, or their texts, a change changes; each once."""
        found: dict[CandidateKind, dict[str, None]] = {kind: {} for kind in CandidateKind}
        for paper in change.papers.values():
            for kind, key in self._known_candidates(paper.id):
                found[kind][key] = None
        for kind, named in change.named.items():
            found[kind].update(dict.fromkeys(named))
        found[CandidateKind.AUTHORS].update(dict.fromkeys(change.given_to))
        return {kind: list(keys) for kind, keys in found.items()}

    def papers_of(self, kind: CandidateKind, key: str, change: Change = _NOTHING) -> list[str]:
        """Ids of a candidate's papers after a change: trained ones, added ones in order, those given by id."""
        named = [paper_id for paper_id in self._named[kind].get(key, ()) if paper_id not in change.papers]
        named += change.named[kind].get(key, ())
        seen = set(named)
        if kind is CandidateKind.AUTHORS:
            given = self._given.get(key, set()) | change.given_to.get(key, set())
            named += sorted(given - seen)
            seen |= given
        trained = [
            paper_id
            for paper_id in self._trained.papers_of(kind, key)
            if paper_id not in seen and paper_id not in self.papers and paper_id not in change.papers
        ]
        return trained + named

    def candidates(self, kind: CandidateKind) -> Iterable[str]:
        """Candidates with an added paper, or with one given by id."""
        given = self._given if kind is CandidateKind.AUTHORS else ()
        return dict.fromkeys([*self._named[kind], *given])

    def apply(self, change: Change) -> None:
        """Takes a change in."""
        for paper_id in change.papers:
            for kind, key in candidates_of(self.papers[paper_id]) if paper_id in self.papers else ():
                self._named[kind][key].pop(paper_id, None)
            self.papers.pop(paper_id, None)  # the latest addition counts
        self.papers.update(change.papers)
        for kind, named in change.named.items():
            for key, papers in named.items():
                self._named[kind].setdefault(key, {}).update(papers)
        for key, paper_id in change.given:
            self._given.setdefault(key, set()).add(paper_id)
            self._given_by_paper.setdefault(paper_id, set()).add(key)

    def _known_candidates(self, paper_id: str) -> Iterator[tuple[CandidateKind, str]]:
        """Who has a paper now: by its latest version, or by being given it."""
        if paper_id in self.papers:
            yield from candidates_of(self.papers[paper_id])
        else:
            yield from ((kind, key) for kind in CandidateKind for key in self._trained.candidates_of(kind, paper_id))
        yield from ((CandidateKind.AUTHORS, key) for key in sorted(self._given_by_paper.get(paper_id, ())))


def candidates_of(paper: Paper) -> list[tuple[CandidateKind, str]]:
    """Kind and id of everybody whom a paper names."""
    authors = [(CandidateKind.AUTHORS, author.key) for author in paper.authors]
    return authors + [(CandidateKind.CITATIONS, key) for key in paper.cited_by_ids]
