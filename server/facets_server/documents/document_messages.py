"""Collections, documents and acknowledgements."""

import math
from collections.abc import Sequence

from facets_proto.v1 import documents_pb2
from google.protobuf import json_format, struct_pb2, timestamp_pb2

from facets.documents import CollectionInfo, JsonValue, StoredDocument
from facets.errors import ErrorPath, InvalidInputError
from facets.model.contract import ModelInfo
from facets_server.documents.ingest import IncomingDocument, StoredBatch
from facets_server.documents.stream_store import OpenStream
from facets_server.runtime.arrays import array_from_proto, array_to_proto
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import status_of
from facets_server.runtime.replies import timings_to_proto, version_to_proto

__all__ = [
    "ack_to_proto",
    "collection_to_proto",
    "document_to_proto",
    "incoming_from_proto",
    "opened_to_proto",
    "payload_from_proto",
    "payload_to_proto",
    "upserted_to_proto",
]


def payload_from_proto(message: struct_pb2.Struct, path: ErrorPath) -> dict[str, JsonValue]:
    """A payload as a JSON object; whole numbers become integers.

    Raises:
        InvalidInputError: A number is not finite.
    """
    return {name: _json(value, (*path, name)) for name, value in message.fields.items()}


def _json(value: struct_pb2.Value, path: ErrorPath) -> JsonValue:
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number = value.number_value
        if not math.isfinite(number):
            raise InvalidInputError(f"must be a finite number, got {number}", path=path)
        return int(number) if number.is_integer() and abs(number) <= 2**53 else number
    if kind == "string_value":
        return value.string_value
    if kind == "bool_value":
        return value.bool_value
    if kind == "struct_value":
        return payload_from_proto(value.struct_value, path)
    if kind == "list_value":
        return [_json(entry, (*path, i)) for i, entry in enumerate(value.list_value.values)]
    return None


def payload_to_proto(payload: dict[str, JsonValue]) -> struct_pb2.Struct:
    """A JSON object as a message."""
    message = struct_pb2.Struct()
    json_format.ParseDict(payload, message)
    return message


def document_to_proto(document: StoredDocument) -> documents_pb2.Document:
    """A stored document; with its facets when they were read."""
    facets = document.facet_embeddings
    return documents_pb2.Document(
        id=document.id,
        text=document.text,
        payload=payload_to_proto(document.payload),
        facet_embeddings=None if facets is None else array_to_proto(facets),
        revision=document.revision,
    )


def collection_to_proto(info: CollectionInfo, revision: int) -> documents_pb2.Collection:
    """A collection, as of a revision of the data directory."""
    created = timestamp_pb2.Timestamp()
    created.FromDatetime(info.created)
    return documents_pb2.Collection(
        name=info.name,
        model=info.model,
        model_revision=info.model_revision,
        num_facets=info.num_facets,
        dim=info.dim,
        num_documents=info.num_documents,
        index_revision=revision,
        create_time=created,
        index_kind=info.index_kind,
    )


def incoming_from_proto(messages: Sequence[documents_pb2.Document]) -> list[IncomingDocument]:
    """Documents as sent; what cannot be converted is told in ``problem`` and does not stop the others."""
    return [_incoming(message, ("documents", i)) for i, message in enumerate(messages)]


def _incoming(message: documents_pb2.Document, path: ErrorPath) -> IncomingDocument:
    try:
        facets = None
        if message.HasField("facet_embeddings"):
            facets = array_from_proto(message.facet_embeddings, (*path, "facet_embeddings"), num_axes=2)
        payload = payload_from_proto(message.payload, (*path, "payload"))
    except InvalidInputError as error:
        return IncomingDocument(id=message.id, text=message.text, problem=error)
    return IncomingDocument(id=message.id, text=message.text, payload=payload, facets=facets)


def upserted_to_proto(stored: StoredBatch, model: ModelInfo, call: CallContext) -> documents_pb2.UpsertResponse:
    """The reply to a stored call."""
    return documents_pb2.UpsertResponse(
        num_upserted=stored.num_stored,
        index_revision=stored.revision,
        model=version_to_proto(model),
        timings=timings_to_proto(call),
    )


def opened_to_proto(stream: OpenStream, window: int) -> documents_pb2.UpsertStreamResponse:
    """The reply that opens an ingest stream."""
    return documents_pb2.UpsertStreamResponse(
        opened=documents_pb2.UpsertStreamOpened(
            resume_token=stream.token,
            last_acked_sequence=stream.last_sequence,
            max_unacked_batches=window,
        )
    )


def ack_to_proto(sequence: int, stored: StoredBatch, already_stored: bool) -> documents_pb2.UpsertStreamResponse:
    """The acknowledgement of a durable batch."""
    return documents_pb2.UpsertStreamResponse(
        ack=documents_pb2.UpsertStreamAck(
            sequence=sequence,
            num_upserted=stored.num_stored,
            rejected_documents=[
                documents_pb2.RejectedDocument(
                    position=rejection.position, id=rejection.id, error=status_of(rejection.error)
                )
                for rejection in stored.rejections
            ],
            index_revision=stored.revision,
            already_stored=already_stored,
        )
    )
