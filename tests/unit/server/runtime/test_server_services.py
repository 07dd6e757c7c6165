"""The services of the server, and what it says of itself."""

import platform
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from facets_proto.v1 import documents_pb2, models_pb2, texts_pb2
from facets_server.runtime import upkeep
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.health import HealthMonitor
from facets_server.runtime.models import LazyModel
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from proto_files import SERVICES as OUR_SERVICES
from server_failures import failure
from server_fakes import FakeModel
from waiting import wait_until

import facets
from facets.errors import ConfigError, StoreGoneError
from facets.index.config import EngineConfig


def status(running):
    return running.models.GetServerStatus(models_pb2.GetServerStatusRequest())


def test_a_new_server_says_what_it_is(running):
    before = time.time()
    reply = status(running)
    assert reply.version == facets.__version__
    assert 0 <= before - reply.start_time.ToSeconds() < 3600
    assert (reply.num_running, reply.num_queued, reply.num_streams) == (1, 0, 0)
    assert {use.part: use.num_bytes > 0 for use in reply.disk_uses}["documents"]
    assert reply.free_bytes > 0
    assert not reply.HasField("last_backup_time")


def test_texts_that_wait_for_a_model_are_shown(running):
    running.model.hold()
    first = running.embedding.Embed.future(texts_pb2.EmbedRequest(texts=["cat"]))
    assert running.model.started.wait(30)
    second = running.embedding.Embed.future(texts_pb2.EmbedRequest(texts=["dog"] * 5))
    wait_until(lambda: [queue.num_waiting for queue in status(running).model_queues] == [5])
    running.model.gate.set()
    for call in (first, second):
        call.result(30)


def test_backups_are_taken_listed_and_restored(make_server, tmp_path):
    folder = tmp_path / "backups"
    running = make_server(config=ServerConfig(backup_dir=folder))
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "backup.json").write_text("[]")  # not ours
    running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="kept"))
    assert (status(running).backup_dir, list(status(running).backups)) == (str(folder), [])
    reply = running.models.TakeBackup(models_pb2.TakeBackupRequest())
    assert not reply.problems and reply.backup.num_bytes > 0
    assert list(status(running).backups) == [reply.backup]
    assert status(running).last_backup_time == reply.backup.made
    upkeep.restore_directory(Path(reply.backup.folder), tmp_path / "restored", print)
    restored = make_server(data_dir=tmp_path / "restored")
    found = restored.collections.ListCollections(documents_pb2.ListCollectionsRequest())
    assert [collection.name for collection in found.collections] == ["kept"]


def test_a_new_backup_makes_the_oldest_of_this_store_go(make_server, tmp_path, monkeypatch):
    folder = tmp_path / "backups"
    running = make_server(config=ServerConfig(backup_dir=folder, backup_keep=2))
    days = (datetime(2026, 5, day, tzinfo=UTC) for day in range(1, 9))
    monkeypatch.setattr(upkeep, "datetime", SimpleNamespace(now=lambda tz: next(days)))

    def take():
        return running.models.TakeBackup(models_pb2.TakeBackupRequest())

    assert not take().removed_folders and not take().removed_folders
    assert list(take().removed_folders) == [str(folder / "2026-05-01T00-00-00.000000Z")]
    assert status(running).data_dir == str(running.config.data_dir)
    assert status(running).backup_keep == 2 and len(status(running).backups) == 2
    with monkeypatch.context() as patched:  # what is damaged makes nothing go, and does not count afterwards
        patched.setattr(upkeep.backups, "problems_of", lambda path, schema: ["page 3 is damaged"])
        assert take().problems and not list(folder.glob("*.part"))
    assert list(take().removed_folders) == [str(folder / "2026-05-02T00-00-00.000000Z")]
    assert sorted(path.name[:10] for path in folder.iterdir()) == ["2026-05-03", "2026-05-04", "2026-05-05"]


