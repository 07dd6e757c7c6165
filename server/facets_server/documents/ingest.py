"""Documents on their way into a collection: checked, encoded, stored.

The same for one call and for the batches of a stream. A call stores all of its documents or none; a batch
of a stream stores the good ones and names the others with the reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from facets.documents import CollectionEngine, CollectionRecord, Document, JsonValue
from facets.errors import InvalidInputError
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.checks import raise_first, text_problem
from facets_server.runtime.errors import ModelMismatchError
from facets_server.texts.served import PendingTexts, ServedTexts, TextModels

__all__ = [
    "IncomingDocument",
    "Ingest",
    "PreparedBatch",
    "Rejection",
    "StoredBatch",
    "model_of",
    "open_ingest",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingDocument:
    """A document as sent.

    Attributes:
        id: Its id.
        text: Its text.
        payload: Its payload.
        facets: ``[K, D]`` when the caller has encoded it, else None.
        problem: What the conversion found wrong; None when nothing.
    """

    id: str
    text: str
    payload: dict[str, JsonValue] = field(default_factory=dict)
    facets: NDArray[np.float32] | None = None
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
class StoredBatch:
    """A batch that is durable.

    Attributes:
        num_stored: Documents stored.
        rejections: Documents not stored, by position.
        revision: Revision that holds the batch.
    """

    num_stored: int
    rejections: tuple[Rejection, ...]
    revision: int


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A checked batch whose texts wait for the model.

    Attributes:
        good: ``(position, document)`` of those that may be stored.
        rejections: The others.
        pending: The texts of the good ones without facets; None when there are none.
    """

    good: tuple[tuple[int, IncomingDocument], ...]
    rejections: tuple[Rejection, ...]
    pending: PendingTexts | None


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
        texts = [document.text for _, document in good if document.facets is None]
        pending = self.served.submit(texts, call) if texts else None
        return PreparedBatch(tuple(good), tuple(rejections), pending)

    def store_all(self, batch: PreparedBatch) -> StoredBatch:
        """Stores every document of the batch or none.

        Raises:
            InvalidInputError: A document is bad; nothing was stored.
            StorageError: Nothing was stored.
        """
        if batch.rejections:
            raise_first(rejection.error for rejection in batch.rejections)
        documents = [document for _, document in self._encoded(batch)]
        result = self._engine.upsert(self._record.name, documents, seen=self._record)
        return StoredBatch(len(documents), (), result.revision)

    def store_good(self, batch: PreparedBatch) -> StoredBatch:
        """Stores the good documents of the batch and names the others.

        Raises:
            StorageError: Nothing was stored.
        """
        rejections = list(batch.rejections)
        remaining = self._encoded(batch)
        while remaining:
            try:
                documents = [document for _, document in remaining]
                result = self._engine.upsert(self._record.name, documents, seen=self._record)
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
                return StoredBatch(len(remaining), tuple(rejections), result.revision)
        rejections.sort(key=lambda rejection: rejection.position)
        return StoredBatch(0, tuple(rejections), self._engine.revision)

    def _problem(self, document: IncomingDocument, position: int) -> InvalidInputError | None:
        where = ("documents", position)
        if not document.id:
            return InvalidInputError("is empty, expected a name", path=(*where, "id"))
        problem = text_problem(document.text, (*where, "text"), self._max_text_bytes)
        if problem is not None:
            return problem
        expected = (self._record.num_facets, self._record.dim)
        if document.facets is not None and document.facets.shape != expected:
            return InvalidInputError(
                f"must have shape {list(expected)}, got {list(document.facets.shape)}",
                path=(*where, "facet_embeddings"),
            )
        return None

    def _encoded(self, batch: PreparedBatch) -> list[tuple[int, Document]]:
        facets = iter(batch.pending.result().facets if batch.pending is not None else ())
        return [
            (
                position,
                Document(
                    id=document.id,
                    text=document.text,
                    payload=document.payload,
                    facet_embeddings=next(facets) if document.facets is None else document.facets,
                ),
            )
            for position, document in batch.good
        ]


def open_ingest(engine: CollectionEngine, models: TextModels, collection: str, *, max_text_bytes: int) -> Ingest:
    """The way into a collection.

    Raises:
        NotFoundError: There is no such collection, or its model is not served.
        ModelMismatchError: Its model is served in another revision.
    """
    record = engine.record(collection)
    return Ingest(engine, model_of(record, models), record, max_text_bytes)


def model_of(record: CollectionRecord, models: TextModels) -> ServedTexts:
    """The model of a collection.

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
