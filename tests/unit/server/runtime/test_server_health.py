import platform
import subprocess
import sys
import threading

import grpc
import pytest
from facets_proto.v1 import texts_pb2, texts_pb2_grpc
from facets_server.runtime.health import HealthMonitor
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from proto_files import SERVICES as OUR_SERVICES
from server_fakes import FakeModel
from waiting import wait_until

SERVICES = ("", "facets.v1.EmbeddingService", "facets.v1.DocumentService", "facets.v1.ModelService")
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def states(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    return {stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=60).status for name in SERVICES}


def test_nothing_is_serving_during_warm_up(make_server):
    model = FakeModel()
    model.hold()
    ports = []
    thread = threading.Thread(target=lambda: ports.append(make_server(models=[model])))
    thread.start()
    assert model.started.wait(10)
    running = make_server.started[-1]
    try:
        assert states(running.channel) == {NOT_SERVING}
    finally:
        model.gate.set()
        thread.join()
    assert states(running.channel) == {SERVING}


def test_health_follows_a_model_that_keeps_failing_and_comes_back(running):
    stub = texts_pb2_grpc.EmbeddingServiceStub(running.channel)
    health = health_pb2_grpc.HealthStub(running.channel)
    updates = health.Watch(health_pb2.HealthCheckRequest(service="facets.v1.EmbeddingService"), timeout=30)
    assert next(updates).status == SERVING
    running.model.poison = "text"
    for _ in range(3):
        with pytest.raises(grpc.RpcError):
            stub.Embed(texts_pb2.EmbedRequest(texts=["text"]), timeout=60)
    running_poison = next(updates).status
    assert running_poison == NOT_SERVING
    running.model.poison = ""
    assert next(updates).status == SERVING


def test_a_dependency_that_is_away_is_named_and_services_go_on():
    answers = [False]
    monitor = HealthMonitor({"facets.v1.X": (lambda: True,)}, {"qdrant": lambda: answers[0]})
    monitor.start()
    assert [monitor.state(name) for name in ("", "facets.v1.X", "qdrant")] == [SERVING, SERVING, NOT_SERVING]
    answers[0] = True
    wait_until(lambda: monitor.state("qdrant") == SERVING)
    monitor.drain()
    assert monitor.state("qdrant") == NOT_SERVING


def test_a_check_that_hangs_does_not_hold_and_others_go_on(monkeypatch):
    monkeypatch.setattr("facets_server.runtime.health.CHECK_TIMEOUT_S", 0.05)
    answers, num_asked = threading.Event(), [0]
    answers.set()

    def hangs():
        num_asked[0] += 1
        return answers.wait(60)

    others = [True]
    monitor = HealthMonitor({"facets.v1.X": (hangs,), "facets.v1.Y": (lambda: others[0],)})
    monitor.start()
    assert [monitor.state(name) for name in ("", "facets.v1.X", "facets.v1.Y")] == [SERVING] * 3
    answers.clear()
    wait_until(lambda: monitor.state("facets.v1.X") == monitor.state("") == NOT_SERVING)
    asked = num_asked[0]
    others[0] = False
    wait_until(lambda: monitor.state("facets.v1.Y") == NOT_SERVING)
    assert num_asked[0] == asked, "a check that hangs is not asked again"
    answers.set()
    wait_until(lambda: monitor.state("facets.v1.X") == SERVING)
    monitor.drain()


def test_health_turns_first_when_stopping_and_running_calls_end_well(running):
    stub = texts_pb2_grpc.EmbeddingServiceStub(running.channel)
    health = health_pb2_grpc.HealthStub(running.channel)
    updates = health.Watch(health_pb2.HealthCheckRequest(service=""), timeout=30)
    assert next(updates).status == SERVING
    running.model.hold()
    call = stub.Embed.future(texts_pb2.EmbedRequest(texts=["cat"]), timeout=30)
    assert running.model.started.wait(10)
    stopping = threading.Thread(target=running.server.stop, args=(20,))
    stopping.start()
    assert next(updates).status == NOT_SERVING
    assert not call.done()
    running.model.gate.set()
    assert call.result().token_stats[0].num_tokens == 1
    stopping.join(15)  # an open watch of health does not hold the server up for the whole grace
    assert not stopping.is_alive()


def test_reflection_lists_every_service(running):
    names = set(ProtoReflectionDescriptorDatabase(running.channel).get_services())
    ours = {service.full_name for service in OUR_SERVICES}
    assert names == ours | {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


# In a process of its own, which has one set of heaps. 160 MB are taken, and all but every 64th piece is released.
_HEAPS = """
import ctypes, threading, time
from pathlib import Path
from facets_server.runtime.memory import bound_heaps, released_when_idle
def resident_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20
bound_heaps()
kept, together, start = [], threading.Barrier(9), resident_mib()
def work():
    together.wait()
    kept.append([bytes(8000) for _ in range(2500)][::64])
    together.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
together.wait(), together.wait()
libc = ctypes.CDLL(None)
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
until = time.monotonic() + 30
with released_when_idle(lambda: True):
    while resident_mib() > start + 80 and time.monotonic() < until:
        time.sleep(0.1)
print("kept", resident_mib() - start)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_heaps_are_few_and_shrink_when_the_server_is_idle():
    done = subprocess.run([sys.executable, "-c", _HEAPS], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.count("<heap nr=") <= 2
    assert int(done.stdout.split()[-1]) <= 80
