"""``facets-eval calibrate-search``: the fitted curves, the collections they are fitted on, the command."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from facets_lab.documents.calibration import ObservedHits, fit_curve
from facets_lab.documents.folders import read_folders
from facets_lab.documents.reader_data import written_examples
from facets_lab.evaluation.__main__ import main
from facets_lab.evaluation.statistics import expected_calibration_error
from toy_retrieval import write_beir, write_lines
from toys import toy_passage_model

from facets.documents import RelevanceCurve
from facets.documents.confidence import FEATURES
from facets.model import PassageModel
from facets.model.answer_reader import AnswerReader
from facets.model.shipped import find_model


def draw_hits(slope: float, num_hits: int = 4_000, seed: int = 0) -> ObservedHits:
    """Hits whose relevance depends on their cosine alone."""
    rng = np.random.default_rng(seed)
    features = np.zeros((num_hits, len(FEATURES)))
    features[:, 0] = rng.uniform(0, 1, num_hits)
    relevant = rng.uniform(0, 1, num_hits) < 1 / (1 + np.exp(-slope * (features[:, 0] - 0.5)))
    return ObservedHits(features, relevant, np.zeros(num_hits, dtype=np.int64))


def test_curve_finds_the_slope_that_made_the_hits() -> None:
    weights = fit_curve([draw_hits(8.0), draw_hits(8.0, seed=1)])
    assert set(weights) == {"intercept", "cosine"}  # a feature that is always 0 has no weight
    assert weights["cosine"] == pytest.approx(8.0, abs=0.8)
    new = draw_hits(8.0, seed=2)
    confidence = RelevanceCurve(revision="r", weights={"facets": weights}).confidence("facets", new.features)
    assert confidence is not None and expected_calibration_error(confidence, new.relevant) < 0.03


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    other = {"cat": ("", "Cats sleep all day."), "tea": ("", "Tea is a drink. It is hot.")}
    queries = {"q1": "sleep of cats", "q2": "hot tea", "q3": "day"}
    judged = {"q1": {"cat": 1}, "q2": {"tea": 1}, "q3": {"tea": 1}}
    first = write_beir(tmp_path / "first", judgements={"q1": {"dog": 2}, "q2": {"lift": 1}, "q3": {"song": 1}})
    return [str(first), str(write_beir(tmp_path / "second", documents=other, queries=queries, judgements=judged))]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    toy_passage_model().save(tmp_path / "model")
    return tmp_path / "model"


def test_command_stores_curves_with_the_model_unless_it_is_a_dry_run(
    folders: list[str], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["calibrate-search", *folders, "--model", str(model), "--source", "toys"]
    assert main([*arguments, "--dry-run"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["file"] is None and not (model / "relevance.json").exists()
    assert set(report["modes"]) == {"hybrid", "facets", "lexical"}
    for of_mode in report["modes"].values():
        assert set(of_mode["left_out"]) == {"first", "second"}
        assert all(0 <= measured["right_share"] <= 1 for measured in of_mode["left_out"].values())
    assert "cosine" not in report["modes"]["lexical"]["weights"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(model / "relevance.json")
    curve = RelevanceCurve.read(model, PassageModel.from_folder(model).revision)
    assert curve is not None and curve.source == "toys" and set(curve.weights) == {"hybrid", "facets", "lexical"}


def test_command_needs_two_sets_and_two_kinds(
    tmp_path: Path, folders: list[str], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--model", str(model), "--dry-run"]
    assert main(["calibrate-search", folders[0], *options]) == 1
    assert "two or more" in capsys.readouterr().err
    assert main(["calibrate-search", *(f"notes={folder}" for folder in folders), *options]) == 1
    assert "two or more kinds, got only notes" in capsys.readouterr().err
    pairs = [("dog plays", "A dog plays the guitar."), ("man plays", "The man plays with weights.")]
    lines = [json.dumps({"query": query, "positive": text}) for query, text in pairs]
    file = write_lines(tmp_path / "notes.jsonl", lines)
    assert main(["calibrate-search", folders[1], str(file), *options]) == 0
    assert set(json.loads(capsys.readouterr().out)["modes"]["hybrid"]["left_out"]) == {"second", "notes"}


@pytest.mark.slow
def test_reader_gets_weights_for_the_confidence_of_hits(
    tmp_path: Path, folders: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [example for example in written_examples("dev") if len(example.sentences) < 8][:40]
    monkeypatch.setattr("facets_lab.documents.calibration.written_examples", lambda split: few)
    home = next(read_folders("dev"))
    home = home.model_copy(update={"questions": [home.questions[0], home.questions[-1]]})
    monkeypatch.setattr("facets_lab.documents.calibration.read_folders", lambda split, path: [home])
    folder = shutil.copytree(find_model("facets-reader-en"), tmp_path / "reader")
    before = AnswerReader.shared(folder)
    assert main(["calibrate-reader", *folders, "--reader", str(folder)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report["left_out"]) == {"first", "second", "written", "folders", "references"}
    after = AnswerReader.shared(folder)
    assert after.config.hits.to_dict() == report["weights"] != before.config.hits.to_dict()
    assert after.config.replaced(hits=before.config.hits) == before.config
    assert after.hit_confidence(0.5, 3.0) >= after.hit_confidence(0.5, -3.0)
