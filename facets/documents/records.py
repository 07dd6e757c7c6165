"""Collections, writes and rows as the store represents them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum

import numpy as np

from facets.arrays import Ints
from facets.documents.fields import SearchedText, field_texts, searched_part
from facets.documents.types import DocumentPart, JsonValue
from facets.errors import NotReadyError, WritesLostError

NO_ROWS: Ints = np.empty(0, dtype=np.int64)
LostRevisions = Sequence[tuple[int, int]]
"""Pairs of revisions; those between the two were assigned by a PostgreSQL primary that no longer exists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionModel:
    """The model that makes the facets of a collection, the payload fields that it reads, and the language of words."""

    model: str  # its name
    model_revision: str
    space: str  # models of one space search each other's collections; empty: the model has its own space
    num_facets: int  # K, facets of each document
    dim: int  # D, dimensions of each facet
    search_fields: Mapping[str, float]  # payload fields that are searched with the text -> weight of their words
    language: str  # ISO 639-1 code, whose rules its words follow; empty: that of the first documents

    def searched(
        self, text: str, payload: Mapping[str, JsonValue], parts: Sequence[DocumentPart] = ()
    ) -> tuple[SearchedText, ...]:
        """The text and searched fields of each part of a document; a single one if it has no parts."""
        own_fields = field_texts(payload, self.search_fields)
        if len(parts) < 2:
            return (SearchedText(text, own_fields),)
        inside = [text[part.start : part.end] for part in parts]
        return tuple(
            searched_part(own, own_fields, part, len(text) - len(own)) for part, own in zip(parts, inside, strict=True)
        )

    def columns(self) -> dict[str, str | int]:
        """Values of the columns of the table ``collections`` that describe the model."""
        values = {own.name: getattr(self, own.name) for own in fields(CollectionModel)}
        space = self.space or f"{self.model}@{self.model_revision}"
        return values | {"space": space, "search_fields": json.dumps(dict(self.search_fields), ensure_ascii=False)}


class CollectionState(StrEnum):
    """The role of a collection in the store."""

    LIVE = "live"  # has a name and answers calls
    BUILDING = "building"  # receives the documents of another collection, encoded by another model, and replaces it
    RETIRED = "retired"  # was replaced; its documents are being deleted


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionRecord(CollectionModel):
    """A collection as stored; reading it takes a few microseconds."""

    number: int  # never reused; moving a collection to another model gives it another number
    name: str
    created_us: int  # creation time, microseconds since 1970; kept when the collection moves to another model
    revision: int  # revision of the data directory after the last write to it; equal revisions mean equal documents
    num_documents: int
    num_parts: int  # parts of all documents; each has a row
    state: CollectionState

    @property
    def create_time(self) -> datetime:
        """Creation time, UTC."""
        return datetime.fromtimestamp(self.created_us / 1e6, tz=UTC)


COLLECTION_COLUMNS = ", ".join(own.name for own in fields(CollectionRecord))


def collection_from(values: Sequence[str | int | None]) -> CollectionRecord:
    """A collection from its ``COLLECTION_COLUMNS``."""
    named = dict(zip(COLLECTION_COLUMNS.split(", "), values, strict=True))
    named |= {"search_fields": json.loads(str(named["search_fields"])), "state": CollectionState(str(named["state"]))}
    return CollectionRecord(**named)  # type: ignore[arg-type]  # the columns have these types


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionInfo(CollectionRecord):
    """A collection and the state of its index."""

    num_damaged: int  # documents found to be damaged on disk; searches leave them out
    index_kind: str  # `exact`, `faiss-ivf-int8`, ...
    num_vectors: int  # facets in the index in memory, including removed ones; 0: the index is not loaded
    snapshot_bytes: int  # size of the saved index; 0: none


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreWrite:
    """A durable write, which survives kill -9 and power loss; indexes apply the same change."""

    revision: int  # of the data directory and of the collection after the write; from it on, every read sees the write
    # Rows added and removed, one for each part, ascending.
    added: Ints = field(default_factory=lambda: NO_ROWS, compare=False)
    removed: Ints = field(default_factory=lambda: NO_ROWS, compare=False)
    num_added: int = 0  # documents added
    num_removed: int = 0  # documents removed: deleted, or replaced by those added
    language: str = ""  # that the documents gave to the collection; empty: it has not changed

    def after(self, record: CollectionRecord) -> CollectionRecord:
        """The collection after the write, given its state before."""
        return replace(
            record,
            revision=self.revision,
            language=self.language or record.language,
            num_documents=record.num_documents + self.num_added - self.num_removed,
            num_parts=record.num_parts + len(self.added) - len(self.removed),
        )


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """The rows of documents; the parts of a document have consecutive rows."""

    firsts: Ints  # first row of each document, which identifies it, `[N]` ascending
    counts: Ints  # number of its parts, `[N]`

    @property
    def parts(self) -> Ints:
        """The rows of all parts."""
        before = np.cumsum(self.counts) - self.counts
        rows: Ints = np.repeat(self.firsts - before, self.counts) + np.arange(self.counts.sum())
        return rows

    def first_rows_of(self, rows: Ints) -> Ints:
        """For each row, the first row of its document; rows of other documents are returned unchanged."""
        if not len(self.firsts):
            return rows
        places = np.maximum(np.searchsorted(self.firsts, rows, side="right") - 1, 0)
        firsts = self.firsts[places]
        first_rows: Ints = np.where((rows >= firsts) & (rows < firsts + self.counts[places]), firsts, rows)
        return first_rows


def check_revision(revision: int, min_revision: int | None, lost: LostRevisions = ()) -> int:
    """The revision; raises NotReadyError if it is below ``min_revision``, WritesLostError if that write was lost."""
    if min_revision is None:
        return revision
    for after, before in lost:
        if after < min_revision < before:
            raise WritesLostError(
                f"min_revision {min_revision} was acknowledged by a PostgreSQL server that is gone; its successor has "
                f"the writes up to {after}: write again what came later, and continue reading from {before}"
            )
    if revision < min_revision:
        raise NotReadyError(f"index_revision is {revision}, expected at least min_revision {min_revision}")
    return revision
