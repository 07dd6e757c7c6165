"""Kills of a process between store and index: nothing acknowledged is missing there, and nothing half there."""

import contextlib
import os
import signal
from importlib.util import find_spec
from multiprocessing.connection import Connection

import numpy as np
import pytest

from benchmarks.faults.process import FORKS
from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest
from facets.index import live, qdrant_points

K, DIM = 3, 32
KILLS = 12  # at one of these points each


def work_until_killed(folder, place, after, acknowledged: Connection):
    """Writes, and says after each write how far it is; ends with the given call of a method of the shard."""
    live.FOLD_FACETS = 60  # many steps
    left = after

    def killing(function, before):
        def called(*arguments, **named):
            nonlocal left
            left -= 1
            if before and left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            found = function(*arguments, **named)
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return called

    name, _, when = place.partition("-")
    kind = qdrant_points.EdgePoints
    setattr(kind, name, killing(getattr(kind, name), when == "before"))
    with opened(folder) as engine:
        first = engine.count("docs").num_documents
        for start in range(first, first + 4000, 40):
            engine.upsert("docs", documents_of(range(start, start + 40)))
            engine.delete("docs", ids=[f"d{start}"])
            acknowledged.send(start + 40)
            engine.maintain()


def documents_of(numbers):
    """The same facets for a number, always."""
    facets = [np.random.default_rng(number).standard_normal((K, DIM)).astype(np.float32) for number in numbers]
    return [
        Document(id=f"d{number}", text="", facet_embeddings=own) for number, own in zip(numbers, facets, strict=True)
    ]


def opened(folder):
    """An engine whose index is a shard of Edge from the first hundred documents on."""
    return CollectionEngine.open(folder, EngineConfig(index="edge", exact_max_facets=200, background=False))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("qdrant_edge") is None, reason="no extra 'edge'")
@pytest.mark.parametrize("place", ["upsert-before", "upsert-after", "mark-after", "settle-after"])
def test_killed_between_store_and_shard_everything_acknowledged_is_found(tmp_path, place):
    with opened(tmp_path) as engine:
        engine.create_collection("docs", model="m", model_revision="1", num_facets=K, dim=DIM)
    acknowledged = 0
    for kill in range(KILLS // 4):
        ours, theirs = FORKS.Pipe(duplex=False)
        child = FORKS.Process(target=work_until_killed, args=(tmp_path, place, 2 + 5 * kill, theirs))
        child.start()
        theirs.close()
        with contextlib.suppress(EOFError):
            while ours.poll(120):
                acknowledged = max(acknowledged, ours.recv())
        child.join(120)
        assert child.exitcode == -signal.SIGKILL
        with opened(tmp_path) as engine:
            there = {one.id for one in engine.list_documents("docs", page_size=1000).documents}
            expected = {f"d{number}" for number in range(acknowledged)}
            assert len(expected - there) <= acknowledged / 40 + 1  # what was deleted, and nothing else
            numbers = sorted(int(id[1:]) for id in there)
            facets = np.stack([document.facet_embeddings for document in documents_of(numbers)])
            facets /= np.linalg.norm(facets, axis=2, keepdims=True)
            for exact in (True, False):
                hits = engine.search("docs", SearchRequest(facets=facets, top_k=1, exact=exact)).hits
                for number, (hit,) in zip(numbers, hits, strict=True):
                    assert hit.id == f"d{number}" and hit.facets_score == pytest.approx(1.0, abs=1e-3)
            engine.maintain()
    assert acknowledged > 40
