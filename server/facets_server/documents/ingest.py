"""Documents on their way into a collection: checked, encoded, stored.

The same for one call and for the batches of a stream. A call stores all of its documents or none; a batch
of a stream stores the good ones and names the others with the reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from facets.documents import CollectionEngine, CollectionRecord, Document, JsonValue, UpsertResult, check_facets
from facets.documents.fields import SearchedText
from facets.documents.types import MAX_PAYLOAD_BYTES
from facets.errors import ErrorPath, InvalidInputError
from facets_server.runtime.call_context import CallContext, Stages
from facets_server.runtime.errors import ModelMismatchError
from facets_server.runtime.limits import raise_first, text_problem
from facets_server.texts.served import Encoded, PendingTexts, ServedTexts, TextModels, TokenStats


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingDocument:
    """A document as sent.

    Attributes:
        id: Its id.
        text: Its text.
        payload: Its payload.
        facets: ``[K, D]`` when the caller has encoded it, else None; a long text may have more, with their spans.
        spans: Where these facets stand in the text, ``[K, 2]``, when the caller says so, else None.
        problem: What the conversion found wrong; None when nothing.
    """

    id: str
    text: str
    payload: dict[str, JsonValue] = field(default_factory=dict)
    facets: NDArray[np.float32] | None = None
    spans: NDArray[np.int64] | None = None
    problem: InvalidInputError | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """A document that was not stored.

    Attributes:
        position: Its place in the batch.
        id: Its id as sent.
        error: Why.
    """

    position: int
    id: str
    error: InvalidInputError


@dataclass(frozen=True, slots=True)
class TruncatedDocument:
    """A document that was stored, but not read to its end.

    Attributes:
        position: Its place in the batch.
        id: Its id.
        token_stats: What was read.
    """

    position: int
    id: str
    token_stats: TokenStats


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch that is durable.

    Attributes:
        num_upserted: Documents stored.
        rejected_documents: Documents not stored, by position.
        index_revision: Revision that holds the batch.
        truncated_documents: Documents stored but not read to their end, by position.
    """

    num_upserted: int
    rejected_documents: tuple[Rejection, ...]
    index_revision: int
    truncated_documents: tuple[TruncatedDocument, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A checked batch whose texts wait for the model.

    Attributes:
        good: ``(position, document)`` of those that may be stored.
        rejections: The others.
        pending: The texts of the good ones without facets; None when there are none.
        stages: Of the call.
    """

    good: tuple[tuple[int, IncomingDocument], ...]
    rejections: tuple[Rejection, ...]
    pending: PendingTexts | None
    stages: Stages


class Ingest:
    """The way into one collection."""

    def __init__(
        self, engine: CollectionEngine, served: ServedTexts, record: CollectionRecord, max_text_bytes: int
    ) -> None:
        self._engine = engine
        self._record = record
        self._max_text_bytes = max_text_bytes
        self.served = served

    def prepare(self, documents: Sequence[IncomingDocument], call: CallContext) -> PreparedBatch:
        """Checks documents and hands their texts to the model, without waiting.

        Args:
            documents: The batch.
            call: On whose behalf.
        """
        good: list[tuple[int, IncomingDocument]] = []
        rejections: list[Rejection] = []
        for position, document in enumerate(documents):
            problem = document.problem or self._problem(document, position)
            if problem is None:
                good.append((position, document))
            else:
                rejections.append(Rejection(position, document.id, problem))
        texts = [self._said(document).read for _, document in good if document.facets is None]
        pending = self.served.submit(texts, call) if texts else None
        return PreparedBatch(tuple(good), tuple(rejections), pending, call.stages)

    def store_all(self, batch: PreparedBatch) -> StoredBatch:
        """Stores every document of the batch or none.

        Raises:
            InvalidInputError: A document is bad; nothing was stored.
            StorageError: Nothing was stored.
        """
        if batch.rejections:
            raise_first(rejection.error for rejection in batch.rejections)
        encoded = self._encoded(batch)
        result = self._upsert(encoded, batch)
        return StoredBatch(len(encoded), (), result.revision, _truncated(encoded))

    def store_good(self, batch: PreparedBatch) -> StoredBatch:
        """Stores the good documents of the batch and names the others.

        Raises:
            StorageError: Nothing was stored.
        """
        rejections = list(batch.rejections)
        remaining = self._encoded(batch)
        while remaining:
            try:
                result = self._upsert(remaining, batch)
            except InvalidInputError as error:
                match error.path:  # the engine names the first bad document by its place in what it was given
                    case ("documents", int(place), *rest):
                        position, document = remaining.pop(place)
                        problem = error.at(("documents", position, *rest))
                        rejections.append(Rejection(position, document.id, problem))
                    case _:
                        raise
            else:
                rejections.sort(key=lambda rejection: rejection.position)
                return StoredBatch(len(remaining), tuple(rejections), result.revision, _truncated(remaining))
        rejections.sort(key=lambda rejection: rejection.position)
        return StoredBatch(0, tuple(rejections), self._engine.revision)

    def _upsert(self, placed: Sequence[tuple[int, Document]], batch: PreparedBatch) -> UpsertResult:
        documents = [document for _, document in placed]
        with batch.stages.measured("store", num_items=len(documents)):
            return self._engine.upsert(self._record.name, documents, seen=self._record)

    def _problem(self, document: IncomingDocument, position: int) -> InvalidInputError | None:
        where = ("documents", position)
        if not document.id:
            return InvalidInputError("is empty, expected a name", path=(*where, "id"))
        said = self._said(document)
        problem = text_problem(
            document.text if document.text.strip() else said.read, (*where, "text"), self._max_text_bytes
        )
        if problem is not None:
            return problem
        if len(said.read) - len(document.text) > MAX_PAYLOAD_BYTES:  # before the model reads all of it in vain
            return InvalidInputError(f"has more than {MAX_PAYLOAD_BYTES} bytes, the limit", path=(*where, "payload"))
        if document.facets is None:
            if document.spans is not None:
                return InvalidInputError("must come with facet_embeddings", path=(*where, "facet_spans"))
            rule = self.served.problem(said.read)
            return InvalidInputError(rule, path=(*where, "text")) if rule else None
        return self._facets_problem(document, document.facets, where)

    def _facets_problem(
        self, document: IncomingDocument, facets: NDArray[np.float32], where: ErrorPath
    ) -> InvalidInputError | None:
        expected = (self._record.num_facets, self._record.dim)
        try:
            check_facets(facets, expected, document.spans is not None, (*where, "facet_embeddings"))
        except InvalidInputError as error:
            return error
        if document.spans is None:
            return None
        if len(document.spans) != len(facets):
            rule = f"has {len(document.spans)} items, expected {len(facets)}, one a facet"
            return InvalidInputError(rule, path=(*where, "facet_spans"))
        starts, ends = document.spans.T
        num_chars = self._said(document).num_chars
        wrong = np.flatnonzero((ends < starts) | (ends > num_chars))
        if len(wrong):
            start, end = document.spans[wrong[0]].tolist()
            rule = f"must be a part of the {num_chars} characters of text and fields, got {start} to {end}"
            return InvalidInputError(rule, path=(*where, "facet_spans", int(wrong[0])))
        return None

    def _encoded(self, batch: PreparedBatch) -> list[tuple[int, Document]]:
        encoded = batch.pending.result() if batch.pending is not None else None
        documents: list[tuple[int, Document]] = []
        row = 0  # of the texts that were encoded
        for position, document in batch.good:
            if document.facets is not None:
                documents.append((position, _as_given(document, document.facets)))
            else:
                assert encoded is not None  # prepare has sent the text
                documents.append((position, self._as_encoded(document, encoded, row)))
                row += 1
        return documents

    def _as_encoded(self, document: IncomingDocument, encoded: Encoded, row: int) -> Document:
        stats = encoded.stats[row]
        facets, spans = encoded.document(row)
        return Document(
            id=document.id,
            text=document.text,
            payload=document.payload,
            facet_embeddings=facets,
            facet_spans=None if spans is None else self._said(document).kept_spans(spans),
            num_tokens=stats.num_tokens_in_text,
            num_read=stats.num_tokens,
        )

    def _said(self, document: IncomingDocument) -> SearchedText:
        return self._record.said(document.text, document.payload)[0]


def _as_given(document: IncomingDocument, facets: NDArray[np.float32]) -> Document:
    return Document(
        id=document.id,
        text=document.text,
        payload=document.payload,
        facet_embeddings=facets,
        facet_spans=document.spans,
    )


def _truncated(documents: Sequence[tuple[int, Document]]) -> tuple[TruncatedDocument, ...]:
    return tuple(
        TruncatedDocument(position, document.id, TokenStats(document.num_read, 0, document.num_tokens))
        for position, document in documents
        if document.num_tokens is not None and document.num_read is not None and document.num_read < document.num_tokens
    )


def open_ingest(engine: CollectionEngine, models: TextModels, collection: str, *, max_text_bytes: int) -> Ingest:
    """The way into a collection.

    Raises:
        NotFoundError: There is no such collection, or its model is not served.
        ModelMismatchError: Its model is served in another revision.
    """
    record = engine.record(collection)
    return Ingest(engine, writer_of(record, models), record, max_text_bytes)


def writer_of(record: CollectionRecord, models: TextModels) -> ServedTexts:
    """The model that encodes the documents of a collection: its own, so that all of them are alike.

    Raises:
        NotFoundError: It is not served.
        ModelMismatchError: It is served in another revision.
    """
    served = models.get(record.model)
    if served.model.revision != record.model_revision:
        raise ModelMismatchError(
            f"collection {record.name!r} was made with revision {record.model_revision} of model {record.model}, "
            f"the server has {served.model.revision}: move it with ReindexCollection (facets collections reindex) "
            "or start the server with the old model"
        )
    return served
