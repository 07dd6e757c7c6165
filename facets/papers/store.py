"""Papers and vectors added since the training: their SQLite file, and in memory whose papers are whose."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.errors import DamagedError, InvalidInputError, StorageError
from facets.papers.records import Author, CandidateKind, Paper
from facets.papers.trained import TrainedLookup
from facets.storage import Database, Schema, clear_errors, make_private_directory, tables_with_checksums

_FILE = "recommendation.sqlite3"
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE papers (id TEXT PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE vectors (
    kind TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (kind, id)
);
-- Papers of an author beyond those that name him or her: given by add_authors.
CREATE TABLE memberships (kind TEXT NOT NULL, id TEXT NOT NULL, paper TEXT NOT NULL, PRIMARY KEY (kind, id, paper));
-- Of the added papers, where the model has such vectors.
CREATE TABLE sentences (id TEXT PRIMARY KEY, vector BLOB NOT NULL);
INSERT INTO meta (key, value) VALUES ('writes', '0')
"""
_TABLE_NAMES = ("meta", "papers", "vectors", "memberships", "sentences")


SCHEMA = Schema(
    title="file of additions",
    application_id=0x46415041,  # "FAPA"
    migrations=(tables_with_checksums(_TABLES, *_TABLE_NAMES),),
    checked=_TABLE_NAMES,
    counter="SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'writes'",
)


@dataclass(frozen=True, slots=True)
class AddedVector:
    """The fitted vector of an author or a citing paper; ``vector`` is ``[D]`` float32."""

    kind: CandidateKind
    id: str
    name: str
    vector: NDArray[np.float32]


class AdditionStore:
    """The additions of one model in one folder; a call has stored all of its arguments or nothing.

    Raises:
        StorageError: The folder cannot be opened, is damaged, or belongs to another model.
    """

    def __init__(self, folder: Path, model_name: str) -> None:
        self._path = folder / _FILE
        with clear_errors(f"cannot make the folder {folder} of the additions"):
            make_private_directory(folder)
        self._database = Database(self._path, SCHEMA)
        try:
            owner = self._meta("model") or self._claim(model_name)
            if owner != model_name:
                raise StorageError(f"{self._path}: expected additions to the model {model_name!r}, got {owner!r}")
        except BaseException:
            self._database.close()
            raise

    def _claim(self, model_name: str) -> str:
        with self._database.write() as connection:
            connection.execute("INSERT INTO meta (key, value) VALUES ('model', ?)", (model_name,))
        return model_name

    def _meta(self, key: str) -> str:
        found = self._read("SELECT value FROM meta WHERE key = ?", key)
        return str(found[0][0]) if found else ""

    def revision(self) -> str:
        """Revision of the model that all vectors were made with; empty before the first addition."""
        return self._meta("revision")

    def papers(self) -> list[Paper]:
        """All added papers, in the order of their ids."""
        rows = self._read("SELECT record FROM papers ORDER BY id")
        return [_decoded(str(record), self._path) for (record,) in rows]

    def vectors(self) -> list[AddedVector]:
        """All fitted vectors, by kind and id."""
        rows = self._read("SELECT kind, id, name, vector FROM vectors ORDER BY kind, id")
        return [
            AddedVector(CandidateKind(kind), str(key), str(name), np.frombuffer(blob, dtype="<f4").astype(np.float32))
            for kind, key, name, blob in rows
        ]

    def sentences(self) -> dict[str, NDArray[np.float32]]:
        """Sentence vectors ``[P]`` of the added papers, by id; those of a model without any are not there."""
        rows = self._read("SELECT id, vector FROM sentences")
        return {str(key): np.frombuffer(blob, dtype="<f4").astype(np.float32) for key, blob in rows}

    def memberships(self) -> list[tuple[CandidateKind, str, str]]:
        """Kind, id and paper id of all memberships given apart from the papers."""
        rows = self._read("SELECT kind, id, paper FROM memberships ORDER BY kind, id, paper")
        return [(CandidateKind(kind), str(key), str(paper)) for kind, key, paper in rows]

    def write(
        self,
        *,
        revision: str,
        papers: Sequence[Paper] = (),
        vectors: Iterable[AddedVector] = (),
        sentences: Mapping[str, NDArray[np.float32]] | None = None,
        memberships: Iterable[tuple[CandidateKind, str, str]] = (),
    ) -> None:
        """Stores everything in one durable transaction; papers and vectors of known ids are replaced.

        Raises:
            InvalidInputError: An id or a name is no valid Unicode; nothing was stored.
            StorageError: The file could not be written; nothing was stored.
        """
        paper_lines = [(paper.id, _encoded(paper)) for paper in papers]
        vector_lines = [(str(v.kind), v.id, v.name, v.vector.astype("<f4").tobytes()) for v in vectors]
        sentence_lines = [(key, vector.astype("<f4").tobytes()) for key, vector in (sentences or {}).items()]
        membership_lines = [(str(kind), key, paper) for kind, key, paper in memberships]
        try:
            with self._database.write() as connection:
                for table, columns, lines in (
                    ("papers", "id, record", paper_lines),
                    ("vectors", "kind, id, name, vector", vector_lines),
                    ("sentences", "id, vector", sentence_lines),
                    ("memberships", "kind, id, paper", membership_lines),
                    ("meta", "key, value", [("revision", revision)]),
                ):
                    places = ", ".join("?" * (columns.count(",") + 1))
                    connection.executemany(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({places})", lines)
                connection.execute("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'writes'")
        except UnicodeEncodeError as error:
            raise InvalidInputError(f"ids and names must be valid Unicode, got a lone surrogate: {error}") from error

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def _read(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with self._database.read() as connection:
            return connection.execute(query, values).fetchall()


def _encoded(paper: Paper) -> str:
    return json.dumps(
        {
            "id": paper.id,
            "title": paper.title,
            "abstract": paper.abstract,
            "authors": [[author.name, author.id] for author in paper.authors],
            "cited_by": list(paper.cited_by_ids),
            "year": paper.year,
        }
    )


def _decoded(record: str, path: Path) -> Paper:
    try:
        values = json.loads(record)
        return Paper(
            title=values["title"],
            abstract=values["abstract"],
            id=values["id"],
            authors=tuple(Author(name, key) for name, key in values["authors"]),
            cited_by_ids=tuple(values["cited_by"]),
            year=values["year"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{path}: a paper is damaged: {error}") from error


# By kind and candidate: papers in order, as the keys of a dictionary.
_Members = dict[CandidateKind, dict[str, dict[str, None]]]


@dataclass(frozen=True, slots=True)
class Change:
    """What one call adds.

    Attributes:
        papers: By id; one of a known id takes the old one's place.
        given: Author and paper: papers of an author beyond those that name him or her.
        named: By kind and candidate, the papers of this change that name it.
        given_to: By author, what ``given`` says.
    """

    papers: Mapping[str, Paper]
    given: frozenset[tuple[str, str]] = frozenset()
    named: _Members = field(init=False)
    given_to: dict[str, set[str]] = field(init=False)

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

    Args:
        trained: The papers of the training.

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
