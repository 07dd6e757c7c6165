# ruff: noqa: N802 (gRPC names the methods)
"""A small Facets server for tests of the client: the real protocol, a store of documents, faults on demand.

An rpc without a method here gets the reply that the test has put into ``world.replies``, else an empty one.
"""

import hashlib
import threading
from collections import Counter, defaultdict, deque
from concurrent import futures
from dataclasses import dataclass, field
from types import SimpleNamespace

import grpc
import numpy as np
from facets_proto.codec import message_of
from facets_proto.v1 import common_pb2, documents_pb2, models_pb2, texts_pb2
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from proto_files import SERVICES

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
NUM_FACETS, DIM = 3, 4
MODEL = common_pb2.ModelVersion(name="fake", revision="abc123")


def fake_facets(text: str) -> np.ndarray:
    """``[NUM_FACETS, DIM]`` float32, always the same for the same text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=(NUM_FACETS, DIM)).astype(np.float32)


def status_of(code, message, *, reason="", field="", retry_after_s=0.0, request_id="", resource_type=""):
    details = [error_details_pb2.ErrorInfo(reason=reason, domain="facets.dev", metadata={"request_id": request_id})]
    if field:
        violation = {"field": field, "description": message.removeprefix(f"{field} ")}
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    if retry_after_s:
        delay = duration_pb2.Duration(nanos=int(retry_after_s * 1e9) % 10**9, seconds=int(retry_after_s))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    details.append(error_details_pb2.ResourceInfo(resource_type=resource_type))
    packed = []
    for detail in details:
        packed.append(any_pb2.Any())
        packed[-1].Pack(detail)
    return status_pb2.Status(code=code.value[0], message=message, details=packed)


class FailureError(Exception):
    """Ends a call with a status."""


def fail(code, message, **details):
    raise FailureError(status_of(code, message, **details))


@dataclass
class World:
    """What the server holds and how it misbehaves."""

    max_texts: int = 4
    max_documents: int = 8
    max_text_bytes: int = 1_000
    max_message_bytes: int = 60_000
    window: int = 3
    max_evidence_hits: int = 0
    api_key: str | None = None
    collections: dict = field(default_factory=dict)  # name -> Collection
    documents: dict = field(default_factory=lambda: defaultdict(dict))  # name -> id -> Document
    streams: dict = field(default_factory=dict)  # token -> last sequence
    revision: int = 0
    replies: dict = field(default_factory=dict)  # method -> fields of its reply, or a function of the request
    faults: dict = field(default_factory=lambda: defaultdict(deque))  # method -> statuses to fail with
    calls: list = field(default_factory=list)  # (method, request)
    break_after_acks: deque = field(default_factory=deque)  # one entry a stream: acks before it breaks
    break_before_ack: bool = False  # the broken batch is stored, its ack is lost
    pushback_ms: str = ""  # what the server asks of automatic retries
    silent: bool = False  # streams never answer
    max_tokens: int = 0  # words that are read of a document; 0: all
    pace: threading.Semaphore | None = None  # one permit for each ack

    def enter(self, method, request, context):
        self.calls.append((method, request))
        if self.api_key and dict(context.invocation_metadata()).get("authorization") != f"Bearer {self.api_key}":
            fail(grpc.StatusCode.UNAUTHENTICATED, "the call needs a known key")
        if self.faults[method]:
            raise FailureError(self.faults[method].popleft())

    def count(self, method):
        return sum(1 for name, _ in self.calls if name == method)

    def store(self, collection, documents):
        """Stores documents; the fields of a reply."""
        self.revision += 1
        counts, truncated = Counter(), []
        for position, document in enumerate(documents):
            held = self.documents[collection].get(document.id)
            fields = ("text", "payload", "source")
            same = held and all(getattr(held, name) == getattr(document, name) for name in fields)
            counts["num_unchanged" if same else "num_changed" if held else "num_added"] += 1
            stored = self.documents[collection][document.id] = documents_pb2.Document(revision=self.revision)
            stored.MergeFrom(document)
            if 0 < self.max_tokens < (length := len(document.text.split())):
                stats = {"num_tokens": self.max_tokens, "truncated": True, "num_tokens_in_text": length}
                truncated.append({"position": position, "id": document.id, "token_stats": stats})
        return {**counts, "index_revision": self.revision, "truncated_documents": truncated}

    def make(self, name):
        self.revision += 1
        made = documents_pb2.Collection(name=name, model="fake", model_revision="abc123", index_kind="exact")
        made.num_facets, made.dim = NUM_FACETS, DIM
        made.create_time.FromSeconds(1_700_000_000 + self.revision)
        self.collections[name] = made
        return made

    def problem(self, text):
        if not text.strip():
            return "is empty, expected at least one character"
        if "REFUSE" in text:
            return "is refused"
        if (size := len(text.encode())) > self.max_text_bytes:
            return f"has {size} bytes, the limit is {self.max_text_bytes}"
        return ""

    def check(self, name, texts, limit):
        if len(texts) > limit:
            fail(INVALID, f"{name} has {len(texts)} items, the limit is {limit}", field=name)
        for position, text in enumerate(texts):
            if problem := self.problem(text):
                where = f"{name}[{position}]"
                fail(INVALID, f"{where} {problem}", reason="INVALID_INPUT", field=where)


class FakeServer:
    def __init__(self, port=0, credentials=None):
        self.world = World()
        self.health = health.HealthServicer()
        self.server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        for service in SERVICES:
            handlers = {method.name: self._handler(method) for method in service.methods}
            self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self.server)
        address = f"localhost:{port}"
        secure = credentials and self.server.add_secure_port(address, credentials)
        self.target = f"localhost:{secure or self.server.add_insecure_port(address)}"
        self.server.start()

    def _handler(self, method):
        reply_class, is_stream = GetMessageClass(method.output_type), method.client_streaming

        def reply(request):
            if getattr(request, "collection", ""):
                self._stored(request.collection)
            made = getattr(self, method.name, lambda _: self.world.replies.get(method.name, {}))(request)
            made = made(request) if callable(made) else made
            return reply_class(**made) if isinstance(made, dict) else made

        def guarded(request, context):
            try:
                self.world.enter(method.name, None if is_stream else request, context)
                yield from self.UpsertStream(request) if is_stream else [reply(request)]
            except FailureError as failure:
                status = rpc_status.to_status(failure.args[0])
                if self.world.pushback_ms:
                    pushback = ("grpc-retry-pushback-ms", self.world.pushback_ms)
                    status = status._replace(trailing_metadata=(*status.trailing_metadata, pushback))
                context.abort_with_status(status)

        make = grpc.stream_stream_rpc_method_handler if is_stream else grpc.unary_unary_rpc_method_handler
        handle = guarded if is_stream else lambda request, context: next(guarded(request, context))
        return make(handle, GetMessageClass(method.input_type).FromString, reply_class.SerializeToString)

    def serve_health(self, services):
        for service in services:
            self.health.set(service, health_pb2.HealthCheckResponse.SERVING)

    def stop(self):
        self.server.stop(None).wait()

    def Embed(self, request):
        self.world.check("texts", request.texts, self.world.max_texts)
        arrays = np.stack([fake_facets(text) for text in request.texts])
        arrays = arrays.astype(np.float16 if request.dtype == common_pb2.DATA_TYPE_FLOAT16 else np.float32)
        stats = [common_pb2.TokenStats(num_tokens=len(text.split())) for text in request.texts]
        fields = {"vectors": arrays.mean(1)} if request.vectors_only else {"facet_embeddings": arrays}
        made = message_of(texts_pb2.EmbedResponse, **fields, token_stats=stats, model=MODEL)
        made.timings.total_ms = 1.0
        return made

    def GetModel(self, request):
        if request.name not in ("", "fake"):
            fail(NOT_FOUND, f"model {request.name!r} does not exist", reason="NOT_FOUND")
        world = self.world
        limits = models_pb2.Limits(
            max_texts_per_request=world.max_texts,
            max_message_bytes=world.max_message_bytes,
            max_pairs_per_request=world.max_texts,
            max_documents_per_upsert=world.max_documents,
            max_queries_per_search=2,
            max_stream_window=world.window,
            max_evidence_hits=world.max_evidence_hits,
        )
        model = models_pb2.Model(name="fake", task="sentences", dim=DIM, is_default=True, limits=limits)
        return models_pb2.GetModelResponse(model=model)

    def ListModels(self, request):
        return {"models": [self.GetModel(SimpleNamespace(name="")).model]}

    def CreateCollection(self, request):
        if request.name in self.world.collections:
            message = f"collection {request.name!r} exists already"
            fail(grpc.StatusCode.ALREADY_EXISTS, message, reason="ALREADY_EXISTS")
        return {"collection": self.world.make(request.name)}

    def _stored(self, name):
        if name not in self.world.collections:
            message = f"collection {name!r} does not exist"
            fail(NOT_FOUND, message, reason="NOT_FOUND", resource_type="collection")
        self.world.collections[name].num_documents = len(self.world.documents[name])
        return self.world.documents[name]

    def GetCollection(self, request):
        self._stored(request.name)
        return {"collection": self.world.collections[request.name]}

    def ListCollections(self, request):
        names, start = sorted(self.world.collections), int(request.page_token or 0)
        page = [self.world.collections[name] for name in names[start : start + 2]]
        return {"collections": page, "next_page_token": str(start + 2) if start + 2 < len(names) else ""}

    def DeleteCollection(self, request):
        stored = self._stored(request.name)
        del self.world.collections[request.name], self.world.documents[request.name]
        return {"num_documents": len(stored)}

    def UpsertStream(self, requests):
        world, opening = self.world, next(requests).open
        self._stored(opening.collection)
        token = opening.resume_token or f"stream-{len(world.streams) + 1}"
        if opening.resume_token not in ("", *world.streams):
            fail(NOT_FOUND, "the resume token is unknown", reason="NOT_FOUND")
        last = world.streams.setdefault(token, 0)
        acks_left = world.break_after_acks.popleft() if world.break_after_acks else None
        opened = {"resume_token": token, "last_acked_sequence": last, "max_unacked_batches": world.window}
        yield documents_pb2.UpsertStreamResponse(opened=opened)
        for number, item in enumerate(requests):
            if number == acks_left and not world.break_before_ack:
                fail(grpc.StatusCode.UNAVAILABLE, "the server is stopping")
            if world.silent:
                threading.Event().wait(5)
            if world.pace:
                world.pace.acquire()
            ack = self._acked(opening.collection, token, item.batch)
            if number == acks_left:
                fail(grpc.StatusCode.UNAVAILABLE, "the server is stopping")
            yield documents_pb2.UpsertStreamResponse(ack=ack)

    def _acked(self, collection, token, batch):
        world = self.world
        if batch.sequence > world.streams[token] + 1:
            fail(grpc.StatusCode.OUT_OF_RANGE, "a batch is missing")
        if batch.sequence <= world.streams[token]:
            return documents_pb2.UpsertStreamAck(sequence=batch.sequence, already_stored=True)
        assert 1 <= len({document.id for document in batch.documents}) == len(batch.documents) <= world.max_documents
        good, rejected = [], []
        for position, document in enumerate(batch.documents):
            if problem := world.problem(document.text):
                error = status_of(INVALID, f"text {problem}", reason="INVALID_INPUT")
                rejected.append({"position": position, "id": document.id, "error": error})
            else:
                good.append(document)
        stored = world.store(collection, good)
        world.streams[token] = batch.sequence
        return documents_pb2.UpsertStreamAck(
            sequence=batch.sequence, num_upserted=len(good), rejected_documents=rejected, **stored
        )

    def GetDocuments(self, request):
        stored, found = self._stored(request.collection), []
        for name in filter(stored.__contains__, request.ids):
            facets = fake_facets(stored[name].text) if request.include_facets else None
            found.append(message_of(documents_pb2.Document, facet_embeddings=facets))
            found[-1].MergeFrom(stored[name])
        return {"documents": found, "missing_ids": [name for name in request.ids if name not in stored]}

    def DeleteDocuments(self, request):
        stored = self._stored(request.collection)
        ids = request.ids or [name for name, kept in stored.items() if request.source in ("", kept.source)]
        return {"num_deleted": sum(stored.pop(name, None) is not None for name in list(ids))}

    def CountDocuments(self, request):
        return {"num_documents": len(self._stored(request.collection))}

    def ListDocuments(self, request):
        stored, size = self._stored(request.collection), request.page_size or 3
        names = [name for name in sorted(stored) if name > request.page_token]
        names = [name for name in names if request.source in ("", stored[name].source)]
        token = names[size - 1] if len(names) > size else ""
        return {"documents": [stored[name] for name in names[:size]], "next_page_token": token}

    def ListSources(self, request):
        found = Counter(document.source for document in self._stored(request.collection).values() if document.source)
        return {"sources": [{"source": name, "num_documents": number} for name, number in sorted(found.items())]}
