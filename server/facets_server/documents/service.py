"""CollectionService and DocumentService: collections; storing, reading, listing and searching documents."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from facets_proto.codec import to_message
from facets_proto.v1 import diagnosis_pb2, documents_pb2_grpc
from facets_proto.v1 import documents_pb2 as pb

from facets.documents import CollectionEngine, CollectionInfo
from facets.documents.collections import Collections
from facets.documents.ingest import PreparedBatch, StoredBatch
from facets.errors import InvalidInputError
from facets_server.documents.requests import documents_of, filter_of, reranking_of, search_fields_of, search_of
from facets_server.documents.stream_store import StreamStore
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.errors import SequenceGapError, status_of
from facets_server.runtime.messages import read_ahead
from facets_server.runtime.requests import check_not_empty, page_of, page_size_of

_MAX_STEP_S = 5.0  # well within the time that the server gives to running calls when it stops
_SHARE_OF_DEADLINE = 0.5  # the rest is left for the running batch and the last writes


@dataclass(frozen=True)
class CollectionService(documents_pb2_grpc.CollectionServiceServicer):
    """Creates, shows, moves and deletes collections."""

    engine: CollectionEngine
    collections: Callable[[CallContext], Collections]  # which encode for the call

    def CreateCollection(self, request: pb.CreateCollectionRequest, call: CallContext) -> pb.CreateCollectionResponse:
        """Creates an empty collection for the facets of one model."""
        fields = search_fields_of(request)
        info = self.collections(call).create_collection(
            request.name, model=request.model, search_fields=fields, language=request.language
        )
        return pb.CreateCollectionResponse(collection=_collection(info, self.engine.revision))

    def GetCollection(self, request: pb.GetCollectionRequest, call: CallContext) -> pb.GetCollectionResponse:
        """One collection."""
        revision = self.engine.revision
        return pb.GetCollectionResponse(collection=_collection(self.engine.get_collection(request.name), revision))

    def ListCollections(self, request: pb.ListCollectionsRequest, call: CallContext) -> pb.ListCollectionsResponse:
        """All collections, by name."""
        revision = self.engine.revision
        infos, token = page_of(self.engine.list_collections(), request)
        collections = [_collection(info, revision) for info in infos]
        return pb.ListCollectionsResponse(collections=collections, next_page_token=token)

    def DeleteCollection(self, request: pb.DeleteCollectionRequest, call: CallContext) -> pb.DeleteCollectionResponse:
        """Deletes a collection with its documents."""
        deleted = self.engine.delete_collection(request.name)
        return pb.DeleteCollectionResponse(num_documents=deleted.num_deleted, index_revision=deleted.revision)

    def ReindexCollection(
        self, request: pb.ReindexCollectionRequest, call: CallContext
    ) -> pb.ReindexCollectionResponse:
        """One step of moving a collection to another model."""
        fields, remaining_s = search_fields_of(request), call.time_remaining()
        budget_s = _MAX_STEP_S if remaining_s is None else min(_MAX_STEP_S, _SHARE_OF_DEADLINE * remaining_s)
        step = self.collections(call).reindex(
            request.name, model=request.model, search_fields=fields, budget_s=budget_s
        )
        collection = _collection(self.engine.get_collection(request.name), self.engine.revision)
        return pb.ReindexCollectionResponse(done=step.done, num_encoded=step.num_encoded, collection=collection)

    def DiagnoseCollection(
        self, request: diagnosis_pb2.DiagnoseCollectionRequest, call: CallContext
    ) -> diagnosis_pb2.DiagnoseCollectionResponse:
        """Reports duplicates, hubs and index recall of a collection."""
        diagnosis = self.collections(call).diagnose(request.name, list(request.queries))
        call.num_items = len(request.queries)
        return to_message(diagnosis, diagnosis_pb2.DiagnoseCollectionResponse, timings=call)

    def MapCollection(
        self, request: diagnosis_pb2.MapCollectionRequest, call: CallContext
    ) -> diagnosis_pb2.MapCollectionResponse:
        """Lays out a collection in two dimensions."""
        with call.stages.measured("search"):
            layout = self.collections(call).map(request.name, max_documents=request.max_documents)
        call.num_items = len(layout.ids)
        return to_message(layout, diagnosis_pb2.MapCollectionResponse, timings=call)


def _collection(info: CollectionInfo, revision: int) -> pb.Collection:
    return to_message(info, pb.Collection, index_revision=revision)


@dataclass(frozen=True)
class DocumentService(documents_pb2_grpc.DocumentServiceServicer):
    """Documents of all collections."""

    engine: CollectionEngine
    collections: Callable[[CallContext], Collections]  # which encode for the call
    admission: Admission
    limits: LimitsConfig
    streams: StreamStore

    def Upsert(self, request: pb.UpsertRequest, call: CallContext) -> pb.UpsertResponse:
        """Stores all documents of the request or none."""
        check_not_empty(request.documents, ("documents",))
        maker = request.encoded_by  # of facets; empty if the request does not say
        ingest = self.collections(call).ingest(request.collection, encoded_by=(maker.name, maker.revision))
        stored = ingest.store_all(ingest.prepare(documents_of(request.documents)))
        call.num_items = len(request.documents)
        return to_message(stored, pb.UpsertResponse, model=ingest.encoder.model, timings=call)

    def UpsertStream(
        self, requests: Iterator[pb.UpsertStreamRequest], call: CallContext
    ) -> Iterator[pb.UpsertStreamResponse]:
        """Bulk load with durable acknowledgements: the opening request, then batches.

        While one batch is being stored the next ones are already being encoded. A batch is acknowledged once its
        documents, and then its sequence number, are durable, so a client may discard acknowledged batches.
        """
        collections = self.collections(call.for_message())  # which counts its texts by itself
        first = next(requests, None)
        if first is None or first.WhichOneof("message") != "open":
            raise InvalidInputError("must be the first message of the stream, got another message or none", path="open")
        opening, maker = first.open, first.open.encoded_by
        ingest = collections.ingest(opening.collection, encoded_by=(maker.name, maker.revision))
        created = ingest.collection.create_time.isoformat()
        place = {"collection": opening.collection, "collection_created": created}
        stream = (
            self.streams.resume(opening.resume_token, **place) if opening.resume_token else self.streams.begin(**place)
        )
        yield pb.UpsertStreamResponse(
            opened=pb.UpsertStreamOpened(
                resume_token=stream.token,
                last_acked_sequence=stream.last_sequence,
                max_unacked_batches=self.admission.config.max_stream_window,
            )
        )
        expected = stream.last_sequence + 1

        def begin(request: pb.UpsertStreamRequest) -> tuple[int, PreparedBatch | None]:
            """Checks a batch on arrival and hands its texts to the model."""
            nonlocal expected
            if request.WhichOneof("message") != "batch":
                raise InvalidInputError("must be each request of the stream after open", path="batch")
            batch = request.batch
            if 1 <= batch.sequence <= stream.last_sequence:
                return batch.sequence, None
            if batch.sequence != expected:
                raise SequenceGapError(f"batch.sequence must be {expected}, got {batch.sequence}")
            check_not_empty(batch.documents, ("batch", "documents"))
            with self.admission.turns.taken(call.for_message()):
                prepared = ingest.prepare(documents_of(batch.documents))
            call.num_items += len(batch.documents)
            expected += 1
            return batch.sequence, prepared

        for sequence, batch in read_ahead(requests, begin, self.admission, call):
            if batch is None:
                stored = StoredBatch(index_revision=collections.engine.revision)
            else:
                stored = ingest.store_good(batch, check=partial(self.streams.check, stream))
                self.streams.advance(stream, sequence)
            rejected = [
                to_message(rejection, pb.RejectedDocument, error=status_of(rejection.error))
                for rejection in stored.rejected_documents
            ]
            ack = to_message(
                stored, pb.UpsertStreamAck, sequence=sequence, rejected_documents=rejected, already_stored=batch is None
            )
            yield pb.UpsertStreamResponse(ack=ack)

    def GetDocuments(self, request: pb.GetDocumentsRequest, call: CallContext) -> pb.GetDocumentsResponse:
        """Documents by id."""
        check_not_empty(request.ids, ("ids",))
        call.num_items = len(request.ids)
        with call.stages.measured("store", num_items=len(request.ids)):
            result = self.engine.get(
                request.collection,
                list(request.ids),
                include_facets=request.include_facets,
                min_revision=request.min_revision or None,
            )
        return to_message(result, pb.GetDocumentsResponse)

    def DeleteDocuments(self, request: pb.DeleteDocumentsRequest, call: CallContext) -> pb.DeleteDocumentsResponse:
        """Deletes by ids, or by filter and source."""
        with call.stages.measured("store", num_items=len(request.ids)):
            result = self.engine.delete(
                request.collection, ids=list(request.ids) or None, where=filter_of(request), source=request.source
            )
        call.num_items = result.num_deleted
        return to_message(result, pb.DeleteDocumentsResponse, index_revision=result.revision)

    def CountDocuments(self, request: pb.CountDocumentsRequest, call: CallContext) -> pb.CountDocumentsResponse:
        """Number of documents that match."""
        where, min_revision = filter_of(request), request.min_revision or None
        with call.stages.measured("store"):
            result = self.engine.count(request.collection, where=where, min_revision=min_revision)
        return to_message(result, pb.CountDocumentsResponse)

    def ListDocuments(self, request: pb.ListDocumentsRequest, call: CallContext) -> pb.ListDocumentsResponse:
        """One page of the documents, by id."""
        with call.stages.measured("store"):
            page = self.engine.list_documents(
                request.collection,
                page_size=page_size_of(request),
                page_token=request.page_token,
                where=filter_of(request),
                source=request.source,
                include_facets=request.include_facets,
                include_document=request.include_document if request.HasField("include_document") else True,
                min_revision=request.min_revision or None,
            )
        call.num_items = len(page.documents)
        return to_message(page, pb.ListDocumentsResponse)

    def ListSources(self, request: pb.ListSourcesRequest, call: CallContext) -> pb.ListSourcesResponse:
        """One page of the sources, by name."""
        with call.stages.measured("store"):
            page = self.engine.list_sources(
                request.collection, page_size=page_size_of(request), page_token=request.page_token
            )
        return to_message(page, pb.ListSourcesResponse)

    def Search(self, request: pb.SearchRequest, call: CallContext) -> pb.SearchResponse:
        """The best documents for each query."""
        result = self.collections(call).search(request.collection, search_of(request, self.limits))
        call.num_items = len(request.queries)
        return to_message(result, pb.SearchResponse, results=result.hits, timings=call)

    def Rerank(self, request: pb.RerankRequest, call: CallContext) -> pb.RerankResponse:
        """Ranks the texts of a request by how well they answer its query."""
        result = self.collections(call).rerank(reranking_of(request, self.limits))
        return to_message(result, pb.RerankResponse, timings=call)
