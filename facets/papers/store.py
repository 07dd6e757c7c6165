"""Durable store of the papers added since training and of the vectors fitted to them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from facets.arrays import Floats
from facets.errors import DamagedError, InvalidInputError
from facets.papers.records import Author, CandidateKind, Paper
from facets.storage.records import News, Record, RecordStore, record_schema
from facets.storage.sql import SqlDatabase

_FILE = "recommendation.sqlite3"
SCHEMA = record_schema("file of additions", 0x46415041)  # "FAPA"
_PLAIN = ("id", "title", "abstract", "year")  # fields of a paper that are stored as they are
_PAPER, _VECTOR, _SENTENCES, _MEMBERSHIP, _REVISION = "paper", "vector", "sentences", "membership", "revision"


@dataclass(frozen=True, slots=True)
class AddedVector:
    """The fitted vector of an author or a citing paper; ``vector`` is ``[D]`` float32."""

    kind: CandidateKind
    id: str
    name: str
    vector: Floats


@dataclass(frozen=True, slots=True)
class Added:
    """Content of the store, or of its latest writes."""

    papers: dict[str, Paper]  # by id
    vectors: list[AddedVector]
    sentences: dict[str, Floats]  # `[P + E]` by paper id, sentence and passage vector; empty without both
    given: set[tuple[str, str]]  # author and paper id: papers given to an author that do not name the author
    revision: str  # of the model that computed all vectors; empty when nothing was added

    @classmethod
    def of(cls, news: News) -> "Added":
        """Decodes records; raises DamagedError when they are not what ``AdditionStore.add`` writes."""
        added, revision = cls({}, [], {}, set(), ""), ""
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
        return replace(added, revision=revision)


class AdditionStore(RecordStore):
    """The papers added to one model, and the vectors fitted to them, in a folder or a shared database."""

    def __init__(self, place: Path | SqlDatabase, model_name: str) -> None:
        super().__init__(place / _FILE if isinstance(place, Path) else place, f"papers/{model_name}", SCHEMA)

    def add(
        self,
        revision: str,
        papers: Iterable[Paper] = (),
        vectors: Iterable[AddedVector] = (),
        sentences: Mapping[str, Floats] | None = None,
        given: Iterable[tuple[str, str]] = (),
        *,
        after: int | None = None,
    ) -> int:
        """Stores papers and vectors in one durable transaction, replacing those of known ids.

        Raises InvalidInputError if an id or a name is not valid Unicode.
        """
        entries: list[tuple[str, object, bytes]] = [(_REVISION, "", revision.encode())]
        entries += [(_PAPER, paper.id, json.dumps(_encoded(paper)).encode()) for paper in papers]
        entries += [(_VECTOR, [v.kind, v.id], _text(v.name) + b"\n" + _bytes(v.vector)) for v in vectors]
        entries += [(_SENTENCES, key, _bytes(vector)) for key, vector in (sentences or {}).items()]
        entries += [(_MEMBERSHIP, pair, b"") for pair in given]
        return self.write([Record(kind, _text(key).decode(), value) for kind, key, value in entries], after=after)


def _text(value: object) -> bytes:
    """JSON in ASCII, which every database can store."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"ids and names must be valid Unicode, got a lone surrogate: {error}") from error
    return json.dumps(value).encode()


def _bytes(vector: Floats) -> bytes:
    return vector.astype("<f4").tobytes()


def _vector(blob: bytes) -> Floats:
    return np.frombuffer(blob, dtype="<f4").astype(np.float32)


def _encoded(paper: Paper) -> dict[str, object]:
    authors = [[author.name, author.id] for author in paper.authors]
    plain = {name: getattr(paper, name) for name in _PLAIN}
    return {**plain, "authors": authors, "cited_by": list(paper.cited_by_ids)}


def _decoded(values: Mapping[str, Any]) -> Paper:
    authors = tuple(Author(name, key) for name, key in values["authors"])
    plain = {name: values[name] for name in _PLAIN}
    return Paper(**plain, authors=authors, cited_by_ids=tuple(values["cited_by"]))
