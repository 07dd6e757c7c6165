"""The services of the server, and what it says of itself."""

import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from facets_proto.v1 import documents_pb2, documents_pb2_grpc, models_pb2, models_pb2_grpc, texts_pb2, texts_pb2_grpc
from facets_server.runtime import upkeep
from facets_server.runtime.config import ServerConfig
from waiting import wait_until

import facets
from facets.errors import ConfigError
from facets.index.config import EngineConfig


def status(running):
    return models_pb2_grpc.ModelServiceStub(running.channel).GetServerStatus(models_pb2.GetServerStatusRequest())


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
    stub = texts_pb2_grpc.EmbeddingServiceStub(running.channel)
    first = stub.Embed.future(texts_pb2.EmbedRequest(texts=["cat"]))
    assert running.model.started.wait(30)
    second = stub.Embed.future(texts_pb2.EmbedRequest(texts=["dog"] * 5))
    wait_until(lambda: [queue.num_waiting for queue in status(running).model_queues] == [5])
    running.model.gate.set()
    for call in (first, second):
        call.result(30)


def test_backups_are_taken_listed_and_restored(make_server, tmp_path):
    folder = tmp_path / "backups"
    running = make_server(config=ServerConfig(backup_dir=folder))
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "backup.json").write_text("[]")  # not ours
    documents_pb2_grpc.CollectionServiceStub(running.channel).CreateCollection(
        documents_pb2.CreateCollectionRequest(name="kept")
    )
    assert (status(running).backup_dir, list(status(running).backups)) == (str(folder), [])
    reply = models_pb2_grpc.ModelServiceStub(running.channel).TakeBackup(models_pb2.TakeBackupRequest())
    assert not reply.problems and reply.backup.num_bytes > 0
    assert list(status(running).backups) == [reply.backup]
    assert status(running).last_backup_time == reply.backup.made
    upkeep.restore_directory(Path(reply.backup.folder), tmp_path / "restored", print)
    restored = make_server(data_dir=tmp_path / "restored")
    found = documents_pb2_grpc.CollectionServiceStub(restored.channel).ListCollections(
        documents_pb2.ListCollectionsRequest()
    )
    assert [collection.name for collection in found.collections] == ["kept"]


def test_a_new_backup_makes_the_oldest_of_this_store_go(make_server, tmp_path, monkeypatch):
    folder = tmp_path / "backups"
    running = make_server(config=ServerConfig(backup_dir=folder, backup_keep=2))
    days = (datetime(2026, 5, day, tzinfo=UTC) for day in range(1, 9))
    monkeypatch.setattr(upkeep, "datetime", SimpleNamespace(now=lambda tz: next(days)))

    def take():
        return models_pb2_grpc.ModelServiceStub(running.channel).TakeBackup(models_pb2.TakeBackupRequest())

    assert not take().removed_folders and not take().removed_folders
    assert list(take().removed_folders) == [str(folder / "2026-05-01T00-00-00Z")]
    assert status(running).backup_keep == 2 and len(status(running).backups) == 2
    with monkeypatch.context() as patched:  # what is damaged makes nothing go, and does not count afterwards
        patched.setattr(upkeep, "problems_of", lambda path, schema: ["page 3 is damaged"])
        assert take().problems and not list(folder.glob("*.part"))
    assert list(take().removed_folders) == [str(folder / "2026-05-02T00-00-00Z")]
    assert sorted(path.name[:10] for path in folder.iterdir()) == ["2026-05-03", "2026-05-04", "2026-05-05"]


def test_backups_of_one_second_are_two(make_server, tmp_path, monkeypatch):
    running = make_server(config=ServerConfig(backup_dir=tmp_path / "backups"))
    seconds = iter([1, 1, 1, 2])
    monkeypatch.setattr(
        upkeep, "datetime", SimpleNamespace(now=lambda tz: datetime(2026, 5, 1, second=next(seconds), tzinfo=UTC))
    )
    for _ in range(2):
        models_pb2_grpc.ModelServiceStub(running.channel).TakeBackup(models_pb2.TakeBackupRequest())
    assert [path.name[-3:] for path in sorted((tmp_path / "backups").iterdir())] == ["01Z", "02Z"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [({}, "backup_dir"), ({"backup_dir": Path("b"), "engine": EngineConfig(store="postgres://h/d")}, "PostgreSQL")],
)
def test_a_backup_that_cannot_be_taken_is_refused(settings, says):
    with pytest.raises(ConfigError, match=says):
        upkeep.take_backup(ServerConfig(**settings))
