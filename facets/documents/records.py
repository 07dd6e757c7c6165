"""Collections and writes as the store knows them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from facets.documents.codes import FacetCode
from facets.documents.fields import SearchedText, searched_parts
from facets.documents.types import DocumentPart, JsonValue
from facets.errors import NotFoundError, NotReadyError, WritesLostError

LostRevisions = Sequence[tuple[int, int]]
"""After which revision, and before which, none was ever given: those in between were of a primary that is gone."""


class CollectionModel(NamedTuple):
    """By which model the facets of a collection are made, and of what."""

    model: str
    model_revision: str
    space: str  # what models must share to search each other's collections; empty: this model's own
    num_facets: int
    dim: int
    search_fields: Mapping[str, float]

    def columns(self, code: FacetCode) -> tuple[str | int, ...]:
        """What a collection says of its model and its facets, in the order of the columns."""
        space = self.space or f"{self.model}@{self.model_revision}"
        return self.model, self.model_revision, space, code, self.num_facets, self.dim


class CollectionState(StrEnum):
    """What a collection of the store is there for."""

    LIVE = "live"  # has its name, answers calls
    BUILDING = "building"  # takes the documents of another one, encoded by another model, and will take its place
    RETIRED = "retired"  # has been replaced; its documents are being deleted


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionRecord:
    """A collection as stored: all that a call needs, read in some microseconds."""

    # Never reused, so it also names the collection's snapshot; moving a collection to another model gives it another
    # number.
    number: int
    name: str  # of the collection
    model: str  # name of the model whose facets it holds
    model_revision: str  # revision of that model
    space: str  # what models must share to search each other's collections
    code: FacetCode  # how directions of facets are kept
    num_facets: int  # K, facets of each document
    dim: int  # D, dimensions of each facet
    created_us: int  # when it was made, microseconds since 1970; kept when it is moved to another model
    config: dict[str, JsonValue]  # free JSON object given at creation
    search_fields: dict[str, float]  # fields of the payload that are searched with the text, and what their words weigh
    # Revision of the data directory after the last write to this collection; equal revisions mean equal documents.
    revision: int
    num_documents: int  # documents now stored
    num_parts: int  # parts of theirs, a row each
    state: CollectionState  # live, being built, or replaced
    replaces: int | None  # number of the collection whose place one that is being built will take; None for others

    def said(
        self, text: str, payload: Mapping[str, JsonValue], parts: Sequence[DocumentPart] = ()
    ) -> tuple[SearchedText, ...]:
        """What each part of a document says in its text and in the fields that the collection searches."""
        return searched_parts(text, payload, self.search_fields, parts=parts)

    @property
    def created(self) -> datetime:
        """When it was made, UTC."""
        return datetime.fromtimestamp(self.created_us / 1e6, tz=UTC)


COLLECTION_COLUMNS = ", ".join(field.name for field in fields(CollectionRecord))


def collection_from(values: Sequence[str | int | None]) -> CollectionRecord:
    """A collection from its ``COLLECTION_COLUMNS``."""
    named = dict(zip(COLLECTION_COLUMNS.split(", "), values, strict=True))
    for name in ("config", "search_fields"):
        named[name] = json.loads(str(named[name]))
    named["state"] = CollectionState(str(named["state"]))
    return CollectionRecord(**named)  # type: ignore[arg-type]  # the columns have these types


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreWrite:
    """What a write did: the index follows from it."""

    revision: int  # of the data directory, and of the collection, after the write
    added: NDArray[np.int64]  # rows added, one a part, int64 ascending
    removed: NDArray[np.int64]  # rows removed, likewise
    num_added: int = 0  # documents added
    num_removed: int = 0  # documents removed

    def after(self, record: CollectionRecord) -> CollectionRecord:
        """A collection after the write, as it was before."""
        return replace(
            record,
            revision=self.revision,
            num_documents=record.num_documents + self.num_added - self.num_removed,
            num_parts=record.num_parts + len(self.added) - len(self.removed),
        )


class DocumentRows(NamedTuple):
    """Where documents stand: the parts of one have rows side by side."""

    firsts: NDArray[np.int64]  # row of the first part of each document, by which the document goes, `[N]` int64
    counts: NDArray[np.int64]  # how many parts it has, `[N]` int64

    @property
    def parts(self) -> NDArray[np.int64]:
        """The rows of all parts, those of a document side by side.

        Example:
            >>> DocumentRows(np.array([3, 9]), np.array([2, 1])).parts.tolist()
            [3, 4, 9]
        """
        before = np.cumsum(self.counts) - self.counts
        rows: NDArray[np.int64] = np.repeat(self.firsts - before, self.counts) + np.arange(self.counts.sum())
        return rows

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first row of the document of each of the rows; a row of none of these documents stands for itself.

        Example:
            >>> DocumentRows(np.array([3, 9]), np.array([2, 3])).of(np.array([4, 5, 11])).tolist()
            [3, 5, 9]
        """
        if not len(self.firsts):
            return rows
        places = np.maximum(np.searchsorted(self.firsts, rows, side="right") - 1, 0)
        firsts = self.firsts[places]
        found: NDArray[np.int64] = np.where((rows >= firsts) & (rows < firsts + self.counts[places]), firsts, rows)
        return found


def deleted_meanwhile(record: CollectionRecord) -> NotFoundError:
    """The error of a call whose collection is gone since it began."""
    name = record.name.partition("#")[0]  # that of the collection, where it is a copy of it
    message = f"collection {name!r} was deleted meanwhile"
    return NotFoundError(message, resource_type="collection", resource_name=name)


def check_revision(revision: int, min_revision: int | None, lost: LostRevisions = ()) -> int:
    """The revision, once it is late enough.

    Raises:
        NotReadyError: It is not.
        WritesLostError: The write that is to be seen is no part of this history.
    """
    if min_revision is None:
        return revision
    for after, before in lost:
        if after < min_revision < before:
            raise WritesLostError(
                f"min_revision {min_revision} was acknowledged by a PostgreSQL that is gone, and the one in its place "
                f"has its writes up to {after}: write again what came later, and read on from {before}"
            )
    if revision < min_revision:
        raise NotReadyError(f"index_revision is {revision}, expected at least min_revision {min_revision}")
    return revision
