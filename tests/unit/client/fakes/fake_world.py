"""What the fake server of the client's tests knows and answers: numbers made of hashes, faults on demand."""

import hashlib
import threading
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

import grpc
import numpy as np
from facets_proto.v1 import common_pb2, documents_pb2
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

NUM_FACETS, DIM = 3, 4
MODEL = common_pb2.ModelVersion(name="fake", revision="abc123")


def fake_facets(text: str) -> np.ndarray:
    """``[NUM_FACETS, DIM]`` float32, always the same for the same text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=(NUM_FACETS, DIM)).astype(np.float32)


def status_of(
    code: grpc.StatusCode, message: str, *, reason="", field="", retry_after_s=0.0, request_id="", resource_type=""
):
    details = [error_details_pb2.ErrorInfo(reason=reason, domain="facets.dev")]
    if request_id:
        details[0].metadata["request_id"] = request_id
    if field:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=field, description=message.removeprefix(f"{field} ")
        )
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    if retry_after_s:
        seconds = int(retry_after_s)
        delay = duration_pb2.Duration(seconds=seconds, nanos=int((retry_after_s - seconds) * 1e9))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    if resource_type:
        details.append(error_details_pb2.ResourceInfo(resource_type=resource_type))
    packed = []
    for detail in details:
        packed.append(any_pb2.Any())
        packed[-1].Pack(detail)
    return status_pb2.Status(code=code.value[0], message=message, details=packed)


class Pace:
    """Permits, one for each ack that the server may send."""

    def __init__(self, permits):
        self._permits = permits
        self._changed = threading.Condition()

    def acquire(self):
        with self._changed:
            self._changed.wait_for(lambda: self._permits > 0)
            self._permits -= 1
            self._changed.notify_all()

    def release(self, permits):
        with self._changed:
            self._permits += permits
            self._changed.notify_all()

    def wait_until_used_up(self, timeout_s=30):
        """Waits until the next ack needs a permit that is not there."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._permits == 0, timeout_s), "permits were left over"


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
    damage: str = ""  # of the backup that is taken
    collections: dict = field(default_factory=dict)  # name -> Collection
    documents: dict = field(default_factory=lambda: defaultdict(dict))  # name -> id -> Document
    streams: dict = field(default_factory=dict)  # token -> last sequence
    revision: int = 0
    faults: dict = field(default_factory=lambda: defaultdict(deque))  # method -> statuses to fail with
    calls: list = field(default_factory=list)  # (method, request)
    num_streams: int = 0
    break_after_acks: deque = field(default_factory=deque)  # one entry a stream: acks before it breaks
    break_before_ack: bool = False  # the broken batch is stored, its ack is lost
    pushback_ms: str = ""  # what the server asks of automatic retries
    silent: bool = False  # streams never answer
    max_tokens: int = 0  # words that are read of a document; 0: all
    confidences: dict = field(default_factory=dict)  # id -> confidence of its hits, which then have an answer
    pace: "Pace | None" = None  # one permit for each ack

    def enter(self, method, request, context):
        self.calls.append((method, request))
        if self.api_key:
            sent = dict(context.invocation_metadata()).get("authorization")
            if sent != f"Bearer {self.api_key}":
                fail(context, status_of(grpc.StatusCode.UNAUTHENTICATED, "the call needs a known key"))
        if self.faults[method]:
            fail(context, self.faults[method].popleft(), self.pushback_ms)

    def count(self, method):
        return sum(1 for name, _ in self.calls if name == method)

    def store(self, collection, documents):
        """Counts of the documents, as in a reply."""
        self.revision += 1
        counts = Counter()
        for document in documents:
            held = self.documents[collection].get(document.id)
            fields = ("text", "payload", "source")
            same = held and all(getattr(held, name) == getattr(document, name) for name in fields)
            counts["num_unchanged" if same else "num_changed" if held else "num_added"] += 1
            stored = documents_pb2.Document()
            stored.CopyFrom(document)
            stored.revision = self.revision
            self.documents[collection][document.id] = stored
        return counts

    def truncated(self, documents):
        """The documents whose end is not read."""
        lengths = [len(document.text.split()) for document in documents]
        return [
            common_pb2.TruncatedDocument(
                position=i,
                id=document.id,
                token_stats=common_pb2.TokenStats(
                    num_tokens=self.max_tokens, truncated=True, num_tokens_in_text=length
                ),
            )
            for i, (document, length) in enumerate(zip(documents, lengths, strict=True))
            if 0 < self.max_tokens < length
        ]

    def need_collection(self, name, context):
        if name not in self.collections:
            message = f"collection {name!r} does not exist"
            fail(context, status_of(grpc.StatusCode.NOT_FOUND, message, reason="NOT_FOUND", resource_type="collection"))


def fail(context, status, pushback_ms=""):
    made = rpc_status.to_status(status)
    if pushback_ms:
        pushback = ("grpc-retry-pushback-ms", pushback_ms)
        made = made._replace(trailing_metadata=(*made.trailing_metadata, pushback))
    context.abort_with_status(made)


def bad_text(text, world):
    if not text.strip():
        return "is empty, expected at least one character"
    if "REFUSE" in text:
        return "is refused"
    if len(text.encode()) > world.max_text_bytes:
        return f"has {len(text.encode())} bytes, the limit is {world.max_text_bytes}"
    return None


def check_texts(texts, world, context, name="texts"):
    if len(texts) > world.max_texts:
        message = f"{name} has {len(texts)} items, the limit is {world.max_texts}"
        fail(context, status_of(grpc.StatusCode.INVALID_ARGUMENT, message, field=name))
    for position, text in enumerate(texts):
        problem = bad_text(text, world)
        if problem:
            where = f"{name}[{position}]"
            status = status_of(
                grpc.StatusCode.INVALID_ARGUMENT, f"{where} {problem}", reason="INVALID_INPUT", field=where
            )
            fail(context, status)


def facet_array(array, dtype=common_pb2.DATA_TYPE_FLOAT32):
    kind = "<f2" if dtype == common_pb2.DATA_TYPE_FLOAT16 else "<f4"
    dtype = dtype or common_pb2.DATA_TYPE_FLOAT32
    return common_pb2.FacetArray(shape=array.shape, dtype=dtype, data=array.astype(kind).tobytes())


def fake_match(world):
    near = [common_pb2.NearestWord(word="dog", cosine=0.9), common_pb2.NearestWord(word="cat", cosine=0.5)]
    return common_pb2.FacetMatch(
        first_facet=1, second_facet=2, cosine=0.75, contribution=1.0, first_words=near, second_words=near
    )


class Service:
    """A service whose methods are named like its rpcs; each call is noted by the world first."""

    service: ServiceDescriptor

    def __init__(self, world):
        self.world = world

    def handler(self):
        handlers = {method.name: self._method(method) for method in self.service.methods}
        return grpc.method_handlers_generic_handler(self.service.full_name, handlers)

    def _method(self, method):
        def handle(request, context):
            self.world.enter(method.name, None if method.client_streaming else request, context)
            return getattr(self, method.name)(request, context)

        make = grpc.stream_stream_rpc_method_handler if method.client_streaming else grpc.unary_unary_rpc_method_handler
        return make(handle, GetMessageClass(method.input_type).FromString, lambda reply: reply.SerializeToString())
