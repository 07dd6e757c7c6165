"""Calls that begin and never go on: they may not keep others from their answers."""

import asyncio
import os
import time

import grpc
import pytest
from facets_proto.v1 import models_pb2, models_pb2_grpc, texts_pb2, texts_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

pytestmark = pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs server processes of its own")

NUM_CALLS, NUM_CONNECTIONS = 2000, 8
LONGEST_S = 25.0  # less than silent calls are waited for
EMBED = "/facets.v1.EmbeddingService/Embed"
METHODS = {
    "unary": EMBED,
    "stream": "/facets.v1.EmbeddingService/EmbedStream",
    "health": "/grpc.health.v1.Health/Check",
    "reflection": "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
}


async def open_calls(target, method):
    """Calls that have sent their headers and nothing else."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(target, options=options) for _ in range(NUM_CONNECTIONS)]
    calls = [channels[i % NUM_CONNECTIONS].stream_stream(METHODS[method])() for i in range(NUM_CALLS)]
    for channel in channels:
        await channel.channel_ready()
    await asyncio.sleep(2)  # nothing comes back from a call without a message, so nothing says that it has arrived
    return channels, calls


async def answers(target):
    """The longest of some ordinary calls, in seconds."""
    longest = 0.0
    async with grpc.aio.insecure_channel(target) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for i in range(5):
            started = time.monotonic()
            reply = await health.Check(health_pb2.HealthCheckRequest(), timeout=LONGEST_S)
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
            embedded = await texts_pb2_grpc.EmbeddingServiceStub(channel).Embed(
                texts_pb2.EmbedRequest(texts=[f"the cat {i}"]), timeout=LONGEST_S
            )
            assert len(embedded.token_stats) == 1
            longest = max(longest, time.monotonic() - started)
        assert (await models_pb2_grpc.ModelServiceStub(channel).ListModels(models_pb2.ListModelsRequest())).models
    return longest


async def besiege(target, method):
    channels, calls = await open_calls(target, method)
    try:
        return await answers(target)
    finally:
        for call in calls:
            call.cancel()
        for channel in channels:
            await channel.close()


def test_2000_calls_without_a_message_leave_health_and_embed_answering(spawn):
    server = spawn()
    for method in METHODS:
        assert asyncio.run(besiege(server.target, method)) < LONGEST_S, method
    server.terminate()
    assert server.process.wait(30) == 0
    log = server.log()
    assert "Traceback" not in log
    assert " ERROR " not in log
    assert " INTERNAL" not in log


def test_a_call_without_a_message_is_ended(spawn):
    server = spawn(environment={"FACETS_SERVER_ADMISSION_MESSAGE_TIMEOUT_S": "0.5"})

    async def codes():
        async with grpc.aio.insecure_channel(server.target) as channel:
            calls = [channel.stream_stream(method)() for method in METHODS.values()]
            return [await asyncio.wait_for(call.code(), 20) for call in calls]

    assert set(asyncio.run(codes())) == {grpc.StatusCode.DEADLINE_EXCEEDED}
