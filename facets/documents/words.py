"""The words that name facets: a model's own, or for an encoder those of the collection."""

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from facets.arrays import Ints
from facets.documents.diagnosis import collection_vocabulary
from facets.documents.encoders import Encoder, Encoders
from facets.documents.engine import CollectionEngine
from facets.documents.records import CollectionRecord
from facets.errors import NotReadyError, StoreClosedError
from facets.language.interruption import check_interrupted, interrupted_by
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary
from facets.model.contract import is_foreign

logger = logging.getLogger(__name__)

_MAX_KEPT = 64  # collections whose words are kept
_GROWTH = 2  # words are encoded again once a collection has so many times the documents
_WORDS_AT_A_TIME = 256
_RETRY_S = 60.0  # after a failure
_CHECK_S = 0.02  # between two checks whether the caller still waits


@dataclass(slots=True)
class _Words:
    """Words with vectors, and the documents in which they were found."""

    vectors: WordVectors
    rows: Ints  # first row of each document
    num_documents: int  # of the collection
    revision: int  # of the collection when all of these documents were last seen


@dataclass(slots=True)
class _Kept:
    """The words of one collection; ``words`` are the last that were encoded."""

    words: _Words | None = None
    work: Future[None] | None = None  # encodes words; never raises
    started: float = 0.0  # time of ``time.monotonic()`` at which the work was begun
    not_before: float = 0.0  # earliest time of the next work


class CollectionWords:
    """The words of collections of encoders, encoded in the background when they are first needed, and kept.

    They are encoded again when the collection has grown, which the old words serve meanwhile, and when a document in
    which they were found was deleted or replaced: then the old words are never used again.
    """

    def __init__(self, engine: CollectionEngine, encoders: Encoders) -> None:
        """``encoders``: encode the words, beside and after the calls that need them."""
        self._engine = engine
        self._encoders = encoders
        self._lock = threading.Lock()
        self._kept: dict[int, _Kept] = {}  # by number of the collection
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="collection-words")
        self._is_closed = False

    def of(self, record: CollectionRecord, encoder: Encoder, *, wait_s: float) -> WordVectors | None:
        """Words with vectors in the space of the model; None if there are none ``wait_s`` s after the work began.

        Raises what ``check_interrupted`` raises while it waits.
        """
        if getattr(encoder.model, "encoder_settings", None) is None:  # its own words name facets better
            return encoder.model.words
        if not record.num_documents:
            return None
        with self._lock:
            kept = self._kept[record.number] = self._kept.pop(record.number, _Kept())
            if len(self._kept) > _MAX_KEPT:
                self._kept.pop(next(iter(self._kept)))
        words, now = self._current(kept, record), time.monotonic()
        with self._lock:
            is_due = words is None or record.num_documents > _GROWTH * words.num_documents
            if is_due and not (self._is_closed or now < kept.not_before) and (kept.work is None or kept.work.done()):
                kept.started, kept.work = now, self._worker.submit(self._encode, kept, record, encoder.model.name)
            work, until = kept.work, kept.started + wait_s
        if words is None:
            while work is not None and not work.done() and (left := until - time.monotonic()) > 0:
                wait([work], min(left, _CHECK_S))
                check_interrupted()
            words = self._current(kept, record)
        return None if words is None else words.vectors

    def close(self) -> None:
        """Begins no more work, and stops that which has begun."""
        with self._lock:
            self._is_closed = True
        self._worker.shutdown(wait=False)

    def _current(self, kept: _Kept, record: CollectionRecord) -> _Words | None:
        """The words, unless there are none or a document in which they were found is gone."""
        words = kept.words
        if words is None or not len(words.rows):
            return None
        if words.revision != record.revision:
            if not self._engine.has_all(words.rows):
                return None
            words.revision = record.revision
        return words

    def _encode(self, kept: _Kept, record: CollectionRecord, model: str) -> None:
        try:
            with interrupted_by(self._check_open):
                kept.words = self._encoded(record, self._encoders(model), kept.words)
        except Exception as error:  # such as a collection that has just been deleted; search goes on without words
            kept.not_before = time.monotonic() + _RETRY_S
            if not (self._is_closed or isinstance(error, NotReadyError)):  # such as a model that is being closed
                logger.warning("the words of collection %s were not encoded: %s", record.name, error)

    def _encoded(self, record: CollectionRecord, encoder: Encoder, before: _Words | None) -> _Words:
        """The words as they are now; those of ``before`` have their vectors already."""
        self._check_open()
        with self._engine.view(record.name, record) as (view, current):
            found, rows = collection_vocabulary(view, current)
        known = [i for i, word in enumerate(found.words) if not is_foreign(encoder.model, word)]
        vocabulary = Vocabulary([found.words[i] for i in known], found.counts[known])
        vectors = dict(zip(before.vectors.vocabulary.words, before.vectors.vectors, strict=True)) if before else {}
        new = [word for word in vocabulary.words if word not in vectors]
        for start in range(0, len(new), _WORDS_AT_A_TIME):  # the texts of calls come between
            self._check_open()
            batch = new[start : start + _WORDS_AT_A_TIME]
            vectors.update(zip(batch, encoder.embed(batch), strict=True))
        vectors_WD = np.array([vectors[word] for word in vocabulary.words], np.float32).reshape(-1, record.dim)
        return _Words(WordVectors(vocabulary, vectors_WD), rows, record.num_documents, revision=-1)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError("the collections are closed")
