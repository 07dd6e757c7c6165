"""One table says how the models of each task are loaded, and a wrong one is refused before it is read."""

import json
import pkgutil
import shutil
from pathlib import Path

import pytest
from toys import toy_model
from typing_extensions import get_protocol_members

from facets.errors import CheckpointError, InvalidInputError
from facets.model.contract import Model
from facets.model.loading import TASKS, load
from facets.papers.model import PaperModel

KINDS = {task: pkgutil.resolve_name(entry.model) for task, entry in TASKS.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    toy_model().save(tmp_path / "toy")
    return tmp_path / "toy"


@pytest.mark.parametrize("task", TASKS)
def test_the_default_of_a_class_is_loaded_where_nothing_is_named_and_meets_the_contract(task: str) -> None:
    model = load(None, KINDS[task])
    assert [name for name in get_protocol_members(Model) if not hasattr(model, name)] == []
    assert isinstance(model, KINDS[task])
    assert (model.name, model.task) == (TASKS[task].default, task)


def test_a_model_that_borrows_from_another_loads_by_a_relative_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[4])
    assert load("models/facets-papers-en").name == "facets-papers-en"


def test_a_model_of_another_task_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="expected a model for papers, got one for sentences"):
        load(folder, PaperModel)
    with pytest.raises(TypeError, match="kind must be one of"):
        load(folder, dict)  # type: ignore[type-var]


def test_a_task_that_nobody_knows_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    (copy / "config.json").write_text(json.dumps(config | {"task": "weather"}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="weather"):
        load(copy)
