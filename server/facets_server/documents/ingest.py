"""Checks, encodes and stores documents, and moves a collection from one model to another.

Upsert stores all of its documents or none; a batch of a stream stores the good documents and reports the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from facets_proto.v1 import documents_pb2 as pb
from facets_proto.v1.common_pb2 import ModelVersion

from facets.documents import CollectionEngine, Document, DocumentPart, EncodedText, TargetModel, check_whole
from facets.documents.parts import from_encoded, split_text, with_parts
from facets.documents.types import MAX_PAYLOAD_BYTES, TokenStats
from facets.errors import ErrorPath, InvalidInputError
from facets_server.documents.requests import NOT_ENCODED, document_of
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import ModelMismatchError
from facets_server.runtime.requests import raise_first, text_problem
from facets_server.texts.served import Encoded, PendingTexts, ServedTexts, TextModels

TEXTS_AT_A_TIME = 1024  # encoded together: their results are in memory at once
_MAX_STEP_S = 5.0  # well within the time that the server gives to running calls when it stops
_SHARE_OF_DEADLINE = 0.5  # the rest is left for the running batch and the last writes


@dataclass(frozen=True, slots=True)
class Rejection:
    """A document that was not stored: its position in the batch, its id and the reason."""

    position: int
    id: str
    error: InvalidInputError


@dataclass(frozen=True, slots=True)
class TruncatedDocument:
    """A stored document whose end was not read: its position in the batch, its id and its token counts."""

    position: int
    id: str
    token_stats: TokenStats


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A durable batch; rejected and truncated documents are sorted by position."""

    num_upserted: int
    rejected_documents: tuple[Rejection, ...]
    index_revision: int
    truncated_documents: tuple[TruncatedDocument, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A checked batch whose texts wait for the model."""

    # Position, document and parts (none for a short text) of each document that passed the checks.
    good: Sequence[tuple[int, Document, tuple[DocumentPart, ...]]]
    rejections: Sequence[Rejection]  # the other documents
    pending: PendingTexts | None  # the first texts to encode, one per part of a document without facets
    waiting: Sequence[str]  # the other texts, encoded after the first ones
    call: CallContext


class Ingest:
    """Checks, encodes and stores documents of one collection."""

    def __init__(
        self,
        engine: CollectionEngine,
        models: TextModels,
        collection: str,
        *,
        max_text_bytes: int,
        encoded_by: ModelVersion,
    ) -> None:
        """Raises NotFoundError or ModelMismatchError; ``encoded_by`` is the model that made the caller's facets."""
        record = engine.record(collection)
        given = (encoded_by.name, encoded_by.revision)
        if any(given) and given != (record.model, record.model_revision):
            raise ModelMismatchError(
                f"collection {record.name!r} holds facets of revision {record.model_revision} of model {record.model}, "
                f"got facets of revision {given[1]} of {given[0]}: encode with the model of the collection"
            )
        self.served = models.get(record.model)
        if self.served.model.revision != record.model_revision:
            raise ModelMismatchError(
                f"collection {record.name!r} was made with revision {record.model_revision} of model {record.model}, "
                f"the server has {self.served.model.revision}: move it with ReindexCollection (facets collections "
                "reindex) or start the server with the old model"
            )
        self._engine = engine
        self._record = record
        self._max_text_bytes = max_text_bytes

    def prepare(self, messages: Sequence[pb.Document], call: CallContext) -> PreparedBatch:
        """Checks documents and queues their texts for the model, without waiting."""
        good: list[tuple[int, Document, tuple[DocumentPart, ...]]] = []
        rejections: list[Rejection] = []
        texts: list[str] = []
        for position, message in enumerate(messages):
            path = ("documents", position)
            try:
                document = document_of(message, path)
                parts = self._checked_parts(document, path)
            except InvalidInputError as error:
                rejections.append(Rejection(position, message.id, error))
                continue
            good.append((position, document, parts))
            if document.facet_embeddings is NOT_ENCODED:
                texts += self._texts_to_read(document, parts)
        pending = self.served.submit(texts[:TEXTS_AT_A_TIME], call) if texts else None
        return PreparedBatch(good, rejections, pending, texts[TEXTS_AT_A_TIME:], call)

    def store_all(self, batch: PreparedBatch) -> StoredBatch:
        """Stores every document of the batch or, when it raises, none."""
        raise_first(rejection.error for rejection in batch.rejections)
        encoded = self._encoded(batch)
        revision = self._upsert(encoded, batch, check=None)
        return StoredBatch(len(encoded), (), revision, _truncated(encoded))

    def store_good(self, batch: PreparedBatch, *, check: Callable[[], None]) -> StoredBatch:
        """Stores the good documents and reports the others; ``check`` is that of ``CollectionEngine.upsert``."""
        rejections, remaining = list(batch.rejections), self._encoded(batch)
        revision = self._engine.revision
        while remaining:
            try:
                revision = self._upsert(remaining, batch, check)
                break
            except InvalidInputError as error:
                match error.path:  # the engine names the first bad document by its index in the arguments
                    case ("documents", int(index), *rest):
                        position, document = remaining.pop(index)
                        problem = error.at(("documents", position, *rest))
                        rejections.append(Rejection(position, document.id, problem))
                    case _:
                        raise
        rejections.sort(key=lambda rejection: rejection.position)
        return StoredBatch(len(remaining), tuple(rejections), revision, _truncated(remaining))

    def _upsert(
        self, placed: Sequence[tuple[int, Document]], batch: PreparedBatch, check: Callable[[], None] | None
    ) -> int:
        documents = [document for _, document in placed]
        with batch.call.stages.measured("store", num_items=len(documents)):
            return self._engine.upsert(self._record.name, documents, seen=self._record, check=check).revision

    def _checked_parts(self, document: Document, path: ErrorPath) -> tuple[DocumentPart, ...]:
        """The parts of a document, none for a short text; raises InvalidInputError for a bad document."""
        if not document.id:
            raise InvalidInputError("is empty, expected a name", path=(*path, "id"))
        searched = self._record.searched(document.text, document.payload)[0]
        text = document.text if document.text.strip() else searched.read
        problem = text_problem(text, (*path, "text"), self._max_text_bytes)
        if problem is not None:
            raise problem
        if len(searched.read) - len(document.text) > MAX_PAYLOAD_BYTES:  # the engine would refuse it after encoding
            raise InvalidInputError(f"has more than {MAX_PAYLOAD_BYTES} bytes, the limit", path=(*path, "payload"))
        if document.facet_embeddings is not NOT_ENCODED:
            check_whole(document, self._record, path=path)
            if document.facet_spans is None:
                return ()
        elif document.facet_spans is not None:
            raise InvalidInputError("must come with facet_embeddings", path=(*path, "facet_spans"))
        elif rule := self.served.problem(searched.read):
            raise InvalidInputError(rule, path=(*path, "text"))
        parts = split_text(document.text, document.parts)
        if document.part_facets and len(document.part_facets) != len(parts):
            rule = f"has {len(document.part_facets)} items, expected {len(parts)}, one for each part of the text"
            raise InvalidInputError(rule, path=(*path, "part_facets"))
        return parts

    def _texts_to_read(self, document: Document, parts: Sequence[DocumentPart]) -> list[str]:
        """The text of each part that the model can read, with the searched fields."""
        texts = [searched.read for searched in self._record.searched(document.text, document.payload, parts)]
        return [text for text in texts if not self.served.problem(text)] if parts else texts

    def _encoded(self, batch: PreparedBatch) -> list[tuple[int, Document]]:
        texts = self._encoded_texts(batch)
        return [(position, self._finished(document, parts, texts)) for position, document, parts in batch.good]

    def _encoded_texts(self, batch: PreparedBatch) -> Iterator[EncodedText]:
        if batch.pending is None:
            return
        encoded = batch.pending.result()
        yield from (encoded_text(encoded, row) for row in range(len(encoded.stats)))
        for start in range(0, len(batch.waiting), TEXTS_AT_A_TIME):
            texts = batch.waiting[start : start + TEXTS_AT_A_TIME]
            encoded = self.served.encode(texts, batch.call)
            for row in range(len(texts)):
                text = encoded_text(encoded, row)  # a book has many texts: kept in half precision
                yield replace(text, facets=text.facets.astype(np.float16))

    def _finished(self, document: Document, parts: tuple[DocumentPart, ...], texts: Iterator[EncodedText]) -> Document:
        if document.facet_embeddings is not NOT_ENCODED:
            if document.part_facets:
                return replace(document, parts=parts)
            return with_parts(replace(document, parts=()), parts, num_facets=self._record.num_facets)
        nothing = EncodedText.of_nothing(self._record.num_facets, self._record.dim)
        said = self._record.searched(document.text, document.payload, parts)
        encoded = [nothing if parts and self.served.problem(part.read) else next(texts) for part in said]
        return from_encoded(document.id, document.text, document.payload, parts=parts, searched=said, encoded=encoded)


def encoded_text(encoded: Encoded, row: int) -> EncodedText:
    """The model's result for one of the texts."""
    stats = encoded.stats[row]
    return EncodedText(*encoded.document(row), stats.num_tokens_in_text, stats.num_tokens)


def _truncated(documents: Sequence[tuple[int, Document]]) -> tuple[TruncatedDocument, ...]:
    return tuple(
        TruncatedDocument(position, document.id, TokenStats(document.num_read, document.num_tokens))
        for position, document in documents
        if document.num_tokens is not None and document.num_read is not None and document.num_read < document.num_tokens
    )


def step_budget_s(call: CallContext) -> float:
    """Seconds after which a ReindexCollection call returns even if work remains."""
    remaining = call.time_remaining()
    return _MAX_STEP_S if remaining is None else min(_MAX_STEP_S, _SHARE_OF_DEADLINE * remaining)


def target_of(served: ServedTexts, search_fields: Mapping[str, float] | None, call: CallContext) -> TargetModel:
    """The model to move a collection to, which encodes for the call; ``search_fields`` None: unchanged."""
    model = served.model

    def encode(texts: Sequence[str]) -> list[EncodedText]:
        results = [EncodedText.of_nothing(model.num_facets, model.dim)] * len(texts)
        readable = [i for i, text in enumerate(texts) if not served.problem(text)]
        if readable:
            encoded = served.encode([texts[i] for i in readable], call)
            for row, i in enumerate(readable):
                results[i] = encoded_text(encoded, row)
        return results

    return TargetModel(
        model=model.name,
        model_revision=model.revision,
        space=model.space,
        num_facets=model.num_facets,
        dim=model.dim,
        encode=encode,
        search_fields=search_fields,
    )
