"""Documents on their way into a collection: checked, encoded, stored; and on their way from one model to another.

The same for one call and for the batches of a stream. A call stores all of its documents or none; a batch
of a stream stores the good ones and names the others with the reason.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from facets.documents import (
    CollectionEngine,
    CollectionRecord,
    Document,
    DocumentPart,
    EncodedText,
    JsonValue,
    TargetModel,
    UpsertResult,
    check_facets,
)
from facets.documents.fields import SearchedText
from facets.documents.parts import LONGEST_WHOLE_CHARS, from_encoded, split_text, with_parts
from facets.documents.types import MAX_PAYLOAD_BYTES
from facets.errors import ErrorPath, InvalidInputError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import ModelMismatchError
from facets_server.runtime.limits import raise_first, text_problem
from facets_server.texts.served import Encoded, PendingTexts, ServedTexts, TextModels, TokenStats

TEXTS_AT_A_TIME = 1024  # of a batch, encoded together: what the model makes of them is in memory at once


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingDocument:
    """A document as sent.

    Attributes:
        id: Its id.
        text: Its text.
        payload: Its payload.
        facets: ``[K, D]`` when the caller has encoded it, else None; a long text may have more, with their spans.
        spans: Where these facets stand in the text, ``[K, 2]``, when the caller says so, else None.
        sections: Where sections and pages of the text begin as far as the caller knows; none: the text tells.
        part_facets: How many of these facets are each part's; none: the spans tell.
        num_tokens: Tokens of the text, as who made the facets counted them; None: nobody says.
        num_read: How many of them were read.
        problem: What the conversion found wrong; None when nothing.
    """

    id: str
    text: str
    payload: dict[str, JsonValue] = field(default_factory=dict)
    facets: NDArray[np.float32] | None = None
    spans: NDArray[np.int64] | None = None
    sections: tuple[DocumentPart, ...] = ()
    part_facets: tuple[int, ...] = ()
    num_tokens: int | None = None
    num_read: int | None = None
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
        good: Position of those that may be stored, the document and its parts; these are none where it is one.
        rejections: The others.
        pending: The first texts of the good ones without facets, a part each; None when there are none.
        waiting: The other texts, which are encoded when the first ones are.
        call: On whose behalf.
    """

    good: tuple[tuple[int, IncomingDocument, tuple[DocumentPart, ...]], ...]
    rejections: tuple[Rejection, ...]
    pending: PendingTexts | None
    waiting: Sequence[str]
    call: CallContext


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
        good: list[tuple[int, IncomingDocument, tuple[DocumentPart, ...]]] = []
        rejections: list[Rejection] = []
        texts: list[str] = []
        for position, document in enumerate(documents):
            problem = document.problem or self._problem(document, position)
            if problem is not None:
                rejections.append(Rejection(position, document.id, problem))
                continue
            parts = (
                ()
                if document.facets is not None and document.spans is None
                else split_text(document.text, document.sections)
            )
            if document.part_facets and len(document.part_facets) != len(parts):
                rule = (
                    f"has {len(document.part_facets)} items, expected {len(parts)}, one for each part that the text has"
                )
                problem = InvalidInputError(rule, path=("documents", position, "part_facets"))
                rejections.append(Rejection(position, document.id, problem))
                continue
            good.append((position, document, parts))
            if document.facets is None:
                texts += self._texts(document, parts)
        pending = self.served.submit(texts[:TEXTS_AT_A_TIME], call) if texts else None
        return PreparedBatch(tuple(good), tuple(rejections), pending, texts[TEXTS_AT_A_TIME:], call)

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

    def store_good(self, batch: PreparedBatch, *, check: Callable[[], None] | None = None) -> StoredBatch:
        """Stores the good documents of the batch and names the others.

        ``check``: see :meth:`facets.documents.CollectionEngine.upsert`.

        Raises:
            StorageError: Nothing was stored.
        """
        rejections = list(batch.rejections)
        remaining = self._encoded(batch)
        while remaining:
            try:
                result = self._upsert(remaining, batch, check)
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

    def _upsert(
        self, placed: Sequence[tuple[int, Document]], batch: PreparedBatch, check: Callable[[], None] | None = None
    ) -> UpsertResult:
        documents = [document for _, document in placed]
        with batch.call.stages.measured("store", num_items=len(documents)):
            return self._engine.upsert(self._record.name, documents, seen=self._record, check=check)

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
            # Those of a long text become those of its parts, which the engine checks
            is_long = document.spans is not None and len(document.text) > LONGEST_WHOLE_CHARS
            some = facets[: expected[0]] if is_long else facets
            check_facets(some, expected, document.spans is not None, (*where, "facet_embeddings"))
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

    def _texts(self, document: IncomingDocument, parts: Sequence[DocumentPart]) -> list[str]:
        """What the model is to read of a document: the parts that it can read, each with the fields."""
        texts = [said.read for said in self._record.said(document.text, document.payload, parts)]
        return [text for text in texts if not self.served.problem(text)] if parts else texts

    def _encoded(self, batch: PreparedBatch) -> list[tuple[int, Document]]:
        read = self._read(batch)
        documents: list[tuple[int, Document]] = []
        for position, document, parts in batch.good:
            if document.facets is not None:
                documents.append((position, _as_given(document, document.facets, parts, self._record.num_facets)))
            else:
                documents.append((position, self._as_encoded(document, parts, read)))
        return documents

    def _read(self, batch: PreparedBatch) -> Iterator[EncodedText]:
        """What the model made of the texts of a batch, one by one, in their order."""
        if batch.pending is None:
            return
        encoded, num_texts = batch.pending.result(), len(batch.pending.rows.rows)
        yield from (encoded_text(encoded, row) for row in range(num_texts))
        for start in range(0, len(batch.waiting), TEXTS_AT_A_TIME):
            texts = batch.waiting[start : start + TEXTS_AT_A_TIME]
            encoded = self.served.encode(texts, batch.call)
            for row in range(len(texts)):
                one = encoded_text(encoded, row)  # of the many texts of a book: in half precision
                yield replace(one, facets=one.facets.astype(np.float16))

    def _as_encoded(
        self, document: IncomingDocument, parts: tuple[DocumentPart, ...], read: Iterator[EncodedText]
    ) -> Document:
        nothing = EncodedText.of_nothing(self._record.num_facets, self._record.dim)
        said = self._record.said(document.text, document.payload, parts)
        encoded = [nothing if parts and self.served.problem(one.read) else next(read) for one in said]
        return from_encoded(document.id, document.text, document.payload, parts=parts, said=said, encoded=encoded)

    def _said(self, document: IncomingDocument) -> SearchedText:
        return self._record.said(document.text, document.payload)[0]


