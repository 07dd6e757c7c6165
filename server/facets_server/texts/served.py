"""The models a server serves, each behind its batcher."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.model.contract import SentenceModel
from facets_server.runtime.batcher import Batcher, PendingRows
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import BatcherConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.model_registry import TaskModels
from facets_server.runtime.served_model import ServedModel

__all__ = [
    "CallEncoder",
    "Encoded",
    "PendingTexts",
    "ServedTexts",
    "TextModels",
    "TextStats",
]

_WARM_UP_TEXTS = (
    "A short text.",
    "A longer text that warms up the model with several more words than the first one.",
)


@dataclass(frozen=True, slots=True)
class TextStats:
    """Token counts of one text."""

    num_tokens: int
    num_unknown_tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Encoded:
    """Texts as the model sees them.

    Attributes:
        facets: ``[texts, K, D]``, float32, magnitudes kept.
        stats: Token counts of each text.
    """

    facets: NDArray[np.float32]
    stats: tuple[TextStats, ...]


class PendingTexts:
    """Texts that wait for the model; made by ``ServedTexts.submit``."""

    def __init__(self, rows: PendingRows, stats: tuple[TextStats, ...], call: CallContext) -> None:
        self.rows = rows
        self._stats = stats
        self._call = call

    def result(self) -> Encoded:
        """Waits for the embeddings and adds the times to the call.

        Raises:
            DeadlineExceededError: The deadline passed first.
            CallCancelledError: The caller cancelled first.
        """
        encoded = self.rows.result()
        self._call.queue_ms += encoded.queue_ms
        self._call.inference_ms += encoded.inference_ms
        return Encoded(encoded.facets, self._stats)


class ServedTexts(ServedModel[SentenceModel]):
    """One model of texts behind its batcher."""

    def __init__(self, model: SentenceModel, config: BatcherConfig, metrics: BatchMetrics) -> None:
        super().__init__(model, model)
        self.model = model
        self.batcher = Batcher(model.encode_rows, config, name=model.name, metrics=metrics, failures=self.failures)
        metrics.watch_queue(model.name, lambda: self.batcher.num_waiting_texts)

    def submit(self, texts: Sequence[str], call: CallContext) -> PendingTexts:
        """Tokenizes texts and puts them into the queue of the model.

        Args:
            texts: At least one; checked by the caller.
            call: For whom.
        """
        call.check()
        rows = self.model.tokenize(texts)
        unknown = self.model.words.vocabulary.unknown_row
        stats = tuple(
            TextStats(len(row), int(np.count_nonzero(row == unknown)), self._is_cut(text, row))
            for text, row in zip(texts, rows, strict=True)
        )
        call.num_items += len(texts)
        return PendingTexts(self.batcher.submit(rows, call), stats, call)

    def _is_cut(self, text: str, row: NDArray[np.int64]) -> bool:
        """True when the text has more tokens than the model reads."""
        most = self.model.max_tokens
        if len(row) < most:
            return False
        return len(self.model.words.vocabulary.split_rows(self.model.tokenizer.words([text])[0])[0]) > most

    def encode(self, texts: Sequence[str], call: CallContext) -> Encoded:
        """``submit`` and wait."""
        return self.submit(texts, call).result()

    def probe(self, call: CallContext) -> None:
        """Encodes texts of our own."""
        self.encode(_WARM_UP_TEXTS, call)

    def has_answered(self) -> bool:
        """False when the last batches failed one after the other or the worker is gone."""
        return self.batcher.is_healthy()

    def close(self) -> None:
        """Ends the worker."""
        super().close()
        self.batcher.close()


class CallEncoder:
    """Encodes on behalf of one call, for the tasks of the library: ``encode`` goes through the batcher."""

    def __init__(self, served: ServedTexts, call: CallContext) -> None:
        self._served = served
        self._call = call

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """``[len(texts), K, D]``, magnitudes kept."""
        return self._served.encode(texts, self._call).facets

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Averages of the encoder's states; the batcher does not know them, so one call at a time asks for them."""
        with self._served.exclusive(self._call) as model:
            return model.embed(texts)


# What the services about texts are given.
TextModels = TaskModels[ServedTexts]
