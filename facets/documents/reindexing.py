"""Moving a collection to another model while it is read and written.

A second collection of the store, invisible to callers, takes copies of the documents with the facets of the new model.
A write of a document always takes a new row, so one pass over the rows in their order meets every document, those
written meanwhile too. When nothing is left, writes wait for a moment, and the copy takes the place of the original in
one transaction. Until then the original answers; a crash leaves it, and the copies made so far are found again.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from facets.documents.encoding import encode_documents
from facets.documents.fields import check_search_fields
from facets.documents.following import Follower
from facets.documents.index_manager import IndexManager
from facets.documents.parts import EncodedText, from_encoded
from facets.documents.records import CollectionModel, CollectionRecord, StoreWrite
from facets.documents.store import DocumentStore

_BATCH = 64  # documents encoded and stored at a time
_BATCH_BYTES = 2 * 1024 * 1024  # of their texts; one alone may have more
_TEXTS_AT_A_TIME = 128  # read by the model, some seconds: what it has read is kept when the time is up
_LAST_BATCH = 256  # so many may be encoded while writes to the collection wait


Encode = Callable[[Sequence[str]], Sequence[EncodedText]]


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetModel:
    """The model that a collection moves to."""

    name: str  # of the model
    revision: str  # of the model
    num_facets: int  # K of one document
    dim: int  # D
    encode: Encode  # what the model makes of each text; of one that it cannot read, nothing
    space: str = ""  # of the model; empty: its own
    # Fields of payloads that are searched from then on; None: those that the collection has.
    search_fields: Mapping[str, float] | None = None

    def made(self, record: CollectionRecord) -> bool:
        """True when the facets of the collection are this model's, of the text and these fields."""
        of_fields = self.search_fields is None or record.search_fields == dict(self.search_fields)
        return of_fields and (record.model, record.model_revision) == (self.name, self.revision)

    def of(self, record: CollectionRecord) -> "TargetModel":
        """The same with the fields that the collection has, where no others are asked for."""
        return self if self.search_fields is not None else replace(self, search_fields=record.search_fields)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReindexStep:
    """How far a collection has moved."""

    record: CollectionRecord  # the collection: as it was, or once done as it is
    done: bool  # true when it has moved
    num_encoded: int  # documents encoded so far