def encoded_text(encoded: Encoded, row: int) -> EncodedText:
    """What the model made of one of the texts."""
    stats = encoded.stats[row]
    return EncodedText(*encoded.document(row), stats.num_tokens_in_text, stats.num_tokens)


def _as_given(
    document: IncomingDocument, facets: NDArray[np.float32], parts: tuple[DocumentPart, ...], num_facets: int
) -> Document:
    made = Document(
        id=document.id,
        text=document.text,
        payload=document.payload,
        facet_embeddings=facets,
        facet_spans=document.spans,
        num_tokens=document.num_tokens,
        num_read=document.num_read,
    )
    if document.part_facets:
        return replace(made, parts=parts, part_facets=document.part_facets)
    return with_parts(made, parts, num_facets=num_facets)


def _truncated(documents: Sequence[tuple[int, Document]]) -> tuple[TruncatedDocument, ...]:
    return tuple(
        TruncatedDocument(position, document.id, TokenStats(document.num_read, 0, document.num_tokens))
        for position, document in documents
        if document.num_tokens is not None and document.num_read is not None and document.num_read < document.num_tokens
    )


def open_ingest(
    engine: CollectionEngine,
    models: TextModels,
    collection: str,
    *,
    max_text_bytes: int,
    encoded_by: tuple[str, str] = ("", ""),
) -> Ingest:
    """The way into a collection.

    Args:
        engine: Has the collection.
        models: Served.
        collection: Its name.
        max_text_bytes: Of a document.
        encoded_by: Name and revision of the model that made facets which come with documents; empty: nobody says.

    Raises:
        NotFoundError: There is no such collection, or its model is not served.
        ModelMismatchError: Its model is served in another revision, or facets that come are of another one.
    """
    record = engine.record(collection)
    if any(encoded_by) and encoded_by != (record.model, record.model_revision):
        raise ModelMismatchError(
            f"collection {record.name!r} holds facets of revision {record.model_revision} of model {record.model}, "
            f"got facets of revision {encoded_by[1]} of {encoded_by[0]}: encode with the model of the collection"
        )
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


_LONGEST_STEP_S = 5.0  # well within the time that the server gives to running calls when it stops
_SHARE_OF_DEADLINE = 0.5  # the rest is for the batch that is being encoded and for the last writes


def step_budget_s(call: CallContext) -> float:
    """Seconds after which the call returns though there is more to do."""
    remaining = call.time_remaining()
    return _LONGEST_STEP_S if remaining is None else min(_LONGEST_STEP_S, _SHARE_OF_DEADLINE * remaining)


def target_of(served: ServedTexts, search_fields: Mapping[str, float] | None, call: CallContext) -> TargetModel:
    """The model, encoding on behalf of the call, and the fields that are searched; None: as they are."""
    model = served.model

    def encode(texts: Sequence[str]) -> list[EncodedText]:
        known = [place for place, text in enumerate(texts) if not served.problem(text)]
        found = [EncodedText.of_nothing(model.num_facets, model.dim)] * len(texts)
        if known:
            encoded = served.encode([texts[place] for place in known], call)
            for row, place in enumerate(known):
                found[place] = encoded_text(encoded, row)
        return found

    return TargetModel(
        name=model.name,
        revision=model.revision,
        space=model.space,
        num_facets=model.num_facets,
        dim=model.dim,
        encode=encode,
        search_fields=search_fields,
    )
