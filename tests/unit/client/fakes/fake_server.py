# ruff: noqa: N802 (gRPC names the methods)
"""A small Facets server for tests of the client: the real protocol, numbers made of hashes, faults on demand."""

import threading
from collections import Counter
from concurrent import futures

import grpc
import numpy as np
from facets_proto.v1 import common_pb2, diagnosis_pb2, documents_pb2, models_pb2, results_pb2
from fake_papers import PaperService
from fake_texts import Embedding, Similarity, Summarization, Topics
from fake_world import (
    DIM,
    MODEL,
    NUM_FACETS,
    Service,
    World,
    bad_text,
    facet_array,
    fail,
    fake_facets,
    fake_match,
    status_of,
)
from grpc_health.v1 import health, health_pb2, health_pb2_grpc


class Collections(Service):
    service = documents_pb2.DESCRIPTOR.services_by_name["CollectionService"]

    def CreateCollection(self, request, context):
        if request.name in self.world.collections:
            message = f"collection {request.name!r} exists already"
            fail(context, status_of(grpc.StatusCode.ALREADY_EXISTS, message, reason="ALREADY_EXISTS"))
        return documents_pb2.CreateCollectionResponse(collection=self.world.make(request.name))

    def GetCollection(self, request, context):
        self.world.need_collection(request.name, context)
        found = self.world.collections[request.name]
        found.num_documents = len(self.world.documents[request.name])
        return documents_pb2.GetCollectionResponse(collection=found)

    def ListCollections(self, request, context):
        names = sorted(self.world.collections)
        start = int(request.page_token or 0)
        page = [self.world.collections[name] for name in names[start : start + 2]]
        token = str(start + 2) if start + 2 < len(names) else ""
        return documents_pb2.ListCollectionsResponse(collections=page, next_page_token=token)

    def DiagnoseCollection(self, request, context):
        near = diagnosis_pb2.Neighbours(num_queries=4, self_first=1.0, unreached=0.25, largest_hub=3)
        vectors = diagnosis_pb2.VectorReport(num_rows=9, dim=4, cosine=near, findings=["nothing stands out"])
        recall = 0.9 if request.queries else None
        return diagnosis_pb2.DiagnoseCollectionResponse(num_documents=4, num_parts=5, vectors=vectors, recall=recall)

    def ReindexCollection(self, request, context):
        """Encodes two documents a call."""
        self.world.need_collection(request.name, context)
        found = self.world.collections[request.name]
        found.num_documents = len(self.world.documents[request.name])
        encoded = 2 * [name for name, _ in self.world.calls].count("ReindexCollection")
        done = encoded >= found.num_documents
        if done:
            found.model = request.model or found.model
        return documents_pb2.ReindexCollectionResponse(
            done=done, num_encoded=min(encoded, found.num_documents), collection=found
        )

    def DeleteCollection(self, request, context):
        self.world.need_collection(request.name, context)
        del self.world.collections[request.name]
        documents = self.world.documents.pop(request.name, {})
        return documents_pb2.DeleteCollectionResponse(num_documents=len(documents))


