"""Requests and replies about collections, documents and search."""

from collections.abc import Sequence
from datetime import UTC

import numpy as np
from facets_proto.v1 import documents_pb2
from google.protobuf import struct_pb2
from numpy.typing import NDArray

from facets_client import filters
from facets_client.core import results
from facets_client.core.arrays import from_array, to_array
from facets_client.core.numbers import finite_double, unsigned
from facets_client.core.payloads import check_text, from_payload, to_payload
from facets_client.core.statuses import error_info, status_code
from facets_client.texts.convert import to_matches, to_model_version, total_timings


def create_collection_request(name: str, *, model: str) -> documents_pb2.CreateCollectionRequest:
    """An empty collection of this name; an empty model is the server's default."""
    return documents_pb2.CreateCollectionRequest(name=name, model=model)


def get_collection_request(name: str) -> documents_pb2.GetCollectionRequest:
    """One collection by name."""
    return documents_pb2.GetCollectionRequest(name=name)


def list_collections_request(page_token: str) -> documents_pb2.ListCollectionsRequest:
    """One page of the collections; an empty token is the first."""
    return documents_pb2.ListCollectionsRequest(page_token=page_token)


def delete_collection_request(name: str) -> documents_pb2.DeleteCollectionRequest:
    """The collection to delete with its documents."""
    return documents_pb2.DeleteCollectionRequest(name=name)


def to_collection(message: documents_pb2.Collection) -> results.Collection:
    """What the server knows about a collection."""
    made = message.create_time.ToDatetime(tzinfo=UTC) if message.HasField("create_time") else None
    return results.Collection(
        name=message.name,
        model=message.model,
        model_revision=message.model_revision,
        num_facets=message.num_facets,
        dim=message.dim,
        num_documents=message.num_documents,
        index_revision=message.index_revision,
        create_time=made,
        index_kind=message.index_kind,
    )


def from_document(document: results.Document) -> documents_pb2.Document:
    """A document as a message.

    Raises:
        ValueError: When its payload cannot be carried without loss, or a text is no Unicode.
    """
    check_text(document.id)
    check_text(document.text)
    message = documents_pb2.Document(id=document.id, text=document.text)
    if document.payload:
        message.payload.CopyFrom(from_payload(document.payload))
    if document.facet_embeddings is not None:
        message.facet_embeddings.CopyFrom(from_array(document.facet_embeddings))
    return message


def to_document(message: documents_pb2.Document) -> results.Document:
    """A stored document, with its facets when the reply has them."""
    has_facets = message.HasField("facet_embeddings")
    return results.Document(
        id=message.id,
        text=message.text,
        payload=to_payload(message.payload),
        facet_embeddings=to_array(message.facet_embeddings) if has_facets else None,
        revision=message.revision,
    )


def upsert_request(collection: str, documents: Sequence[documents_pb2.Document]) -> documents_pb2.UpsertRequest:
    """A batch that is stored whole or not at all."""
    return documents_pb2.UpsertRequest(collection=collection, documents=documents)


def stream_open(collection: str, resume_token: str) -> documents_pb2.UpsertStreamRequest:
    """First request of an upsert stream; an empty token starts a new one."""
    opening = documents_pb2.UpsertStreamOpen(collection=collection, resume_token=resume_token)
    return documents_pb2.UpsertStreamRequest(open=opening)


def stream_batch(sequence: int, documents: Sequence[documents_pb2.Document]) -> documents_pb2.UpsertStreamRequest:
    """One numbered batch of an upsert stream."""
    batch = documents_pb2.UpsertStreamBatch(sequence=sequence, documents=documents)
    return documents_pb2.UpsertStreamRequest(batch=batch)


def to_ack(message: documents_pb2.UpsertStreamAck, resume_token: str) -> results.StreamAck:
    """The server's word that a batch is durable."""
    return results.StreamAck(
        sequence=message.sequence,
        num_upserted=message.num_upserted,
        rejected=tuple(_to_rejected(item) for item in message.rejected_documents),
        index_revision=message.index_revision,
        already_stored=message.already_stored,
        resume_token=resume_token,
    )


def _to_rejected(message: documents_pb2.RejectedDocument) -> results.RejectedDocument:
    return results.RejectedDocument(
        position=message.position,
        id=message.id,
        code=status_code(message.error.code).name,
        reason=error_info(message.error.details).reason,
        message=message.error.message,
    )


def get_documents_request(
    collection: str, ids: Sequence[str], *, include_facets: bool, min_revision: int
) -> documents_pb2.GetDocumentsRequest:
    """Documents to read by id."""
    return documents_pb2.GetDocumentsRequest(
        collection=collection,
        ids=ids,
        include_facets=include_facets,
        min_revision=unsigned(min_revision, "min_revision", bits=64),
    )


def to_found(parts: Sequence[documents_pb2.GetDocumentsResponse]) -> results.FoundDocuments:
    """The replies to the parts of a call as one result, in the order of the ids."""
    return results.FoundDocuments(
        documents=tuple(to_document(item) for part in parts for item in part.documents),
        missing_ids=tuple(item for part in parts for item in part.missing_ids),
        index_revision=parts[-1].index_revision,
    )


