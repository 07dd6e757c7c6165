"""Relations added by example patterns."""

from pathlib import Path

import pytest

from facets.errors import ConflictError, InvalidInputError, NotFoundError, StorageError
from facets.relations.engine import RelationEngine


def test_an_added_relation_is_used_and_survives(folder: Path, tmp_path: Path) -> None:
    engine = RelationEngine.load(folder, data_dir=tmp_path)
    info = engine.add_relation("mentor", ["$ARG1 taught $ARG2", "$ARG2 , a pupil of $ARG1"], threshold=0.1)
    assert info.examples == ("$ARG1 taught $ARG2", "$ARG2 , a pupil of $ARG1")
    [scores] = RelationEngine.load(folder, data_dir=str(tmp_path)).score(["$ARG1 taught $ARG2"])
    assert scores.relations[0].relation == "mentor"
    assert scores.relations[0].universal_schema is None
    assert "mentor" in [r.name for r in RelationEngine.load(folder, data_dir=tmp_path).relations()]
    engine.remove_relation("mentor")
    assert "mentor" not in [r.name for r in RelationEngine.load(folder, data_dir=tmp_path).relations()]


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
    engine = RelationEngine.load(folder)
    with pytest.raises(InvalidInputError) as caught:
        engine.add_relation(name, examples, threshold=threshold)
    assert caught.value.field == field
    assert len(engine.relations()) == 4


def test_a_name_is_taken_once(folder: Path) -> None:
    engine = RelationEngine.load(folder)
    with pytest.raises(ConflictError, match="exists"):
        engine.add_relation("spouse", ["$ARG1 wed $ARG2"])


def test_the_models_own_relations_stay(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="model's own"):
        RelationEngine.load(folder).remove_relation("spouse")
    with pytest.raises(NotFoundError, match="near names"):
        RelationEngine.load(folder).remove_relation("mentor")


def test_a_folder_that_cannot_be_written_adds_nothing(folder: Path, tmp_path: Path) -> None:
    engine = RelationEngine.load(folder, data_dir=tmp_path / "folder")
    (tmp_path / "folder").write_text("in the way")
    with pytest.raises(StorageError, match="cannot make the folder"):
        engine.add_relation("mentor", ["$ARG1 taught $ARG2"])
    assert len(engine.relations()) == 4


def test_a_damaged_store_is_reported(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "relations.jsonl").write_text('{"name": "x"\n')
    with pytest.raises(StorageError, match=r"relations.jsonl, line 1"):
        RelationEngine.load(folder, data_dir=tmp_path)