class Documents(Service):
    service = documents_pb2.DESCRIPTOR.services_by_name["DocumentService"]

    def Upsert(self, request, context):
        self.world.need_collection(request.collection, context)
        for position, document in enumerate(request.documents):
            problem = bad_text(document.text, self.world)
            if problem:
                where = f"documents[{position}].text"
                fail(context, status_of(grpc.StatusCode.INVALID_ARGUMENT, f"{where} {problem}", field=where))
        return documents_pb2.UpsertResponse(
            **self.world.store(request.collection, request.documents),
            num_upserted=len(request.documents),
            index_revision=self.world.revision,
            model=MODEL,
            truncated_documents=self.world.truncated(request.documents),
        )

    def UpsertStream(self, requests, context):
        world = self.world
        opening = next(requests).open
        world.need_collection(opening.collection, context)
        token = opening.resume_token
        if token and token not in world.streams:
            message = "the resume token is unknown"
            fail(context, status_of(grpc.StatusCode.NOT_FOUND, message, reason="NOT_FOUND"))
        if not token:
            token = f"stream-{len(world.streams) + 1}"
            world.streams[token] = 0
        world.num_streams += 1
        acks_left = world.break_after_acks.popleft() if world.break_after_acks else None
        yield documents_pb2.UpsertStreamResponse(
            opened=documents_pb2.UpsertStreamOpened(
                resume_token=token, last_acked_sequence=world.streams[token], max_unacked_batches=world.window
            )
        )
        for item in requests:
            batch = item.batch
            if acks_left == 0 and not world.break_before_ack:
                fail(context, status_of(grpc.StatusCode.UNAVAILABLE, "the server is stopping"))
            if world.silent:
                threading.Event().wait(5)
            if world.pace:
                world.pace.acquire()
            ack = self.acked(opening.collection, token, batch, context)
            if acks_left == 0:
                fail(context, status_of(grpc.StatusCode.UNAVAILABLE, "the server is stopping"))
            acks_left = None if acks_left is None else acks_left - 1
            yield documents_pb2.UpsertStreamResponse(ack=ack)

    def acked(self, collection, token, batch, context):
        world = self.world
        if batch.sequence > world.streams[token] + 1:
            fail(context, status_of(grpc.StatusCode.OUT_OF_RANGE, "a batch is missing"))
        if batch.sequence <= world.streams[token]:
            return documents_pb2.UpsertStreamAck(sequence=batch.sequence, already_stored=True)
        assert 1 <= len(batch.documents) <= world.max_documents
        assert len({document.id for document in batch.documents}) == len(batch.documents)
        good, rejected = [], []
        for position, document in enumerate(batch.documents):
            problem = bad_text(document.text, world)
            if problem:
                error = status_of(grpc.StatusCode.INVALID_ARGUMENT, f"text {problem}", reason="INVALID_INPUT")
                rejected.append(documents_pb2.RejectedDocument(position=position, id=document.id, error=error))
            else:
                good.append(document)
        counts = world.store(collection, good)
        world.streams[token] = batch.sequence
        return documents_pb2.UpsertStreamAck(
            sequence=batch.sequence,
            num_upserted=len(good),
            rejected_documents=rejected,
            index_revision=world.revision,
            truncated_documents=world.truncated(batch.documents),
            **counts,
        )

    def GetDocuments(self, request, context):
        self.world.need_collection(request.collection, context)
        stored = self.world.documents[request.collection]
        found = []
        for name in request.ids:
            if name in stored:
                document = documents_pb2.Document()
                document.CopyFrom(stored[name])
                if request.include_facets:
                    document.facet_embeddings.CopyFrom(facet_array(fake_facets(document.text)))
                found.append(document)
        return documents_pb2.GetDocumentsResponse(
            documents=found,
            missing_ids=[name for name in request.ids if name not in stored],
            index_revision=self.world.revision,
        )

    def DeleteDocuments(self, request, context):
        stored = self.world.documents[request.collection]
        ids = list(request.ids) or [
            name for name, document in stored.items() if request.source in ("", document.source)
        ]
        num_deleted = sum(1 for name in ids if stored.pop(name, None) is not None)
        self.world.revision += 1
        return documents_pb2.DeleteDocumentsResponse(num_deleted=num_deleted, index_revision=self.world.revision)

    def CountDocuments(self, request, context):
        self.world.need_collection(request.collection, context)
        return documents_pb2.CountDocumentsResponse(num_documents=len(self.world.documents[request.collection]))

    def ListDocuments(self, request, context):
        self.world.need_collection(request.collection, context)
        stored = self.world.documents[request.collection]
        size = request.page_size or 3
        names = sorted(
            name
            for name, document in stored.items()
            if name > request.page_token and request.source in ("", document.source)
        )
        page = [stored[name] for name in names[:size]]
        token = names[size - 1] if len(names) > size else ""
        return documents_pb2.ListDocumentsResponse(documents=page, next_page_token=token)

    def ListSources(self, request, context):
        found = Counter(document.source for document in self.world.documents[request.collection].values())
        sources = [{"source": name, "num_documents": number} for name, number in sorted(found.items()) if name]
        return documents_pb2.ListSourcesResponse(sources=sources)

    def Search(self, request, context):
        self.world.need_collection(request.collection, context)
        found = []
        for query in request.queries:
            facets = fake_facets(query.text).ravel()
            hits = []
            for document in self.world.documents[request.collection].values():
                other = fake_facets(document.text).ravel()
                cosine = float(facets @ other / np.linalg.norm(facets) / np.linalg.norm(other))
                hit = results_pb2.SearchHit(
                    id=document.id, score=cosine, text=document.text, revision=document.revision
                )
                hit.payload.CopyFrom(document.payload)
                if request.evidence:
                    hit.evidence.append(fake_match(self.world))
                if document.id in self.world.confidences:
                    hit.confidence = self.world.confidences[document.id]
                    start = document.text.find("<") + 1
                    hit.answer.MergeFrom(common_pb2.Span(start=start, end=document.text.find(">")))
                    hit.matched_spans.add(start=start, end=start + 4)
                if not request.min_confidence or hit.confidence >= request.min_confidence:
                    hits.append(hit)
            hits.sort(key=lambda hit: (-hit.score, hit.id))
            found.append(results_pb2.SearchResult(hits=hits[: request.top_k or 10]))
        return documents_pb2.SearchResponse(
            results=found, index_revision=self.world.revision, exhaustive=True, index_kind="exact", model=MODEL
        )

    def Rerank(self, request, context):
        """Texts in the order of their lengths."""
        found = []
        for index in sorted(range(len(request.texts)), key=lambda index: len(request.texts[index])):
            one = results_pb2.RankedText(index=index, score=1 / len(request.texts[index]))
            if request.texts[index] in self.world.confidences:
                one.confidence = self.world.confidences[request.texts[index]]
            found.append(one)
        kept = found[: request.top_k or None]
        return documents_pb2.RerankResponse(results=kept, model=MODEL, num_tokens=len(request.texts))


