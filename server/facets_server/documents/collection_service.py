"""CollectionService: sets of documents that are searched together."""

from facets_proto.v1 import documents_pb2, documents_pb2_grpc

from facets.documents import CollectionEngine
from facets_server.documents.document_messages import collection_to_proto
from facets_server.documents.reindexing import step_budget_s, target_of
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.paging import page_of
from facets_server.texts.served import TextModels

__all__ = ["CollectionService"]


class CollectionService(documents_pb2_grpc.CollectionServiceServicer):
    """Makes, shows, moves and deletes collections."""

    def __init__(self, models: TextModels, engine: CollectionEngine, limits: LimitsConfig) -> None:
        self._models = models
        self._engine = engine
        self._limits = limits

    def CreateCollection(
        self, request: documents_pb2.CreateCollectionRequest, call: CallContext
    ) -> documents_pb2.CreateCollectionResponse:
        """Makes an empty collection for the facets of one model."""
        model = self._models.get(request.model).model
        info = self._engine.create_collection(
            request.name,
            model=model.name,
            model_revision=model.revision,
            num_facets=model.num_facets,
            dim=model.dim,
        )
        return documents_pb2.CreateCollectionResponse(collection=collection_to_proto(info, self._engine.revision))

    def GetCollection(
        self, request: documents_pb2.GetCollectionRequest, call: CallContext
    ) -> documents_pb2.GetCollectionResponse:
        """One collection."""
        revision = self._engine.revision
        info = self._engine.get_collection(request.name)
        return documents_pb2.GetCollectionResponse(collection=collection_to_proto(info, revision))

    def ListCollections(
        self, request: documents_pb2.ListCollectionsRequest, call: CallContext
    ) -> documents_pb2.ListCollectionsResponse:
        """All collections, by name."""
        revision = self._engine.revision
        page = page_of(
            self._engine.list_collections(),
            size=request.page_size,
            token=request.page_token,
            limit=self._limits.max_page_size,
        )
        return documents_pb2.ListCollectionsResponse(
            collections=[collection_to_proto(info, revision) for info in page.items],
            next_page_token=page.next_token,
        )

    def DeleteCollection(
        self, request: documents_pb2.DeleteCollectionRequest, call: CallContext
    ) -> documents_pb2.DeleteCollectionResponse:
        """Deletes a collection with its documents."""
        deleted = self._engine.delete_collection(request.name)
        return documents_pb2.DeleteCollectionResponse(
            num_documents=deleted.num_deleted, index_revision=deleted.revision
        )

    def ReindexCollection(
        self, request: documents_pb2.ReindexCollectionRequest, call: CallContext
    ) -> documents_pb2.ReindexCollectionResponse:
        """One step of moving a collection to another model."""
        served = self._models.get(request.model or self._engine.record(request.name).model)
        step = self._engine.reindex(request.name, target_of(served, call), budget_s=step_budget_s(call))
        info = self._engine.get_collection(request.name)
        return documents_pb2.ReindexCollectionResponse(
            done=step.done,
            num_encoded=step.num_encoded,
            collection=collection_to_proto(info, self._engine.revision),
        )
