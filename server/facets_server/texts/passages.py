"""Served models of passages: queries do not wait for documents, which may keep their worker busy for seconds."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.documents.encoders import Encoded
from facets.documents.types import TokenStats
from facets.model.passage_model import PassageModel, QueryFacets
from facets_server.runtime.batcher import Columns, PendingRows
from facets_server.runtime.call_context import CallContext
from facets_server.texts.served import PendingTexts, ServedTexts, columns_of

_CHARS_PER_TOKEN = 4  # approximate, for English text
_WORD_CHARACTER = re.compile(r"\w")


class ServedPassages(ServedTexts):
    """A model of passages."""

    model: PassageModel

    def _open_lanes(self) -> None:
        lanes = {"documents": self._documents, "queries": self._queries, "vectors": self._vectors}
        self._lanes = {
            name: self._add_batcher(f"{self.model.name}-{name}", encode, _estimated_tokens, pads=False)
            for name, encode in lanes.items()
        }

    def submit(self, texts: Sequence[str], call: CallContext) -> PendingTexts:
        """Puts texts into the document queue."""
        return PendingTexts(self._queued("documents", texts, call), call, _encoded)

    def submit_vectors(self, texts: Sequence[str], call: CallContext) -> PendingTexts:
        """Puts texts into the vector queue."""
        return PendingTexts(self._queued("vectors", texts, call), call, _only_vectors)

    def reads_at_once(self, texts: Sequence[str]) -> bool:
        """True if each text has a word: such texts are queued as they are, others are left to a worker thread."""
        return all(map(_WORD_CHARACTER.search, texts))

    def encode_queries(self, texts: Sequence[str], call: CallContext) -> QueryFacets:
        """Encodes each query as one vector, plus one per part if it is long."""
        return QueryFacets(*columns_of(self._queued("queries", texts, call), call))

    def embed(self, texts: Sequence[str], call: CallContext) -> NDArray[np.float32]:
        """Encodes each text as one vector."""
        return columns_of(self._queued("vectors", texts, call, num_items=0), call)[0]

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


def _estimated_tokens(text: str) -> int:
    return 2 + len(text) // _CHARS_PER_TOKEN


def _encoded(columns: Columns) -> Encoded:
    facets, spans, num_tokens, kept = columns
    stats = tuple(TokenStats(count, count) for count in num_tokens.tolist())
    long_texts = {index: document for index, document in enumerate(kept.tolist()) if document is not None}
    return Encoded(facets, stats, spans, kept=long_texts)


def _only_vectors(columns: Columns) -> Encoded:
    vectors, num_tokens = columns
    stats = tuple(TokenStats(count, count) for count in num_tokens.tolist())
    return Encoded(np.empty((len(vectors), 0, vectors.shape[1]), np.float32), stats, vectors=vectors)