class Models(Service):
    service = models_pb2.DESCRIPTOR.services_by_name["ModelService"]

    def model(self):
        return models_pb2.Model(
            name="fake",
            revision="abc123",
            task="sentences",
            num_facets=NUM_FACETS,
            dim=DIM,
            is_default=True,
            limits=models_pb2.Limits(
                max_texts_per_request=self.world.max_texts,
                max_message_bytes=self.world.max_message_bytes,
                max_pairs_per_request=self.world.max_texts,
                max_documents_per_upsert=self.world.max_documents,
                max_queries_per_search=2,
                max_stream_window=self.world.window,
                max_evidence_hits=self.world.max_evidence_hits,
            ),
        )

    def GetServerStatus(self, request, context):
        reply = models_pb2.GetServerStatusResponse(version="0.1.0", num_running=1, free_bytes=5 * 2**30)
        reply.start_time.FromSeconds(1_700_000_000)
        reply.last_backup_time.FromSeconds(1_700_003_600)
        reply.model_queues.add(model="fake", num_waiting=7)
        reply.request_counts.add(code="OK", num_requests=42)
        reply.disk_uses.add(part="documents", num_bytes=3 * 2**20)
        return reply

    def TakeBackup(self, request, context):
        taken = models_pb2.Backup(folder="/backups/now", num_bytes=9)
        problems = [self.world.damage] if self.world.damage else []
        return models_pb2.TakeBackupResponse(backup=taken, problems=problems, removed_folders=["/backups/then"])

    def ListModels(self, request, context):
        return models_pb2.ListModelsResponse(models=[self.model()])

    def GetModel(self, request, context):
        if request.name not in ("", "fake"):
            message = f"model {request.name!r} does not exist"
            fail(context, status_of(grpc.StatusCode.NOT_FOUND, message, reason="NOT_FOUND"))
        return models_pb2.GetModelResponse(model=self.model())


class FakeServer:
    """Serves a world on a port of its own; can be stopped and started again on the same port."""

    def __init__(self, world: World | None = None, port: int = 0, credentials=None):
        self.world = world or World()
        self.world.make = self.make
        self.health = health.HealthServicer()
        self.server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        self.papers = PaperService(self.world)
        services = [Embedding, Similarity, Summarization, Topics, Collections, Documents, Models]
        for service in (self.papers, *(kind(self.world) for kind in services)):
            self.server.add_generic_rpc_handlers((service.handler(),))
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self.server)
        if credentials:
            self.port = self.server.add_secure_port(f"localhost:{port}", credentials)
        else:
            self.port = self.server.add_insecure_port(f"localhost:{port}")
        self.server.start()

    @property
    def target(self):
        return f"localhost:{self.port}"

    def make(self, name):
        collection = documents_pb2.Collection(
            name=name, model="fake", model_revision="abc123", num_facets=NUM_FACETS, dim=DIM, index_kind="exact"
        )
        self.world.revision += 1
        collection.create_time.FromSeconds(1_700_000_000 + self.world.revision)
        self.world.collections[name] = collection
        return collection

    def serve_health(self, services):
        for service in services:
            self.health.set(service, health_pb2.HealthCheckResponse.SERVING)

    def stop(self):
        self.server.stop(None).wait()


__all__ = ["DIM", "NUM_FACETS", "FakeServer", "World", "fake_facets", "status_of"]
