"""Moves a collection to another model while it is being read and written.

A second collection in the store, invisible to callers, receives copies of the documents with facets of the new model.
Each write of a document takes a new row, so one pass over the rows in order visits every document, including those
written during the pass. When nothing is left, writes are blocked briefly and one transaction replaces the original with
the copy. Until then the original serves calls, even after a crash; the next step reuses the copies made so far.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from facets.documents.encoding import encode_documents
from facets.documents.fields import check_search_fields
from facets.documents.index_manager import IndexManager
from facets.documents.parts import EncodedText, from_encoded
from facets.documents.records import NO_ROWS, CollectionModel, CollectionRecord, DocumentRows, StoreWrite
from facets.documents.store import DocumentStore

_BATCH_DOCUMENTS = 64  # documents encoded and stored at a time
_BATCH_BYTES = 2 * 1024 * 1024  # total size of their texts; a single document may be larger
_TEXTS_AT_A_TIME = 128  # texts encoded between two checks of the deadline: a few seconds

Encode = Callable[[Sequence[str]], Sequence[EncodedText]]


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetModel(CollectionModel):
    """The model that a collection moves to."""

    encode: Encode  # texts -> outputs of the model; an empty output for a text that it cannot read
    space: str = ""
    search_fields: Mapping[str, float] | None = None  # type: ignore[assignment]  # None: those of the collection
    language: str = ""  # always that of the collection

    def matches(self, record: CollectionRecord) -> bool:
        """Whether the facets of a collection are from this model and these fields."""
        mine, its = ((one.model, one.model_revision, one.search_fields) for one in (self, record))
        return mine == its


@dataclass(frozen=True, kw_only=True, slots=True)
class ReindexStep:
    """Progress of a move."""

    record: CollectionRecord  # the collection; with the new model when done
    done: bool
    num_encoded: int  # documents encoded so far


class Reindexer:
    """Moves collections of one store; thread-safe, one step at a time."""

    def __init__(self, store: DocumentStore, indexes: IndexManager) -> None:
        self._store = store
        self._indexes = indexes
        self._lock = threading.Lock()
        self._passed: dict[int, int] = {}  # number of a copy -> row up to which all are copied or deleted
        # A batch that the last step did not finish: copy and rows, and the outputs of the model for its first texts.
        self._unfinished: tuple[tuple[int, ...], list[EncodedText]] = ((), [])

    def step(self, name: str, target: TargetModel, *, budget_s: float | None) -> ReindexStep:
        """Encodes documents until all are done or the time is up; the next step continues.

        ``budget_s``: limit in seconds, checked every 128 texts and while another caller's step runs; None: no limit.
        See :meth:`facets.documents.CollectionEngine.reindex`.
        """
        deadline = math.inf if budget_s is None else time.monotonic() + budget_s
        if not self._lock.acquire(timeout=-1 if budget_s is None else budget_s):
            return self._progress(name, done=False)
        try:
            with self._store.view() as view:
                record = view.collection(name)
            with self._store.alone(record.created_us) as is_alone:
                done = is_alone and self._step(name, target, deadline)
            return self._progress(name, done=done)
        finally:
            self._lock.release()

    def _step(self, name: str, target: TargetModel, deadline: float) -> bool:
        with self._store.view() as view:
            record = view.collection(name)
            copy = view.copy_of(record)
        fields = record.search_fields if target.search_fields is None else check_search_fields(target.search_fields)
        target = replace(target, search_fields=fields, language=record.language)
        if target.matches(record):
            self._abandon(copy)
            return True
        if copy is None or not target.matches(copy):
            self._abandon(copy)
            with self._indexes.write_lock:
                copy = self._store.begin_copy(record, target)
                self._indexes.live(copy)
        while True:
            copied = self._copy_some(record, copy, target, deadline)
            if not copied and self._finish(record, copy, target, deadline):
                return True
            if time.monotonic() >= deadline:
                return False

    def _progress(self, name: str, *, done: bool) -> ReindexStep:
        with self._store.view() as view:
            record = view.collection(name)
            encoded = record if done else view.copy_of(record)
        return ReindexStep(record=record, done=done, num_encoded=0 if encoded is None else encoded.num_documents)

    def _abandon(self, copy: CollectionRecord | None) -> None:
        self._unfinished = ((), [])
        if copy is not None:
            with self._indexes.write_lock:
                self._store.retire(copy)
                self._indexes.drop(copy)

    def _copy_some(
        self, record: CollectionRecord, copy: CollectionRecord, target: TargetModel, deadline: float
    ) -> bool:
        """Copies a batch of documents unless the time runs out; returns False if none was left."""
        with self._store.view() as view:
            language = view.collection_unchanged(record).language
            after = self._passed.get(copy.number, 0)
            rows, passed = view.uncopied(record, copy, after=after, limit=_BATCH_DOCUMENTS)
            num_bytes = view.num_bytes(rows, facets=False, dim=copy.dim)
            num_documents = max(1, int(np.searchsorted(np.cumsum(num_bytes), _BATCH_BYTES, side="right")))
            if num_documents < len(rows):
                rows, passed = rows[:num_documents], int(rows[num_documents - 1])
            documents = view.documents(rows)
        if len(rows):
            originals = [documents[row] for row in rows.tolist()]
            searched = [copy.searched(document.text, document.payload, document.parts) for document in originals]
            texts = [part.read for parts in searched for part in parts]
            outputs = self._encoded(texts, target, batch=(copy.number, *rows.tolist()), deadline=deadline)
            if outputs is None:
                return True
            remaining = iter(outputs)
            copies = [
                from_encoded(document, document.parts, parts, [*islice(remaining, len(parts))])
                for document, parts in zip(originals, searched, strict=True)
            ]
            batch = encode_documents(copies, replace(copy, language=language))
            with self._indexes.write_lock:
                write = self._store.upsert(copy, batch, revisions=[document.revision for document in originals])
                self._indexes.wrote(copy, write)
        self._passed[copy.number] = passed
        return len(rows) > 0

    def _encoded(
        self, texts: Sequence[str], target: TargetModel, *, batch: tuple[int, ...], deadline: float
    ) -> Sequence[EncodedText] | None:
        """The outputs of the model for all texts of a batch; None if the time is up: the next step continues."""
        if self._unfinished[0] != batch:
            self._unfinished = (batch, [])
        outputs, first = self._unfinished[1], len(self._unfinished[1])
        for start in range(first, len(texts), _TEXTS_AT_A_TIME):
            if start > first and time.monotonic() >= deadline:
                return None
            new = target.encode(texts[start : start + _TEXTS_AT_A_TIME])
            if len(texts) > _TEXTS_AT_A_TIME:  # saves memory for the many parts of a book
                new = [replace(output, facets=output.facets.astype(np.float16)) for output in new]
            outputs += new
        self._unfinished = ((), [])
        return outputs

    def _finish(self, record: CollectionRecord, copy: CollectionRecord, target: TargetModel, deadline: float) -> bool:
        """Replaces the original with the copy; returns False if the time is up before the last writes are copied."""
        self._drop_outdated(record, copy)
        # Lock the copy, too: once it has the name, its readers must wait for the rest of this block.
        with self._indexes.collection_lock(copy), self._indexes.writes_blocked(record):
            while self._copy_some(record, copy, target, deadline):
                if time.monotonic() >= deadline:
                    return False
            self._drop_outdated(record, copy)
            with self._indexes.write_lock:
                moved = self._store.replace_by_copy(record, copy)
                self._indexes.wrote(moved, StoreWrite(revision=moved.revision))
                self._indexes.drop(record)
        self._passed.pop(copy.number, None)
        return True

    def _drop_outdated(self, record: CollectionRecord, copy: CollectionRecord) -> None:
        """Deletes copies of deleted documents; once all documents are copied, equal counts mean there are none."""
        with self._store.view() as view:
            numbers = [view.collection_unchanged(one).num_documents for one in (record, copy)]
            outdated = view.outdated(record, copy) if numbers[0] != numbers[1] else DocumentRows(NO_ROWS, NO_ROWS)
        if len(outdated.firsts):
            with self._indexes.write_lock:
                write = self._store.delete(copy, lambda _: outdated)
                self._indexes.wrote(copy, write)
