"""The served models of texts, each behind its batchers."""

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from facets.documents import RelevanceCurve
from facets.documents.encoders import Encoded, Encoders, equal_facets, token_stats
from facets.documents.types import TokenStats
from facets.model.answer_reader import AnswerReader, ReadRow
from facets.model.contract import SentenceModel, TextModel
from facets.model.passage_model import PassageModel, QueryFacets
from facets_server.runtime.batcher import Batcher, Columns, PendingRows
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import BatcherConfig
from facets_server.runtime.fair_queue import Pending
from facets_server.runtime.models import Failures, Lazy, ServedModel, TaskModels

if TYPE_CHECKING:
    from facets_server.runtime.metrics import BatchMetrics

_WARM_UP_TEXTS = ("A short text.", "A longer text that warms up the model with several more words than the first one.")

_TEXTS_AT_A_TIME = 16  # tokenized between two checks of the deadline
_CHARS_PER_TOKEN = 4  # of passages, approximate, for English text
_WORD_CHARACTER = re.compile(r"\w")


class ServedTexts(ServedModel[TextModel]):
    """One model of texts behind its batchers.

    ``relevance`` gives hits a confidence; None: hits have none. ``reader`` chooses the answers of searches, and is
    closed with the model; None: facets and words choose.
    """

    _pads = False  # whether each row of a batch costs as much as its longest

    def __init__(
        self,
        model: TextModel,
        config: BatcherConfig,
        metrics: "BatchMetrics",
        *,
        relevance: RelevanceCurve | None = None,
        reader: "ServedReader | None" = None,
    ) -> None:
        super().__init__(model, model)
        self.model = model
        self.relevance = relevance
        self.reader = reader
        shared: dict[str, Any] = {"model": model.name, "metrics": metrics, "failures": self.failures}
        self._lanes: dict[str, Batcher[Any]] = {
            lane: Batcher(f"{model.name}-{lane}", encode, self._length, config, pads=self._pads, **shared)
            for lane, encode in self._encoders().items()
        }
        metrics.queue.labels(model.name).set_function(lambda: self.num_waiting)

    @property
    def num_waiting(self) -> int:
        """Texts waiting for the model."""
        return sum(batcher.num_waiting_texts for batcher in self._lanes.values())

    @abstractmethod
    def _encoders(self) -> dict[str, Callable[[Sequence[Any]], Columns]]:
        """What each lane, by name, does with rows."""

    @abstractmethod
    def _length(self, row: Any) -> int:
        """Number of tokens of a row, possibly approximate."""

    @abstractmethod
    def submit(self, texts: Sequence[str], call: CallContext) -> Pending[Encoded]:
        """Puts at least one checked text into the queue of the model."""

    def submit_vectors(self, texts: Sequence[str], call: CallContext) -> Pending[Encoded]:
        """Like ``submit``, but only vectors are needed; a model may omit the facets."""
        return self.submit(texts, call)

    @abstractmethod
    def encode_queries(self, texts: Sequence[str], call: CallContext) -> QueryFacets:
        """Waits for the facets of at least one checked query."""

    @abstractmethod
    def embed(self, texts: Sequence[str], call: CallContext) -> NDArray[np.float32]:
        """One vector per text, ``[texts, H]``; see ``TextEncoder.embed``."""

    def reads_at_once(self, texts: Sequence[str]) -> bool:
        """Whether ``submit`` of these short texts, checked or not, does not wait."""
        return False

    def encode(self, texts: Sequence[str], call: CallContext) -> Encoded:
        """Submits texts and waits for the result."""
        return self.submit(texts, call)()

    def probe(self, call: CallContext) -> None:
        """Encodes fixed texts, and reads one."""
        self.encode(_WARM_UP_TEXTS, call)
        if self.reader is not None:
            self.reader.for_call(call).read("What warms up?", [("", _WARM_UP_TEXTS)])

    def has_answered(self) -> bool:
        """False after several failed batches in a row, or when a worker is gone."""
        is_reading = self.reader is None or self.reader.is_healthy()
        return is_reading and all(batcher.is_healthy() for batcher in self._lanes.values())

    def close(self) -> None:
        """Ends the workers."""
        super().close()
        for batcher in self._lanes.values():
            batcher.close()
        if self.reader is not None:
            self.reader.close()


