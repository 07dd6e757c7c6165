"""Checks documents, cuts them into parts, encodes these, and stores the documents: all, or the good ones.

Documents that are stored already and equal are left as they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from facets.documents.encoders import Encoder, PendingTexts, check_readable_by, problem_of
from facets.documents.encoding import check_document, check_facets, check_new
from facets.documents.engine import CollectionEngine
from facets.documents.fields import SearchedText
from facets.documents.parts import EncodedText, check_sections, from_encoded, split_text, with_parts
from facets.documents.records import CollectionModel, CollectionRecord
from facets.documents.types import Document, TokenStats
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


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """Checked documents whose texts wait for the model."""

    given: Sequence[Document | Rejection]
    good: Mapping[int, Document]  # documents that passed the checks, with their parts, by position
    # First rows of those among them that are stored already, by position; they are not encoded.
    unchanged: Mapping[int, int]
    rejections: Sequence[Rejection]  # the other documents
    pending: PendingTexts | None  # the first texts to encode, one per part of a document without facets
    waiting: Sequence[str]  # the other texts, encoded after the first ones


@dataclass(frozen=True, kw_only=True)
class DocumentReader:
    """Checks and encodes documents for collections of one model."""

    collection: CollectionModel
    encoder: Encoder
    max_text_bytes: int = MAX_DOCUMENT_BYTES

    def find_equal(self, documents: Mapping[str, Document]) -> Mapping[str, int]:
        """First rows, by id, of the stored documents that equal these, which have no facets; none without a store."""
        return {}

    def prepare(self, documents: Sequence[Document | Rejection]) -> PreparedBatch:
        """Checks documents and begins to encode those that are new or changed; some may be rejected already."""
        good: dict[int, Document] = {}
        rejections: list[Rejection] = []
        known_ids: set[str] = set()
        for position, document in enumerate(documents):
            if isinstance(document, Rejection):
                rejections.append(document)
                continue
            try:
                checked = self._checked(document, ("documents", position))
                check_new(document.id, known_ids, ("documents", position))
                good[position] = checked
            except InvalidInputError as error:
                rejections.append(Rejection(position, document.id, error))
        rows = self.find_equal({one.id: one for one in good.values() if not one.is_encoded})
        unchanged = {position: rows[document.id] for position, document in good.items() if document.id in rows}
        texts: list[str] = []
        for position, document in good.items():
            if not document.is_encoded and position not in unchanged:
                searched = self.collection.searched(document.text, document.payload, document.parts)
                texts += [one.read for one in searched if self._is_read(document, one)]
        pending = self.encoder.submit(texts[:TEXTS_AT_A_TIME]) if texts else None
        return PreparedBatch(documents, good, unchanged, rejections, pending, texts[TEXTS_AT_A_TIME:])

    def encoded(self, batch: PreparedBatch) -> list[tuple[int, Document]]:
        """Waits for the model; position and document to store of each good one that is not unchanged."""
        texts = self._encoded_texts(batch)
        return [
            (position, document if document.is_encoded else self._finished(document, texts))
            for position, document in batch.good.items()
            if position not in batch.unchanged
        ]

    def _checked(self, document: Document, path: ErrorPath) -> Document:
        """The document with its parts, among which its facets, if any, are divided; raises InvalidInputError."""
        check_document(document, path)
        sections = check_sections(document.text, document.parts, (*path, "parts"))
        searched = self.collection.searched(document.text, document.payload)[0]
        text = document.text if document.text.strip() else searched.read
        check_text(text, (*path, "text"), max_bytes=self.max_text_bytes)
        parts = split_text(document.text, sections)
        if document.part_facets and not (document.is_encoded and document.facet_spans is not None):
            raise InvalidInputError("must come with facet_embeddings and facet_spans", path=(*path, "part_facets"))
        if not document.is_encoded:
            if document.facet_spans is not None:
                raise InvalidInputError("must come with facet_embeddings", path=(*path, "facet_spans"))
            check_readable_by(self.encoder.model, searched.read, *path, "text")
            return replace(document, parts=parts)
        if not document.part_facets:
            document = replace(document, parts=())
            check_facets(document, self.collection, path, is_whole=True)
            document = with_parts(document, parts, num_facets=self.collection.num_facets)
        elif len(document.part_facets) == len(parts):
            document = replace(document, parts=parts)
        else:
            rule = f"has {len(document.part_facets)} items, expected {len(parts)}, one for each part of the text"
            raise InvalidInputError(rule, path=(*path, "part_facets"))
        check_facets(document, self.collection, path)
        return document

    def _is_read(self, document: Document, part: SearchedText) -> bool:
        """Whether the model reads a part: one of several may have no words that it knows."""
        return not document.parts or not problem_of(self.encoder.model, part.read)

    def _encoded_texts(self, batch: PreparedBatch) -> Iterator[EncodedText]:
        if batch.pending is None:
            return
        yield from batch.pending().texts()
        for start in range(0, len(batch.waiting), TEXTS_AT_A_TIME):
            texts = batch.waiting[start : start + TEXTS_AT_A_TIME]
            for text in self.encoder.submit(texts)().texts():
                # A book has many texts: kept in half precision.
                yield replace(text, facets=text.facets.astype(np.float16))

    def _finished(self, document: Document, texts: Iterator[EncodedText]) -> Document:
        nothing = EncodedText.of_nothing(self.collection.num_facets, self.collection.dim)
        searched = self.collection.searched(document.text, document.payload, document.parts)
        encoded = [next(texts) if self._is_read(document, part) else nothing for part in searched]
        return from_encoded(document, document.parts, searched, encoded)


@dataclass(frozen=True, kw_only=True)
class Ingest(DocumentReader):
    """Stores documents in one collection, in batches of which the next may be prepared while one is stored."""

    collection: CollectionRecord
    engine: CollectionEngine

    def find_equal(self, documents: Mapping[str, Document]) -> Mapping[str, int]:
        """See :meth:`StoreView.equal_rows`."""
        with self.engine.view(self.collection.name, self.collection) as (view, record):
            return view.equal_rows(record, documents) if documents else {}

    def store_all(self, batch: PreparedBatch) -> StoredBatch:
        """Stores every document of the batch or, when it raises, none."""
        raise_first(rejection.error for rejection in batch.rejections)
        return self.store_good(batch)

    def store_good(self, batch: PreparedBatch, *, check: Callable[[], None] = lambda: None) -> StoredBatch:
        """Stores the good documents and reports the others; ``check`` is that of ``CollectionEngine.upsert``."""
        encoded = self.encoded(batch)
        unchanged_rows = np.array(sorted(batch.unchanged.values()), dtype=np.int64)

        def check_all() -> None:
            check()
            if len(unchanged_rows) and not self.engine.has_all(unchanged_rows):
                raise _ChangedSinceError

        documents = [document for _, document in encoded]
        try:
            with self.encoder.measured("store", num_items=len(documents)):
                write = self.engine.upsert(self.collection.name, documents, seen=self.collection, check=check_all)
        except _ChangedSinceError:  # compares with the documents that are stored now
            return self.store_good(self.prepare(batch.given), check=check)
        return StoredBatch(
            num_added=write.num_added - write.num_removed,
            num_changed=write.num_removed,
            num_unchanged=len(unchanged_rows),
            rejected_documents=tuple(batch.rejections),
            index_revision=write.revision,
            truncated_documents=tuple(
                TruncatedDocument(position, document.id, document.token_stats)
                for position, document in encoded
                if document.token_stats is not None and document.token_stats.truncated
            ),
        )


class _ChangedSinceError(Exception):
    """A document that was unchanged has been replaced or deleted since."""