class Reindexer:
    """Moves collections of one store; thread-safe, one step at a time. The follower is told of each write."""

    def __init__(self, store: DocumentStore, indexes: IndexManager, follower: Follower) -> None:
        self._store = store
        self._indexes = indexes
        self._follower = follower
        self._lock = threading.Lock()
        self._passed: dict[int, int] = {}  # number of a copy -> rows up to this one are copied or gone
        # Of which copy and rows the model has read the first texts, and what it made of them.
        self._begun: tuple[tuple[int, ...], list[EncodedText]] = ((), [])

    def step(self, name: str, target: TargetModel, *, budget_s: float | None) -> ReindexStep:
        """Encodes documents until all are, or the time is up; then the next step goes on.

        Args:
            name: The collection.
            target: Where it moves; another one than in the last step starts over, and the model that the collection
                has gives up a move that was begun.
            budget_s: Seconds, looked at after every 128 texts that the model has read, which are kept for the next
                step; no longer is a step of another caller waited for. None: until it is done.

        Raises:
            InvalidInputError: ``search_fields`` breaks a rule.
            NotFoundError: There is no such collection, or it was deleted meanwhile.
            Exception: What ``target.encode`` raised; the copies made so far are kept.
        """
        if target.search_fields is not None:
            target = replace(target, search_fields=check_search_fields(target.search_fields))
        ends = None if budget_s is None else time.monotonic() + budget_s
        if not self._lock.acquire(timeout=-1 if budget_s is None else budget_s):  # another step takes longer
            return self._progress(name, done=False)
        try:
            with self._store.view() as view:
                created = view.collection(name).created_us
            with self._store.alone(created) as is_alone:
                return self._step(name, target, ends) if is_alone else self._progress(name, done=False)
        finally:
            self._lock.release()

    def _step(self, name: str, target: TargetModel, ends: float | None) -> ReindexStep:
        with self._store.view() as view:
            record = view.collection(name)
        target = target.of(record)
        if target.made(record):
            self._give_up(record)
            return self._progress(name, done=True)
        copy = self._copy_of(record, target)
        while True:
            if not self._copy_some(record, copy, target, limit=_BATCH, ends=ends) and self._finish(
                record, copy, target, ends=ends
            ):
                return self._progress(name, done=True)
            if ends is not None and time.monotonic() >= ends:
                return self._progress(name, done=False)

    def _progress(self, name: str, *, done: bool) -> ReindexStep:
        with self._store.view() as view:
            record = view.collection(name)
            encoded = record if done else view.copy_of(record)
        return ReindexStep(record=record, done=done, num_encoded=0 if encoded is None else encoded.num_documents)

    def _copy_of(self, record: CollectionRecord, target: TargetModel) -> CollectionRecord:
        """The copy that takes the documents: one begun earlier for this target, else a new one."""
        with self._store.view() as view:
            copy = view.copy_of(record)
        if copy is not None and target.made(copy):
            return copy
        self._give_up(record)
        with self._indexes.write_lock:
            by = CollectionModel(
                *(target.name, target.revision, target.space, target.num_facets, target.dim, target.search_fields or {})
            )
            made = self._store.begin_copy(record, by)
            self._indexes.live(made)
        return made

    def _give_up(self, record: CollectionRecord) -> None:
        with self._store.view() as view:
            copy = view.copy_of(record)
        self._begun = ((), [])
        if copy is not None:
            with self._indexes.write_lock:
                self._store.retire(copy)
                self._indexes.drop_retired(copy)

    def _copy_some(
        self, record: CollectionRecord, copy: CollectionRecord, target: TargetModel, *, limit: int, ends: float | None
    ) -> bool:
        """Copies up to ``limit`` documents, unless the time is up before; False when there was none left."""
        with self._store.view() as view:
            view.collection_unchanged(record)
            rows, passed = view.uncopied(record, copy, after=self._passed.get(copy.number, 0), limit=limit)
            num_bytes = view.num_bytes(rows, facets=False, dim=copy.dim)
            most = max(1, int(np.searchsorted(np.cumsum(num_bytes), _BATCH_BYTES, side="right")))
            if most < len(rows):
                rows, passed = rows[:most], int(rows[most - 1])
            documents = view.documents(rows)
        if len(rows):
            originals = [documents[row] for row in rows.tolist()]
            said = [copy.said(document.text, document.payload, document.parts) for document in originals]
            texts = [part.read for parts in said for part in parts]
            encoded = self._encoded(texts, target, of=(copy.number, *rows.tolist()), ends=ends)
            if encoded is None:
                return True
            rest = iter(encoded)
            found = [
                from_encoded(
                    one.id, one.text, one.payload, parts=one.parts, said=own, encoded=[*islice(rest, len(own))]
                )
                for one, own in zip(originals, said, strict=True)
            ]
            batch = encode_documents(found, copy)
            with self._indexes.write_lock:
                write, kept = self._store.add_copies(copy, rows, batch)
                self._follower.wrote(copy, write, batch, kept=kept)
        self._passed[copy.number] = passed
        return len(rows) > 0

    def _encoded(
        self, texts: Sequence[str], target: TargetModel, *, of: tuple[int, ...], ends: float | None
    ) -> Sequence[EncodedText] | None:
        """What the model makes of all texts of a batch; None: the time was up, and the next step goes on."""
        if self._begun[0] != of:
            self._begun = (of, [])
        done, first = self._begun[1], len(self._begun[1])
        for start in range(first, len(texts), _TEXTS_AT_A_TIME):
            if start > first and ends is not None and time.monotonic() >= ends:
                return None
            some = target.encode(texts[start : start + _TEXTS_AT_A_TIME])
            if len(texts) > _TEXTS_AT_A_TIME:  # those of a book are many
                some = [replace(one, facets=one.facets.astype(np.float16)) for one in some]
            done += some
        self._begun = ((), [])
        return done

    def _finish(
        self, record: CollectionRecord, copy: CollectionRecord, target: TargetModel, *, ends: float | None
    ) -> bool:
        """Puts the copy in the place of the original; False when too many writes came just before."""
        self._drop_outdated(record, copy)
        # The copy's lock too: once it has the name, its readers wait for what is left to do here.
        with ExitStack() as held:
            for one in (record, copy):
                held.enter_context(self._indexes.collection_lock(one))
            if self._store.is_shared:  # other servers write, too
                held.enter_context(self._indexes.write_lock)
                held.enter_context(self._store.hold_writes())
            if self._copy_some(record, copy, target, limit=_LAST_BATCH, ends=ends):
                with self._store.view() as view:
                    passed = self._passed[copy.number]
                    if len(view.uncopied(record, copy, after=passed, limit=1)[0]):
                        return False
            self._drop_outdated(record, copy)
            none = np.empty(0, dtype=np.int64)
            with self._indexes.write_lock:
                moved = self._store.replace_by_copy(record, copy)
                self._follower.wrote(moved, StoreWrite(revision=moved.revision, added=none, removed=none))
                self._indexes.drop_retired(record)
        self._passed.pop(copy.number, None)
        return True

    def _drop_outdated(self, record: CollectionRecord, copy: CollectionRecord) -> None:
        """Deletes copies of documents that were deleted; without uncopied documents equal numbers mean none."""
        with self._store.view() as view:
            numbers = [view.collection_unchanged(one).num_documents for one in (record, copy)]
            outdated = view.outdated(record, copy) if numbers[0] != numbers[1] else None
        if outdated is not None and len(outdated.firsts):
            with self._indexes.write_lock:
                write = self._store.delete_rows(copy, outdated)
                self._follower.wrote(copy, write)
