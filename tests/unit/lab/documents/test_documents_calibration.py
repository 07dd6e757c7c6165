"""Curves of confidence find what tells right first hits from others, and are measured on folders they have not seen."""

import json
from pathlib import Path

import numpy as np
import pytest
from facets_lab.documents.beir import read_beir, read_docstrings
from facets_lab.documents.calibration import KINDS, FirstHits, fit_curve, parts
from facets_lab.evaluation.__main__ import main
from facets_lab.evaluation.statistics import expected_calibration_error
from toy_retrieval import write_beir, write_lines
from toys import toy_passage_model

from facets.documents import RelevanceCurve
from facets.documents.confidence import FEATURES
from facets.errors import ConfigError
from facets.model import PassageModel


def drawn_hits(slope: float, num: int = 4_000, seed: int = 0) -> FirstHits:
    """Hits whose relevance goes by their cosine alone."""
    rng = np.random.default_rng(seed)
    features = np.zeros((num, len(FEATURES)))
    features[:, 0] = rng.uniform(0, 1, num)
    relevant = rng.uniform(0, 1, num) < 1 / (1 + np.exp(-slope * (features[:, 0] - 0.5)))
    return FirstHits(features, relevant, np.zeros(num, dtype=np.int64))


def test_a_curve_finds_the_slope_that_made_the_hits() -> None:
    weights = fit_curve([drawn_hits(8.0), drawn_hits(8.0, seed=1)])
    assert set(weights) == {"intercept", "cosine"}, "what is always 0 has no weight"
    assert weights["cosine"] == pytest.approx(8.0, abs=0.8)
    curve = RelevanceCurve(revision="r", weights={"facets": weights})
    new = drawn_hits(8.0, seed=2)
    given = curve.confidence("facets", new.features)
    assert given is not None
    assert expected_calibration_error(given, new.relevant) < 0.03


def test_how_fast_it_falls_is_fitted_behind_the_first_and_never_rises() -> None:
    first = drawn_hits(8.0)
    rng = np.random.default_rng(3)
    for slope, expected in ((-6.0, -6.0), (4.0, 0.0)):
        later = drawn_hits(8.0, seed=4).features
        later[:, FEATURES.index("behind")] = behind = rng.uniform(0, 0.5, len(later))
        logits = 8.0 * (later[:, 0] - 0.5) + slope * behind
        relevant = rng.uniform(0, 1, len(later)) < 1 / (1 + np.exp(-logits))
        weights = fit_curve([first, FirstHits(later, relevant, np.full(len(later), KINDS.index("behind")))])
        assert weights["behind"] == pytest.approx(expected, abs=1.2) and weights["behind"] <= 0


def test_docstrings_ask_with_their_summary_for_what_stands_below() -> None:
    data = read_docstrings(["json"])
    assert len(data.documents) == len(data.queries) >= 2
    for query, document in zip(data.queries, data.documents, strict=True):
        assert query not in document and len(document) > 150
    with pytest.raises(ConfigError, match="nothing_of_this_name"):
        read_docstrings(["nothing_of_this_name"])


def test_folders_of_one_kind_are_left_out_together(
    tmp_path: Path, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    toy_passage_model().save(model)
    both = [f"notes={folder}" for folder in folders]
    assert main(["calibrate-search", *both, "--model", str(model), "--dry-run"]) == 1
    assert "two kinds or more, got notes alone" in capsys.readouterr().err


def test_every_folder_and_every_kind_weighs_the_same() -> None:
    few, many = drawn_hits(8.0, num=500), drawn_hits(-8.0, num=5_000, seed=1)
    assert abs(fit_curve([few, many])["cosine"]) < 1.0
    asked, removed = drawn_hits(8.0, num=500), drawn_hits(8.0, num=5_000, seed=1)
    hits = FirstHits(
        np.concatenate([asked.features, removed.features]),
        np.concatenate([asked.relevant, np.zeros(5_000, dtype=np.bool_)]),
        np.repeat([0, 1], [500, 5_000]),
    )
    curve = RelevanceCurve(revision="r", weights={"facets": fit_curve([hits])})
    given = curve.confidence("facets", hits.features)
    assert given is not None
    assert given[hits.relevant].mean() > 0.4, "many that were removed do not drown those that were asked"


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    other = {"cat": ("", "Cats sleep all day."), "tea": ("", "Tea is a drink. It is hot.")}
    queries = {"q1": "sleep of cats", "q2": "hot tea", "q3": "day"}
    judged = {"q1": {"cat": 1}, "q2": {"tea": 1}, "q3": {"tea": 1}}
    first = write_beir(tmp_path / "first", judgements={"q1": {"dog": 2}, "q2": {"lift": 1}, "q3": {"song": 1}})
    return [str(first), str(write_beir(tmp_path / "second", documents=other, queries=queries, judgements=judged))]


def test_curves_are_stored_with_the_model_unless_it_is_a_dry_run(
    tmp_path: Path, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    toy_passage_model().save(model)
    arguments = ["calibrate-search", *folders, "--model", str(model), "--source", "toys"]
    assert main([*arguments, "--dry-run"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["file"] is None
    assert not (model / "relevance.json").exists()
    assert set(report["modes"]) == {"hybrid", "facets", "lexical"}
    for of_mode in report["modes"].values():
        assert set(of_mode["left_out"]) == {"first", "second"}
        assert all(0 <= measured["right_share"] <= 1 for measured in of_mode["left_out"].values())
    assert "cosine" not in report["modes"]["lexical"]["weights"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(model / "relevance.json")
    curve = RelevanceCurve.read(model, PassageModel.from_folder(model).revision)
    assert curve is not None
    assert curve.source == "toys"
    assert set(curve.weights) == {"hybrid", "facets", "lexical"}


def test_a_folder_is_seen_whole_and_in_small_parts_where_every_query_has_an_answer(tmp_path: Path) -> None:
    documents = {f"d{row}": ("", f"Text {row}.") for row in range(250)}
    judged = {f"q{row}": {f"d{row}": 1, f"d{row + 125}": 2} for row in range(125)}
    data = read_beir(
        write_beir(tmp_path, documents=documents, queries={key: f"query {key}" for key in judged}, judgements=judged)
    )
    whole, *small = parts(data, seed=0)
    assert whole == data
    assert [(len(part.documents), len(part.queries)) for part in small] == [(150, 100), (40, 20), (8, 4)]
    for part in small:
        for key, grades in part.judgements.items():
            assert grades == {f"d{int(key[1:]) + 125}": 2}, "the best of its answers, and no other one is left"
            assert set(grades) <= set(part.document_ids)


def test_files_of_pairs_are_folders_too(tmp_path: Path, folders: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model"
    toy_passage_model().save(model)
    pairs = [("dog plays", "A dog plays the guitar."), ("man plays", "The man plays with weights.")]
    lines = [json.dumps({"query": query, "positive": text}) for query, text in pairs]
    file = write_lines(tmp_path / "notes.jsonl", lines)
    assert main(["calibrate-search", folders[1], str(file), "--model", str(model), "--dry-run"]) == 0
    assert set(json.loads(capsys.readouterr().out)["modes"]["hybrid"]["left_out"]) == {"second", "notes"}


def test_one_folder_is_too_few(tmp_path: Path, folders: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate-search", folders[0]]) == 1
    assert "two or more" in capsys.readouterr().err