class ServedSentences(ServedTexts):
    """A model of sentences; texts and queries share one queue of token rows."""

    model: SentenceModel
    _pads = True

    def _encoders(self) -> dict[str, Callable[[Sequence[Any]], Columns]]:
        return {"texts": lambda rows: (self.model.encode_rows(rows),)}

    def _length(self, row: NDArray[np.int64]) -> int:
        return len(row)

    def submit(self, texts: Sequence[str], call: CallContext) -> Pending[Encoded]:
        """Tokenizes texts and puts them into the queue of the model."""
        rows: list[NDArray[np.int64]] = []
        with call.stages.measured("tokenize", num_items=len(texts)):
            for start in range(0, len(texts), _TEXTS_AT_A_TIME):
                call.check()
                rows += self.model.tokenize(texts[start : start + _TEXTS_AT_A_TIME])
        stats = token_stats(self.model, texts, rows)
        call.num_items += len(texts)
        pending = self._lanes["texts"].submit(rows, call)
        return Pending(pending, lambda: Encoded(pending.columns()[0], stats))

    def reads_at_once(self, texts: Sequence[str]) -> bool:
        """True for texts in the tokenizer's cache; others wait for spaCy, which reads one text at a time."""
        return self.model.tokenizer.has_seen(texts)

    def encode_queries(self, texts: Sequence[str], call: CallContext) -> QueryFacets:
        """Facets of equal weight."""
        return equal_facets(self.encode(texts, call).facets)

    def embed(self, texts: Sequence[str], call: CallContext) -> NDArray[np.float32]:
        """Averages the encoder's states, which the batcher does not keep; runs one call at a time."""
        with self.exclusive(call) as model:
            return model.embed(texts)


class ServedPassages(ServedTexts):
    """A model of passages; queries do not wait for documents, which may keep their worker busy for seconds."""

    model: PassageModel

    def _encoders(self) -> dict[str, Callable[[Sequence[Any]], Columns]]:
        return {"documents": self._documents, "queries": self._queries, "vectors": self._vectors}

    def _length(self, row: str) -> int:
        return 2 + len(row) // _CHARS_PER_TOKEN

    def submit(self, texts: Sequence[str], call: CallContext) -> Pending[Encoded]:
        """Puts texts into the document queue."""
        pending = self._queued("documents", texts, call)
        return Pending(pending, lambda: _encoded(pending.columns()))

    def submit_vectors(self, texts: Sequence[str], call: CallContext) -> Pending[Encoded]:
        """Puts texts into the vector queue."""
        pending = self._queued("vectors", texts, call)
        return Pending(pending, lambda: _only_vectors(pending.columns()))

    def reads_at_once(self, texts: Sequence[str]) -> bool:
        """True if each text has a word: such texts are queued as they are, others are left to a worker thread."""
        return all(map(_WORD_CHARACTER.search, texts))

    def encode_queries(self, texts: Sequence[str], call: CallContext) -> QueryFacets:
        """Encodes each query as one vector, plus one per part if it is long."""
        return QueryFacets(*self._queued("queries", texts, call).columns())

    def embed(self, texts: Sequence[str], call: CallContext) -> NDArray[np.float32]:
        """Encodes each text as one vector."""
        return self._queued("vectors", texts, call, num_items=0).columns()[0]

    def probe(self, call: CallContext) -> None:
        """Encodes fixed texts, as documents and as queries."""
        super().probe(call)
        self.encode_queries(["What warms up?"], call)

    def _queued(
        self, lane: str, texts: Sequence[str], call: CallContext, num_items: int | None = None
    ) -> PendingRows[str]:
        call.check()
        call.num_items += len(texts) if num_items is None else num_items
        return self._lanes[lane].submit(texts, call)

    def _documents(self, texts: Sequence[str]) -> Columns:
        passages = self.model.encode_passages(texts)
        kept = np.full(len(texts), None, dtype=object)
        for index, document in passages.kept.items():
            kept[index] = document
        return passages.facets, passages.spans, passages.num_tokens, kept

    def _queries(self, texts: Sequence[str]) -> Columns:
        queries = self.model.encode_queries(texts)
        room = self.model.max_query_facets - queries.weights.shape[1]
        missing = ((0, 0), (0, room))  # one shape for all batches of a call
        return np.pad(queries.facets, (*missing, (0, 0))), np.pad(queries.weights, missing), queries.are_questions

    def _vectors(self, texts: Sequence[str]) -> Columns:
        return self.model.embed(texts), self.model.num_tokens(texts)


