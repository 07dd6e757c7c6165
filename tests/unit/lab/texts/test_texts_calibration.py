"""Calibration: the fitted curve against a slow reference, and the command."""

import json
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.texts.pairs import fit_curve
from numpy.typing import NDArray
from toys import toy_model

from facets.model import FacetModel, load
from facets.texts import fit_common_components, score_pairs

pytest.importorskip("sklearn", reason="the extra 'train' is not installed")
SENTENCES = ["a man plays the guitar", "the man lifting weights", "dog music", "qwxz vbnm", "the garage"]


def pooled(gold_B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Isotonic regression by definition: the max over starts of the min over ends of the means between."""
    means = [[gold_B[i : j + 1].mean() if j >= i else np.nan for j in range(len(gold_B))] for i in range(len(gold_B))]
    return np.array(
        [max(min(means[i][j] for j in range(b, len(gold_B))) for i in range(b + 1)) for b in range(len(gold_B))]
    )


def noisy(num_pairs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(3)
    scores = rng.uniform(-1, 0.9, num_pairs)
    return scores, np.clip(0.5 + 0.4 * scores + rng.normal(scale=0.2, size=num_pairs), 0, 1)


def test_curve_is_the_least_squares_one_of_the_bins_that_never_falls() -> None:
    scores, gold = noisy(640)
    curve = fit_curve(scores, gold, highest=1.0)
    order = np.argsort(scores)
    np.testing.assert_allclose(curve[0, :-1], scores[order].reshape(32, 20).mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(curve[1, :-1], pooled(gold[order].reshape(32, 20).mean(axis=1)), atol=1e-5)
    assert curve[:, -1].tolist() == [1.0, 1.0]  # a text with itself
    assert (np.diff(curve[0]) > 0).all() and (np.diff(curve[1]) >= 0).all()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    model = toy_model()
    model.common_components = fit_common_components(model, SENTENCES)
    model.save(tmp_path / "toy")
    return tmp_path / "toy"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    lines = [f"{i % 6}\t{SENTENCES[i % 5]}\t{SENTENCES[i % 4]}" for i in range(60)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "pairs.tsv"


def test_command_stores_curves_that_the_library_uses(
    checkpoint: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["calibrate-similarity", str(data), "--test", str(data), "--model", str(checkpoint), "--source", "toys"])
        == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 60
    assert set(report["models"]["toy"]["sif+attention"]) == {"mae", "mae_of_mean"}
    assert json.loads((checkpoint / "calibration.json").read_text())["source"] == "toys"
    scored = score_pairs(
        load(checkpoint, FacetModel), [("a man", "a man"), ("qwxz", "dog")], "sif", attention=True, calibrated=True
    )
    assert scored.calibrated is not None and scored.calibrated[0] == pytest.approx(1.0)


def test_scores_off_the_scale_are_refused(checkpoint: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.write_text("7.0\ta\tb\n", encoding="utf-8")
    assert main(["calibrate-similarity", str(data), "--model", str(checkpoint)]) == 1
    assert "scores must be in [0, 5], got 7 to 7" in capsys.readouterr().err
