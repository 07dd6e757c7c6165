"""Kills of a process between store and index: nothing acknowledged is missing there, and nothing half there."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest

K, DIM = 3, 32
KILLS = 12  # at one of these points each
CHILD = """
import os, signal, sys
import numpy as np
from facets.index import live, qdrant_points
from test_index_kills import documents_of, opened

live.FOLD_FACETS = 60  # many steps
place, after = sys.argv[2], int(sys.argv[3])

def killing(function, before):
    def called(*arguments, **named):
        killing.left -= 1
        if before and killing.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        found = function(*arguments, **named)
        if killing.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    return called

killing.left = after
name, _, when = place.partition("-")
kind = qdrant_points.EdgePoints
setattr(kind, name, killing(getattr(kind, name), when == "before"))
with opened(sys.argv[1]) as engine:
    first = engine.count("docs").num_documents
    for start in range(first, first + 4000, 40):
        engine.upsert("docs", documents_of(range(start, start + 40)))
        engine.delete("docs", ids=[f"d{start}"])
        print(start + 40, flush=True)
        engine.maintain()
"""


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
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    acknowledged = 0
    for kill in range(KILLS // 4):
        command = [sys.executable, "-c", CHILD, str(tmp_path), place, str(2 + 5 * kill)]
        child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert child.returncode == -9, child.stderr
        acknowledged = max([acknowledged, *map(int, child.stdout.split())])
        with opened(tmp_path) as engine:
            there = {one.id for one in engine.list_documents("docs", page_size=1000).documents}
            expected = {f"d{number}" for number in range(acknowledged)}
            assert len(expected - there) <= acknowledged / 40 + 1  # what was deleted, and nothing else
            numbers = sorted(int(id[1:]) for id in there)
            for number, document in zip(numbers, documents_of(numbers), strict=True):
                facets = document.facet_embeddings / np.linalg.norm(document.facet_embeddings, axis=1, keepdims=True)
                for exact in (True, False):
                    hit = engine.search("docs", SearchRequest(facets=facets[None], top_k=1, exact=exact)).hits[0][0]
                    assert hit.id == f"d{number}" and hit.facets_score == pytest.approx(1.0, abs=1e-3)
            engine.maintain()
    assert acknowledged > 40
