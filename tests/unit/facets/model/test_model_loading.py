"""One table says how the models of each task are loaded, and a wrong one is refused before it is read."""

import json
import logging
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from tiny_encoders import tiny_encoder
from toys import toy_model, toy_passage_model
from typing_extensions import get_protocol_members

import facets
from facets.errors import CheckpointError, InvalidInputError, NotFoundError
from facets.model import shipped
from facets.model.contract import FOREIGN, Model, is_foreign
from facets.model.loading import TASKS, load
from facets.model.score_curves import read_score_curves, write_score_curves
from facets.model.shipped import borrowed_folder, find_model
from facets.papers.model import PaperModel
from facets.texts import score_pairs, summarize
from facets.texts.topics import suggest_topics

KINDS = {task: pkgutil.resolve_name(entry.model) for task, entry in TASKS.items()}


@pytest.mark.parametrize("task", TASKS)
def test_the_default_of_a_class_is_loaded_where_nothing_is_named_and_meets_the_contract(task: str) -> None:
    model = load(None, KINDS[task])
    assert [name for name in get_protocol_members(Model) if not hasattr(model, name)] == []
    assert isinstance(model, KINDS[task])
    assert (model.name, model.task) == (TASKS[task].default, task)
    sizes = f"num_facets={model.num_facets}, dim={model.dim}"
    assert repr(model) == f"{KINDS[task].__name__}('{model.name}', task='{task}', {sizes})"


def test_a_model_that_borrows_from_another_loads_by_a_relative_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[4])
    assert load("models/facets-papers-en").name == "facets-papers-en"


def test_a_model_of_another_task_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected a model for papers, got one for sentences"):
        load("facets-en", PaperModel)
    with pytest.raises(TypeError, match="kind must be one of"):
        load("facets-en", dict)  # type: ignore[type-var]


MODULE = "toy_model_package"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packages on the path, and no checkout beside the library."""
    monkeypatch.setattr(shipped, "CHECKOUT", tmp_path / "no-checkout")
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    return site


def install(site: Path, *, model: str, module: str = MODULE) -> Path:
    """What pip leaves of a package with one model; the model's folder."""
    folder = site / module / model
    folder.mkdir(parents=True)
    (site / module / "__init__.py").touch()
    (folder / "config.json").write_text("{}")
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[facets.models]\n{model} = {module}\n")
    return folder


def test_a_checkout_s_models_and_baselines_are_found_by_name() -> None:
    assert find_model("facets-en").name == "facets-en"
    assert find_model("facets-en-k1").parent.name == "baselines"


def test_an_installed_package_s_model_is_found_by_name(packages: Path) -> None:
    folder = install(packages, model="toy-one", module="toy_model_found")
    assert find_model("toy-one") == folder


def test_a_model_that_is_not_installed_is_named_with_its_package(packages: Path) -> None:
    with pytest.raises(NotFoundError, match=r"facets-en is not installed: pip install multifacet-model-en$"):
        find_model("facets-en")


@pytest.mark.parametrize("name", ["no-such-model", "no/such/folder", "../facets-en"])
def test_what_nobody_has_is_refused_with_what_is_here(packages: Path, name: str) -> None:
    install(packages, model="toy-here", module="toy_model_here")
    with pytest.raises(
        NotFoundError, match=r"expected a checkpoint folder, .*NAME or one of toy-here; pip install multi"
    ):
        find_model(name)


def test_what_a_model_borrows_lies_beside_it_or_is_found_by_name(packages: Path, tmp_path: Path) -> None:
    lender = install(packages, model="facets-en", module="toy_model_lender")
    borrower = install(packages, model="toy-borrower", module="toy_model_borrower")
    assert borrowed_folder(borrower, "../facets-en") == lender
    beside = tmp_path / "models" / "facets-en"
    beside.mkdir(parents=True)
    assert borrowed_folder(tmp_path / "models" / "toy-borrower", "../facets-en") == beside
    assert borrowed_folder(lender, ".") == lender
    assert borrowed_folder(borrower, "../no-such-model") == borrower.parent / "no-such-model"


CURVES = {
    "sif+attention": np.array([[-0.5, 0.25, 1.0], [0.0, 0.125, 1.0]]),
    "codebook": np.array([[-1.0, 0.0], [0.5, 0.5]]),
}