def delete_documents_request(
    collection: str, *, ids: Sequence[str] = (), where: filters.Filter | None = None
) -> documents_pb2.DeleteDocumentsRequest:
    """Documents to delete, by id or by filter."""
    condition = None if where is None else from_filter(where)
    return documents_pb2.DeleteDocumentsRequest(collection=collection, ids=ids, filter=condition)


def count_documents_request(
    collection: str, *, where: filters.Filter | None, min_revision: int
) -> documents_pb2.CountDocumentsRequest:
    """Documents to count; None counts all."""
    condition = None if where is None else from_filter(where)
    return documents_pb2.CountDocumentsRequest(
        collection=collection, filter=condition, min_revision=unsigned(min_revision, "min_revision", bits=64)
    )


def list_documents_request(
    collection: str,
    *,
    page_token: str,
    page_size: int,
    where: filters.Filter | None,
    include_facets: bool,
    min_revision: int,
) -> documents_pb2.ListDocumentsRequest:
    """One page of a collection; an empty token is the first."""
    return documents_pb2.ListDocumentsRequest(
        collection=collection,
        page_size=unsigned(page_size, "page_size"),
        page_token=page_token,
        filter=None if where is None else from_filter(where),
        include_facets=include_facets,
        min_revision=unsigned(min_revision, "min_revision", bits=64),
    )


def search_request(
    collection: str,
    queries: Sequence[str | NDArray[np.floating]],
    *,
    top_k: int,
    where: filters.Filter | None,
    exact: bool,
    min_revision: int,
    evidence: bool,
    num_words: int | None,
    include_document: bool,
) -> documents_pb2.SearchRequest:
    """Queries, as texts or as facet arrays ``[facets, dim]``, and how to search."""
    return documents_pb2.SearchRequest(
        collection=collection,
        queries=[_search_query(query) for query in queries],
        top_k=unsigned(top_k, "top_k"),
        filter=None if where is None else from_filter(where),
        exact=exact,
        min_revision=unsigned(min_revision, "min_revision", bits=64),
        evidence=evidence,
        num_words=unsigned(num_words, "num_words"),
        include_document=include_document,
    )


def _search_query(query: str | NDArray[np.floating]) -> documents_pb2.SearchQuery:
    if isinstance(query, str):
        return documents_pb2.SearchQuery(text=query)
    return documents_pb2.SearchQuery(facet_embeddings=from_array(query))


def to_search_results(parts: Sequence[documents_pb2.SearchResponse]) -> results.SearchResults:
    """The replies to the parts of a call as one result, in the order of the queries."""
    return results.SearchResults(
        hits=tuple(tuple(_to_hit(hit) for hit in result.hits) for part in parts for result in part.results),
        index_revision=parts[-1].index_revision,
        exhaustive=all(part.exhaustive for part in parts),
        index_kind=parts[-1].index_kind,
        model=to_model_version(parts[-1].model),
        timings=total_timings(part.timings for part in parts),
    )


def _to_hit(hit: documents_pb2.SearchHit) -> results.SearchHit:
    return results.SearchHit(
        id=hit.id,
        score=hit.score,
        text=hit.text,
        payload=to_payload(hit.payload),
        evidence=to_matches(hit.evidence),
        revision=hit.revision,
    )


def from_filter(where: filters.Filter) -> documents_pb2.Filter:
    """A condition on payloads as a message."""
    match where:
        case filters.AllOf(inner):
            return documents_pb2.Filter(all_of=_filter_list(inner))
        case filters.AnyOf(inner):
            return documents_pb2.Filter(any_of=_filter_list(inner))
        case filters.NoneOf(inner):
            return documents_pb2.Filter(none_of=_filter_list(inner))
        case filters.Equals(field, value):
            condition = documents_pb2.FieldCondition(field=field, equals=_from_scalar(field, value))
        case filters.OneOf(field, values):
            listed = struct_pb2.ListValue(values=[_from_scalar(field, value) for value in values])
            condition = documents_pb2.FieldCondition(field=field, one_of=listed)
        case filters.Range(field, gt, gte, lt, lte):
            condition = _from_range(field, {"gt": gt, "gte": gte, "lt": lt, "lte": lte})
        case filters.Contains(field, value):
            condition = documents_pb2.FieldCondition(field=field, contains=_from_scalar(field, value))
        case filters.Exists(field, exists):
            condition = documents_pb2.FieldCondition(field=field, exists=exists)
    return documents_pb2.Filter(field=condition)


def _from_range(field: str, bounds: dict[str, float | str | None]) -> documents_pb2.FieldCondition:
    numbers = {
        name: finite_double(bound, f"the bound for {field}")
        for name, bound in bounds.items()
        if isinstance(bound, int | float)
    }
    strings = {name: bound for name, bound in bounds.items() if isinstance(bound, str)}
    if strings:
        return documents_pb2.FieldCondition(field=field, string_range=documents_pb2.StringRange(**strings))
    return documents_pb2.FieldCondition(field=field, range=documents_pb2.NumberRange(**numbers))


def _filter_list(inner: Sequence[filters.Filter]) -> documents_pb2.FilterList:
    return documents_pb2.FilterList(filters=[from_filter(item) for item in inner])


def _from_scalar(field: str, value: filters.Scalar) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    return struct_pb2.Value(number_value=finite_double(value, f"the value for {field}"))
