"""Every service of a real server, from another process."""

import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from facets_proto.v1 import (
    models_pb2,
    models_pb2_grpc,
    texts_pb2,
    texts_pb2_grpc,
)
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

TEXTS = [
    "The boat sailed on the river to the sea.",
    "A song for guitar and piano.",
    "The king and the queen of the city.",
    "Bread, cheese and wine on the table.",
    "The student was at school with the teacher of physics.",
]


def array_of(message):
    return np.frombuffer(message.data, "<f4").reshape(message.shape)


@pytest.fixture
def embedding(channel):
    return texts_pb2_grpc.EmbeddingServiceStub(channel)


@pytest.fixture
def model(channel):
    stub = models_pb2_grpc.ModelServiceStub(channel)
    return stub.GetModel(models_pb2.GetModelRequest(), timeout=30).model


def test_reflection_and_health_know_every_service(channel):
    names = set(ProtoReflectionDescriptorDatabase(channel).get_services())
    health = health_pb2_grpc.HealthStub(channel)
    ours = {name for name in names if name.startswith("facets.v1.")}
    of_texts = {
        f"facets.v1.{name}Service"
        for name in ("Embedding", "Similarity", "Summarization", "Topic", "Collection", "Document", "Model")
    }
    of_other_tasks = {"relations": "facets.v1.RelationService", "papers": "facets.v1.RecommendationService"}
    assert ours == of_texts | set(of_other_tasks.values())
    models = models_pb2_grpc.ModelServiceStub(channel).ListModels(models_pb2.ListModelsRequest(), timeout=30).models
    served = {model.task for model in models}
    for name in ("", *of_texts, *(service for task, service in of_other_tasks.items() if task in served)):
        reply = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=10)
        assert reply.status == health_pb2.HealthCheckResponse.SERVING
    for name in ("nope", *(service for task, service in of_other_tasks.items() if task not in served)):
        with pytest.raises(grpc.RpcError) as raised:
            health.Check(health_pb2.HealthCheckRequest(service=name), timeout=10)
        assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_text_has_the_same_facets_alone_and_in_a_batch(embedding, model):
    together = array_of(embedding.Embed(texts_pb2.EmbedRequest(texts=TEXTS), timeout=30).facet_embeddings)
    assert together.shape == (len(TEXTS), model.num_facets, model.dim)
    for i, text in enumerate(TEXTS):
        alone = array_of(embedding.Embed(texts_pb2.EmbedRequest(texts=[text]), timeout=30).facet_embeddings)
        np.testing.assert_allclose(alone[0], together[i], rtol=1e-3, atol=1e-4)


def test_64_concurrent_callers_get_what_they_asked_for(embedding):
    texts = [f"{TEXTS[i % 5]} {TEXTS[(i * 7 + i // 5) % 5]}" for i in range(64)]
    expected = array_of(embedding.Embed(texts_pb2.EmbedRequest(texts=texts), timeout=60).facet_embeddings)
    with ThreadPoolExecutor(64) as pool:
        replies = list(pool.map(lambda text: embedding.Embed(texts_pb2.EmbedRequest(texts=[text]), timeout=60), texts))
    for reply, facets in zip(replies, expected, strict=True):
        np.testing.assert_allclose(array_of(reply.facet_embeddings)[0], facets, rtol=1e-3, atol=1e-4)


def test_cancelled_streams_leave_no_trace(embedding, channel):
    for _ in range(40):
        call = embedding.EmbedStream(iter(threading.Event().wait, None), timeout=30)
        call.cancel()
    reply = embedding.Embed(texts_pb2.EmbedRequest(texts=["a"]), timeout=30)
    assert reply.timings.total_ms > 0
    requests = [texts_pb2.EmbedStreamRequest(sequence=1, request=texts_pb2.EmbedRequest(texts=["a"]))]
    deadline_error = None
    for _ in range(100):  # places of cancelled streams are free again as soon as the server has noticed
        try:
            assert len(list(embedding.EmbedStream(iter(requests), timeout=30))) == 1
            return
        except grpc.RpcError as error:
            deadline_error = error
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            threading.Event().wait(0.1)
    raise AssertionError(f"streams stay taken: {deadline_error}")