def _encoded(columns: Columns) -> Encoded:
    facets, spans, num_tokens, kept = columns
    stats = tuple(TokenStats(count, count) for count in num_tokens.tolist())
    long_texts = {index: document for index, document in enumerate(kept.tolist()) if document is not None}
    return Encoded(facets, stats, spans, kept=long_texts)


def _only_vectors(columns: Columns) -> Encoded:
    vectors, num_tokens = columns
    stats = tuple(TokenStats(count, count) for count in num_tokens.tolist())
    return Encoded(np.empty((len(vectors), 0, vectors.shape[1]), np.float32), stats, vectors=vectors)


class ServedReader(Lazy[tuple[AnswerReader, Batcher[ReadRow]]]):
    """A reader of answers behind a batcher, shared by models; ``load`` opens it for the first search."""

    def __init__(self, load: Callable[[], AnswerReader], config: BatcherConfig, metrics: "BatchMetrics") -> None:
        super().__init__(partial(_opened_reader, load, config, metrics), lambda opened: opened[1].close())

    def for_call(self, call: CallContext) -> AnswerReader:
        """The reader of one call, which waits for its turns; raises what opening it raises."""
        reader, batcher = self.opened()
        return reader.reading_by(lambda rows: list(batcher.submit(rows, call).columns()[0]))

    def is_healthy(self) -> bool:
        """See ``Batcher.is_healthy``."""
        return self.value is None or self.value[1].is_healthy()


def _opened_reader(
    load: Callable[[], AnswerReader], config: BatcherConfig, metrics: "BatchMetrics"
) -> tuple[AnswerReader, Batcher[ReadRow]]:
    reader = load()

    def read(rows: Sequence[ReadRow]) -> Columns:
        found = np.empty(len(rows), dtype=object)
        for index, log_odds in enumerate(reader.read_rows(rows)):
            found[index] = log_odds
        return (found,)

    shared: dict[str, Any] = {"model": reader.name, "metrics": metrics, "failures": Failures()}
    batcher = Batcher(reader.name, read, lambda row: len(row.ids), config, pads=False, **shared)
    metrics.queue.labels(reader.name).set_function(lambda: batcher.num_waiting_texts)
    return reader, batcher


class CallEncoder:
    """Encodes for one call, through the batchers: an ``Encoder``, and a ``TextEncoder``."""

    def __init__(self, served: ServedTexts, call: CallContext) -> None:
        self.served, self.call = served, call
        self.model, self.relevance = served.model, served.relevance
        self.submit = partial(served.submit, call=call)
        self.encode_queries = partial(served.encode_queries, call=call)
        self.embed = partial(served.embed, call=call)
        self.measured = call.stages.measured

    def reader(self) -> AnswerReader | None:
        """See ``Encoder``."""
        return None if self.served.reader is None else self.served.reader.for_call(self.call)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Facets with magnitudes, ``[len(texts), K, D]``."""
        return self.served.encode(texts, self.call).facets


TextModels = TaskModels[ServedTexts]


def encoders_for(models: TextModels, call: CallContext) -> Encoders:
    """The models by name, which encode for one call."""
    return lambda name: CallEncoder(models.get(name), call)
