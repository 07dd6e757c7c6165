"""Disks that fill up, and disks that are read-only; in a mount namespace of its own, where that is allowed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
_IN_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")

_COMMON = """
import json, os, subprocess, sys
from pathlib import Path
import numpy as np
from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest
from facets.errors import FacetsError
from facets.relations.additions import AddedRelation, AddedRelationStore

folder = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True)
config = EngineConfig(background=False, exact_max_facets=20)
engine = CollectionEngine.open(folder / "data", config)
engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
relations = AddedRelationStore(folder / "data" / "relations" / "toy", "toy")
relations.add(AddedRelation("first", ("$ARG1 met $ARG2",), 0.5))
told = []

def upsert(number, size=100):
    facets = np.random.default_rng(number).standard_normal((2, 32))
    engine.upsert("docs", [Document(id=f"d{number}", text="t" * size, facet_embeddings=facets)])

def tell(work):
    try:
        work()
        told.append("done")
    except FacetsError as error:
        told.append(type(error).__name__)

for number in range(30):
    upsert(number)
"""

_FULL = """
filler = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT)
for size in (4096, 1):  # to the last byte
    try:
        while True:
            os.write(filler, bytes(size))
    except OSError:
        pass
stored = 30
while stored < 10_000:  # until what the log may still use is used
    try:
        upsert(stored, 5000)
    except FacetsError as error:
        told.append(type(error).__name__)
        break
    stored += 1
tell(lambda: relations.add(AddedRelation("x" * 5000, ("$ARG1 knows $ARG2",), 0.5)))
other = folder / "data" / "relations" / "other"
tell(lambda: AddedRelationStore(other, "toy").add(AddedRelation("y", ("$ARG1 is $ARG2",), 0.5)))
engine.close()
engine = CollectionEngine.open(folder / "data", config)
assert engine.count("docs").num_documents == stored
assert engine.search("docs", SearchRequest(texts=["t" * 100], top_k=1, mode="lexical")).hits[0]
os.ftruncate(filler, 0)
upsert(stored)
relations.add(AddedRelation("second", ("$ARG1 knows $ARG2",), 0.5))
"""

_READ_ONLY = """
relations.close()
engine.close()
subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
tell(lambda: CollectionEngine.open(folder / "data", config))
tell(lambda: AddedRelationStore(folder / "data" / "relations" / "toy", "toy"))
subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
engine = CollectionEngine.open(folder / "data", config)
relations = AddedRelationStore(folder / "data" / "relations" / "toy", "toy")
upsert(30)
relations.add(AddedRelation("second", ("$ARG1 knows $ARG2",), 0.5))
stored = 30
"""

_END = """
relations.close()
engine.close()
with CollectionEngine.open(folder / "data", config) as again:
    assert again.count("docs").num_documents == stored + 1
relations = AddedRelationStore(folder / "data" / "relations" / "toy", "toy")
assert [relation.name for relation in relations.read()] == ["first", "second"]
relations.close()
print(json.dumps(told))
"""


def run(script: str, folder: Path) -> list[str]:
    probe = subprocess.run(
        [*_IN_NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip(f"no mount namespaces here: {probe.stderr.decode().strip()}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*_IN_NAMESPACE, sys.executable, "-c", _COMMON + script + _END, str(folder)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: list[str] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_full_disk_is_told_as_such_and_loses_nothing(tmp_path: Path) -> None:
    told = run(_FULL, tmp_path)
    assert set(told) == {"DiskFullError"} and len(told) == 3


def test_read_only_disk_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    told = run(_READ_ONLY, tmp_path)
    assert set(told) == {"StorageError"} and len(told) == 2
