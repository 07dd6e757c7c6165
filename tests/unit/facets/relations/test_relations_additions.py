"""Relations added by example patterns, and the file that holds them."""

import resource
import shutil
from pathlib import Path

import numpy as np
import pytest

from facets.errors import ConflictError, DiskFullError, InvalidInputError, NotFoundError, StoreGoneError
from facets.model.loading import load
from facets.relations.additions import AddedRelationStore, fitted_facets, updated
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets.relations.results import Relation


def test_an_added_relation_is_used_and_survives(folder: Path, tmp_path: Path) -> None:
    engine = RelationEngine(load(folder, RelationModel), data_dir=tmp_path)
    info = engine.add_relation("mentor", ["$ARG1 taught $ARG2", "$ARG2 , a pupil of $ARG1"], threshold=0.1)
    assert info.examples == ("$ARG1 taught $ARG2", "$ARG2 , a pupil of $ARG1")
    [scores] = RelationEngine(load(folder, RelationModel), data_dir=str(tmp_path)).score(["$ARG1 taught $ARG2"])
    assert scores.relations[0].relation == "mentor"
    assert scores.relations[0].universal_schema_score is None
    assert "mentor" in [r.name for r in RelationEngine(load(folder, RelationModel), data_dir=tmp_path).relations()]
    engine.remove_relation("mentor")
    assert "mentor" not in [r.name for r in RelationEngine(load(folder, RelationModel), data_dir=tmp_path).relations()]


@pytest.mark.parametrize(
    ("name", "examples", "threshold", "field"),
    [
        ("", ["$ARG1 met $ARG2"], None, "name"),
        ("a\tb", ["$ARG1 met $ARG2"], None, "name"),
        ("x" * 201, ["$ARG1 met $ARG2"], None, "name"),
        ("met", [], None, "examples"),
        ("met", ["$ARG1 met"], None, "examples[0]"),
        ("met", ["$ARG1 met $ARG2"], 1.5, "threshold"),
        ("met", ["$ARG1 met $ARG2"], float("nan"), "threshold"),
    ],
)
def test_a_bad_relation_is_not_added(
    folder: Path, name: str, examples: list[str], threshold: float | None, field: str
) -> None:
    engine = RelationEngine(load(folder, RelationModel))
    with pytest.raises(InvalidInputError) as caught:
        engine.add_relation(name, examples, threshold=threshold)
    assert caught.value.field == field
    assert len(engine.relations()) == 4


def test_a_known_name_is_a_conflict(folder: Path) -> None:
    engine = RelationEngine(load(folder, RelationModel))
    with pytest.raises(ConflictError, match="exists"):
        engine.add_relation("spouse", ["$ARG1 wed $ARG2"])


def test_the_models_own_relations_stay(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="model's own"):
        RelationEngine(load(folder, RelationModel)).remove_relation("spouse")
    with pytest.raises(NotFoundError, match="near names"):
        RelationEngine(load(folder, RelationModel)).remove_relation("mentor")


def test_a_full_disk_refuses_additions_and_not_reading(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        for _ in range(2):  # the second one finds what the first one left
            engine = RelationEngine(load(folder, RelationModel), data_dir=data / "relations")
            with pytest.raises(DiskFullError):
                engine.add_relation("mentor", ["$ARG1 taught $ARG2"])
            assert len(engine.relations()) == 4
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    engine.add_relation("mentor", ["$ARG1 taught $ARG2"])
    assert len(RelationEngine(load(folder, RelationModel), data_dir=data / "relations").relations()) == 5


def test_an_addition_to_a_folder_that_was_moved_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    engine = RelationEngine(load(folder, RelationModel), data_dir=tmp_path / "data" / "relations")
    (tmp_path / "data").rename(tmp_path / "moved")
    with pytest.raises(StoreGoneError):
        engine.add_relation("mentor", ["$ARG1 taught $ARG2"])
    assert not (tmp_path / "data").exists()


GOLDEN = Path(__file__).resolve().parents[3] / "golden"


def read(folder: Path) -> list[Relation]:
    store = AddedRelationStore(folder, "toy")
    try:
        return updated([], store.news())
    finally:
        store.close()


def test_golden_file_is_read(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "relations_v1", tmp_path / "relations")
    assert [relation.name for relation in read(tmp_path / "relations")] == ["mentor", "caf\u00e9"]


def test_fitted_facets_are_cluster_centres() -> None:
    rng = np.random.default_rng(1)
    centres = np.eye(3, 8, dtype=np.float32)
    facets = (np.repeat(centres, 10, axis=0) + 0.05 * rng.standard_normal((30, 8))).astype(np.float32)
    found = fitted_facets(facets.reshape(10, 3, 8), 3)
    assert sorted((found @ centres.T).argmax(axis=1).tolist()) == [0, 1, 2]
    assert (found @ centres.T).max(axis=1).min() > 0.98