def test_one_backup_is_taken_at_a_time(make_server, tmp_path, monkeypatch):
    running = make_server(config=ServerConfig(backup_dir=tmp_path / "backups"))
    refusals = []

    def take_another(*args, **settings):
        monkeypatch.setattr(upkeep.backups, "back_up", back_up)
        refusals.append(failure(take, models_pb2.TakeBackupRequest()).code.name)
        return back_up(*args, **settings)

    back_up, take = upkeep.backups.back_up, running.models.TakeBackup
    monkeypatch.setattr(upkeep.backups, "back_up", take_another)
    take(models_pb2.TakeBackupRequest())
    assert refusals == ["RESOURCE_EXHAUSTED"]


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({}, ConfigError, "backup_dir"),
        ({"backup_dir": Path("b"), "engine": EngineConfig(store="postgres://h/d")}, ConfigError, "PostgreSQL"),
        ({"backup_dir": Path("b"), "data_dir": Path("moved-away")}, StoreGoneError, "no documents"),
    ],
)
def test_a_backup_that_cannot_be_taken_is_refused(settings, error, says):
    with pytest.raises(error, match=says):
        upkeep.take_backup(ServerConfig(**settings))


SERVICES = ("", "facets.v1.EmbeddingService", "facets.v1.DocumentService", "facets.v1.ModelService")
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


def states(running):
    return {running.health.Check(health_pb2.HealthCheckRequest(service=name), timeout=60).status for name in SERVICES}


def test_nothing_is_serving_during_warm_up(make_server):
    model = FakeModel()
    model.hold()
    thread = threading.Thread(target=lambda: make_server(models=[model], config=ServerConfig(warm_up=True)))
    thread.start()
    assert model.started.wait(10)
    running = make_server.started[-1]
    try:
        assert states(running) == {NOT_SERVING}
    finally:
        model.gate.set()
        thread.join()
    assert states(running) == {SERVING}


def test_a_model_is_listed_without_opening_it(make_server):
    lazy = LazyModel("lazy", "passages", pytest.fail, lambda: FakeModel("lazy", "r2"))
    running = make_server(others=[lazy])
    listed = running.models.ListModels(models_pb2.ListModelsRequest()).models
    assert [(model.name, model.revision) for model in listed] == [("fake", "r1"), ("lazy", "r2")]
    assert running.models.GetModel(models_pb2.GetModelRequest(name="lazy")).model.revision == "r2"
    assert states(running) == {SERVING}


def test_health_follows_a_model_that_keeps_failing_and_comes_back(running):
    updates = running.health.Watch(health_pb2.HealthCheckRequest(service="facets.v1.EmbeddingService"), timeout=30)
    assert next(updates).status == SERVING
    running.model.poison = "text"
    for _ in range(3):
        failure(running.embedding.Embed, texts_pb2.EmbedRequest(texts=["text"]))
    running_poison = next(updates).status
    assert running_poison == NOT_SERVING
    running.model.poison = ""
    assert next(updates).status == SERVING


def test_a_check_that_hangs_does_not_hold_and_others_go_on(monkeypatch):
    monkeypatch.setattr("facets_server.runtime.health.CHECK_TIMEOUT_S", 0.05)
    answers, num_asked = threading.Event(), [0]
    answers.set()

    def hangs():
        num_asked[0] += 1
        answers.wait(60)

    others = [True]

    def raises():
        if not others[0]:
            raise RuntimeError("qdrant is away")

    monitor = HealthMonitor({"facets.v1.X": (hangs,), "qdrant": (raises,)})
    monitor.start()
    assert [monitor.state(name) for name in ("other", "facets.v1.X", "qdrant")] == [UNKNOWN, SERVING, SERVING]
    answers.clear()
    wait_until(lambda: monitor.state("facets.v1.X") == NOT_SERVING)
    asked = num_asked[0]
    others[0] = False
    wait_until(lambda: monitor.state("qdrant") == NOT_SERVING)
    assert num_asked[0] == asked, "a check that hangs is not asked again"
    answers.set()
    others[0] = True
    wait_until(lambda: monitor.state("facets.v1.X") == monitor.state("qdrant") == SERVING)
    monitor.drain()
    assert monitor.state("qdrant") == NOT_SERVING


def test_health_turns_first_when_stopping_and_running_calls_end_well(running):
    updates = running.health.Watch(health_pb2.HealthCheckRequest(service=""), timeout=30)
    assert next(updates).status == SERVING
    running.model.hold()
    call = running.embedding.Embed.future(texts_pb2.EmbedRequest(texts=["cat"]), timeout=30)
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
