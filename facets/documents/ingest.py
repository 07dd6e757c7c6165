"""Checks documents, cuts them into parts, encodes these, and stores the documents: all, or the good ones.

Documents that are stored already and equal are left as they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from facets.documents.encoders import Encoder, PendingTexts, check_readable_by, problem_of
from facets.documents.encoding import check_id, check_source, check_whole, encode_payload
from facets.documents.engine import CollectionEngine
from facets.documents.parts import EncodedText, check_sections, from_encoded, split_text, with_parts
from facets.documents.records import CollectionModel, CollectionRecord
from facets.documents.types import MAX_PAYLOAD_BYTES, Document, DocumentPart, TokenStats
from facets.errors import ErrorPath, InvalidInputError, raise_first
from facets.index.config import MAX_DOCUMENT_BYTES
from facets.language.tokenizer import check_text

TEXTS_AT_A_TIME = 1024  # encoded together: their results are in memory at once


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

    index_revision: int
    num_added: int = 0
    num_changed: int = 0
    num_unchanged: int = 0
    rejected_documents: tuple[Rejection, ...] = ()
    truncated_documents: tuple[TruncatedDocument, ...] = ()

    @property
    def num_upserted(self) -> int:
        """Documents of the batch that are stored."""
        return self.num_added + self.num_changed + self.num_unchanged


_Checked: TypeAlias = tuple[int, Document, tuple[DocumentPart, ...]]
FindEqual: TypeAlias = Callable[[Mapping[str, Document]], Mapping[str, int]]
"""Documents by id, with their parts -> first rows of those that are stored and equal, by id."""


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """Checked documents whose texts wait for the model."""

    # Position, document and parts (none for a short text) of each document that passed the checks.
    good: Sequence[_Checked]
    # First rows of those among them that are stored already, by position; they are not encoded.
    unchanged: Mapping[int, int]
    rejections: Sequence[Rejection]  # the other documents
    pending: PendingTexts | None  # the first texts to encode, one per part of a document without facets
    waiting: Sequence[str]  # the other texts, encoded after the first ones


@dataclass(frozen=True, slots=True)
class DocumentReader:
    """Checks and encodes documents for collections of one model."""

    collection: CollectionModel
    encoder: Encoder
    max_text_bytes: int = MAX_DOCUMENT_BYTES

    def prepare(
        self, documents: Sequence[Document | Rejection], find_equal: FindEqual = lambda documents: {}
    ) -> PreparedBatch:
        """Checks documents and gives the texts of new ones to the model, without waiting; some may be rejected already.

        ``find_equal``: asked for the documents without facets; by default, all are encoded.
        """
        good: list[_Checked] = []
        rejections: list[Rejection] = []
        for position, document in enumerate(documents):
            if isinstance(document, Rejection):
                rejections.append(document)
                continue
            try:
                parts = self._checked_parts(document, ("documents", position))
            except InvalidInputError as error:
                rejections.append(Rejection(position, document.id, error))
                continue
            good.append((position, document, parts))
        asked = {one.id: replace(one, parts=parts) for _, one, parts in good if not one.is_encoded}
        is_mistaken = len({one.id for _, one, _ in good}) < len(good)  # an id repeats: the engine reports it
        rows = {} if is_mistaken else find_equal(asked)
        unchanged = {position: rows[document.id] for position, document, _ in good if document.id in rows}
        texts: list[str] = []
        for position, document, parts in good:
            if not document.is_encoded and position not in unchanged:
                searched = self.collection.searched(document.text, document.payload, parts)
                texts += [one.read for one in searched if not parts or not problem_of(self.encoder.model, one.read)]
        pending = self.encoder.submit(texts[:TEXTS_AT_A_TIME]) if texts else None
        return PreparedBatch(good, unchanged, rejections, pending, texts[TEXTS_AT_A_TIME:])

    def encoded(self, batch: PreparedBatch) -> list[tuple[int, Document]]:
        """Waits for the model; position and document to store of each good one that is not unchanged."""
        texts = self._encoded_texts(batch)
        return [
            (position, self._finished(document, parts, texts))
            for position, document, parts in batch.good
            if position not in batch.unchanged
        ]

    def _checked_parts(self, document: Document, path: ErrorPath) -> tuple[DocumentPart, ...]:
        """The parts of a document, none for a short text; raises InvalidInputError for a bad document."""
        check_id(document.id, (*path, "id"))
        check_source(document.source, (*path, "source"))
        encode_payload(document.payload, path=(*path, "payload"))
        if document.part_facets and not (document.is_encoded and document.facet_spans is not None):
            raise InvalidInputError("must come with facet_embeddings and facet_spans", path=(*path, "part_facets"))
        sections = check_sections(document.text, document.parts, (*path, "parts"))
        searched = self.collection.searched(document.text, document.payload)[0]
        text = document.text if document.text.strip() else searched.read
        check_text(text, (*path, "text"), max_bytes=self.max_text_bytes)
        if len(searched.read) - len(document.text) > MAX_PAYLOAD_BYTES:  # the engine would refuse it after encoding
            raise InvalidInputError(f"has more than {MAX_PAYLOAD_BYTES} bytes, the limit", path=(*path, "payload"))
        if document.is_encoded:
            check_whole(document, self.collection, path=path)
        elif document.facet_spans is not None:
            raise InvalidInputError("must come with facet_embeddings", path=(*path, "facet_spans"))
        else:
            check_readable_by(self.encoder.model, searched.read, *path, "text")
        if document.is_encoded and document.facet_spans is None:
            return ()
        parts = split_text(document.text, sections)
        if document.part_facets and len(document.part_facets) != len(parts):
            rule = f"has {len(document.part_facets)} items, expected {len(parts)}, one for each part of the text"
            raise InvalidInputError(rule, path=(*path, "part_facets"))
        return parts

    def _encoded_texts(self, batch: PreparedBatch) -> Iterator[EncodedText]:
        if batch.pending is None:
            return
        yield from batch.pending.result().texts()
        for start in range(0, len(batch.waiting), TEXTS_AT_A_TIME):
            texts = batch.waiting[start : start + TEXTS_AT_A_TIME]
            for text in self.encoder.submit(texts).result().texts():
                # A book has many texts: kept in half precision.
                yield replace(text, facets=text.facets.astype(np.float16))

    def _finished(self, document: Document, parts: tuple[DocumentPart, ...], texts: Iterator[EncodedText]) -> Document:
        if document.is_encoded:
            if document.part_facets:
                return replace(document, parts=parts)
            return with_parts(replace(document, parts=()), parts, num_facets=self.collection.num_facets)
        nothing = EncodedText.of_nothing(self.collection.num_facets, self.collection.dim)
        said = self.collection.searched(document.text, document.payload, parts)
        encoded = [nothing if parts and problem_of(self.encoder.model, part.read) else next(texts) for part in said]
        return from_encoded(document, parts, said, encoded)


@dataclass(frozen=True, slots=True)
class Ingest:
    """Stores documents in one collection, in batches of which the next may be prepared while one is stored."""

    engine: CollectionEngine
    record: CollectionRecord
    reader: DocumentReader

    def prepare(self, documents: Sequence[Document | Rejection]) -> PreparedBatch:
        """Checks documents and begins to encode those that are new or changed."""
        return self.reader.prepare(documents, partial(self.engine.find_equal, self.record))

    def store_all(self, batch: PreparedBatch) -> StoredBatch:
        """Stores every document of the batch or, when it raises, none."""
        raise_first(rejection.error for rejection in batch.rejections)
        encoded = self.reader.encoded(batch)
        try:
            return self._upsert(encoded, batch)
        except _ChangedSinceError:
            return self.store_all(self._again(batch))

    def store_good(self, batch: PreparedBatch, *, check: Callable[[], None] = lambda: None) -> StoredBatch:
        """Stores the good documents and reports the others; ``check`` is that of ``CollectionEngine.upsert``."""
        rejections, remaining = list(batch.rejections), self.reader.encoded(batch)
        while True:
            try:
                stored = self._upsert(remaining, batch, check)
                break
            except _ChangedSinceError:
                return self.store_good(self._again(batch), check=check)
            except InvalidInputError as error:
                match error.path:  # the engine names the first bad document by its index in the arguments
                    case ("documents", int(index), *rest):
                        position, document = remaining.pop(index)
                        problem = error.at(("documents", position, *rest))
                        rejections.append(Rejection(position, document.id, problem))
                    case _:
                        raise
        rejections.sort(key=lambda rejection: rejection.position)
        return replace(stored, rejected_documents=tuple(rejections))

    def _upsert(
        self, placed: Sequence[tuple[int, Document]], batch: PreparedBatch, check: Callable[[], None] = lambda: None
    ) -> StoredBatch:
        rows = np.array(sorted(batch.unchanged.values()), dtype=np.int64)

        def check_all() -> None:
            check()
            if len(rows) and not self.engine.has_all(rows):
                raise _ChangedSinceError

        documents = [document for _, document in placed]
        with self.reader.encoder.measured("store", num_items=len(documents)):
            write = self.engine.upsert(self.record.name, documents, seen=self.record, check=check_all)
        return StoredBatch(
            num_added=write.num_inserted,
            num_changed=write.num_updated,
            num_unchanged=len(rows),
            rejected_documents=(),
            index_revision=write.revision,
            truncated_documents=_truncated(placed),
        )

    def _again(self, batch: PreparedBatch) -> PreparedBatch:
        """The batch compared with the documents that are stored now."""
        documents: dict[int, Document | Rejection] = {position: document for position, document, _ in batch.good}
        documents |= {rejection.position: rejection for rejection in batch.rejections}
        return self.prepare([documents[position] for position in sorted(documents)])


class _ChangedSinceError(Exception):
    """A document that was unchanged has been replaced or deleted since."""


def _truncated(documents: Sequence[tuple[int, Document]]) -> tuple[TruncatedDocument, ...]:
    return tuple(
        TruncatedDocument(position, document.id, TokenStats(document.num_read, document.num_tokens))
        for position, document in documents
        if document.num_tokens is not None and document.num_read is not None and document.num_read < document.num_tokens
    )