def test_curves_come_back_for_their_model_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = write_score_curves(tmp_path, "r1", CURVES, source="people")
    read = read_score_curves(tmp_path, "r1")
    assert {name: curve_2N.tolist() for name, curve_2N in read.items()} == {
        name: curve_2N.tolist() for name, curve_2N in CURVES.items()
    }
    assert json.loads(file.read_text())["source"] == "people"
    with caplog.at_level(logging.WARNING):
        assert read_score_curves(tmp_path, "r2") == {}
    assert "r1" in caplog.text and "r2" in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"format": 2}',
        '{"format": 1, "revision": "r1"}',
        '{"format": 1, "revision": "r1", "curves": {"sif": {"scores": [1, 0], "calibrated": [0, 1]}}}',
        '{"format": 1, "revision": "r1", "curves": {"sif": {"scores": [0, 1], "calibrated": [0, 2]}}}',
        '{"format": 1, "revision": "r1", "curves": {"sif": {"scores": [0, 1], "calibrated": [1, 0]}}}',
        '{"format": 1, "revision": "r1", "curves": {"sif": {"scores": [0, NaN], "calibrated": [0, 1]}}}',
    ],
)
def test_a_damaged_file_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / "calibration.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"calibration\.json"):
        read_score_curves(tmp_path, "r1")


def test_shipped_curves_were_fitted_on_the_model_they_lie_beside() -> None:
    folder = Path(__file__).parents[4] / "models" / "facets-en"
    curves = read_score_curves(folder, load(folder).revision)
    assert {"codebook", "average", "sif", "sif+attention"} <= set(curves)  # else: facets-eval calibrate


FOREIGN_TEXTS = {
    "Chinese": "\u4eca\u5929\u4e0b\u5348\u7684\u4f1a\u8bae\u53d6\u6d88\u4e86\u3002",
    "Arabic": "\u0623\u0644\u063a\u062a \u0627\u0644\u0634\u0631\u0643\u0629.",
    "Russian": "\u0412\u0447\u0435\u0440\u0430 \u043c\u044b \u0433\u0443\u043b\u044f\u043b\u0438.",
    "Hindi": "\u092c\u093f\u0932\u094d\u0932\u0940 \u092c\u0948\u0920\u0940 \u0925\u0940\u0964",
    "Thai": "\u0e41\u0e21\u0e27\u0e19\u0e31\u0e48\u0e07\u0e2d\u0e22\u0e39\u0e48\u0e1a\u0e19\u0e1e\u0e23\u0e21",
    "Chinese with a name": "\u8bf7\u628a\u53d1\u7968\u53d1\u7ed9\u6211\u4eec\u7684\u4f1a\u8ba1 IBM",
}


READABLE_TEXTS = {
    "English": "The dog plays the guitar.",
    "emoji": "I love it \U0001f60d\U0001f389",
    "code": 'for (int i = 0; i < n; i++) { s[i] = "\u00fc"; }',
    "a quoted word": "The sign said \u4f1a\u8bae\u53d6\u6d88, which means that the meeting was cancelled.",
    "a name in Cyrillic": "He signed as \u0418\u0432\u0430\u043d, but nobody believed him.",
    "accents": "na\u00efve caf\u00e9 cr\u00e8me br\u00fbl\u00e9e",
    "unknown names": "Kowalczyk Szczepa\u0144ski",
    "numbers": "17.5 \u2013 42 \u20ac",
}


@pytest.mark.parametrize("model", [toy_model(), toy_passage_model()], ids=["words", "passages"])
def test_scripts_that_a_model_does_not_know_are_foreign_and_nothing_else(model) -> None:
    assert [name for name, text in FOREIGN_TEXTS.items() if not is_foreign(model, text)] == []
    assert [name for name, text in READABLE_TEXTS.items() if is_foreign(model, text)] == []


@pytest.mark.parametrize(
    ("tokenizer", "foreign"), [("wordpiece", FOREIGN_TEXTS), ("unigram", ["Hindi"]), ("bpe", []), ("slow", [])]
)
def test_an_encoder_knows_the_scripts_of_its_own_tokenizer(
    tmp_path: Path, tokenizer: str, foreign: Iterable[str]
) -> None:
    model = facets.load(f"sentence-transformers:{tiny_encoder(tmp_path / 'encoder', tokenizer=tokenizer)}")
    assert [name for name, text in FOREIGN_TEXTS.items() if is_foreign(model, text)] == list(foreign)
    assert [name for name, text in READABLE_TEXTS.items() if is_foreign(model, text)] == []


def test_no_task_says_anything_of_a_foreign_text() -> None:
    model, text = toy_model(), FOREIGN_TEXTS["Russian"]
    for ask, path in (
        (lambda: score_pairs(model, [("The dog plays.", text)]), "pairs[0].second"),
        (lambda: summarize(model, ["The dog plays.", text]), "documents[1]"),
        (lambda: summarize(model, [[text, text * 2]]), "documents[0]"),
        (lambda: summarize(model, ["The dog plays."], query=text), "query"),
        (lambda: suggest_topics(model, [text]), "texts[0]"),
    ):
        with pytest.raises(InvalidInputError, match="hardly a word") as caught:
            ask()
        assert (caught.value.rule, caught.value.field) == (FOREIGN, path)
