"""The words that name facets: a model's own, or for an encoder those of the collection."""

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError

import numpy as np

from facets.documents import CollectionEngine
from facets.documents.records import CollectionRecord
from facets.language.vectors import WordVectors
from facets_server.runtime.call_context import CallContext
from facets_server.texts.served import ServedTexts

logger = logging.getLogger(__name__)

_MAX_KEPT = 64  # collections whose words are kept
_GROWTH = 2  # words are encoded again once a collection has so many times the documents
_WORDS_AT_A_TIME = 256


class CollectionWords:
    """The words of collections of encoders, encoded in the background when they are first needed, and kept."""

    def __init__(self, engine: CollectionEngine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        # By number of the collection: its documents when the words were read, the words, and those of before.
        self._kept: dict[int, tuple[int, Future[WordVectors], WordVectors | None]] = {}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="collection-words")

    def of(self, record: CollectionRecord, served: ServedTexts, *, wait_s: float) -> WordVectors | None:
        """Words with vectors in the space of the model; None if they are not encoded after ``wait_s`` seconds."""
        if not served.borrows_words:
            return served.model.words
        with self._lock:
            num_documents, words, before = self._kept.pop(record.number, (0, None, None))
            if words is None or (words.done() and record.num_documents > _GROWTH * num_documents):
                before = None if words is None or words.exception() else words.result()
                num_documents, words = record.num_documents, self._worker.submit(self._encoded, record, served)
            self._kept[record.number] = num_documents, words, before
            if len(self._kept) > _MAX_KEPT:
                self._kept.pop(next(iter(self._kept)))
        try:
            return words.result(timeout=0 if before else wait_s)
        except FutureTimeoutError:
            return before
        except Exception as error:  # such as a collection that has just been deleted; search goes on without words
            logger.warning("the words of collection %s were not encoded: %s", record.name, error)
            with self._lock:
                self._kept.pop(record.number, None)
            return before

    def close(self) -> None:
        """Begins no more work."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _encoded(self, record: CollectionRecord, served: ServedTexts) -> WordVectors:
        vocabulary = self._engine.vocabulary(record.name, seen=record)
        vectors = [np.zeros((0, record.dim), dtype=np.float32)]
        for start in range(0, len(vocabulary), _WORDS_AT_A_TIME):  # the texts of calls come between
            vectors.append(
                served.embed(vocabulary.words[start : start + _WORDS_AT_A_TIME], CallContext(method="words"))
            )
        return WordVectors(vocabulary, np.concatenate(vectors))
