"""Experiments with output layers: items of users, text, linearly dependent words."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from facets_lab.heads.__main__ import main
from facets_lab.heads.language_models import read_corpus
from facets_lab.heads.networks import NetworkTrainingConfig
from facets_lab.heads.sequences import Sequences, ranking_figures

from facets.errors import ConfigError


def some_users(count: int = 60, num_items: int = 30) -> list[str]:
    """Users who take items in the order of the shelf, from different starts."""
    random = np.random.default_rng(0)
    starts = random.integers(0, num_items, count)
    return [f"u{n}\t" + " ".join(f"i{(start + k) % num_items}" for k in range(12)) for n, start in enumerate(starts)]


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    path = tmp_path / "shelf.tsv"
    path.write_text("\n".join(some_users()) + "\n", encoding="utf-8")
    return path


def config(**values: object) -> NetworkTrainingConfig:
    fields = {"name": "toy", "num_steps": 30, "batch_size": 8, "dim": 16, "num_threads": 1, "validate_every": 30}
    return NetworkTrainingConfig(**fields | values)


def test_ranking_figures_with_and_without_seen_items() -> None:
    data = Sequences([np.array([1, 2, 3]), np.array([4, 5, 5])], 8)
    scores = np.array([[0, 9, 8, 7, 1, 1, 1, 1], [0, 1, 1, 1, 9, 8, 1, 1]], np.float32)
    figures = ranking_figures(data, lambda _: scores)
    assert figures["ndcg@10"] == pytest.approx(100 * (1 / np.log2(4) + 1 / np.log2(3)) / 2)
    assert figures["ndcg@10_unseen"] == pytest.approx(100.0)  # the item asked for again stays in
    expected = [np.log(np.exp(7) + 4 * np.e) - 7, np.log(np.exp(8) + 5 * np.e) - 8]  # of what is not left out
    assert figures["loss_unseen"] == pytest.approx(np.mean(expected), abs=1e-5)
    assert figures["loss"] > figures["loss_unseen"]
    level = ranking_figures(data, lambda users: np.zeros((len(users), 8), np.float32))
    assert level["ndcg@10"] == pytest.approx(100 / np.log2(5))  # behind half of the six others


def test_items_command_learns_and_loads_finished_runs(
    shelf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["items", str(shelf), "--head", "softmax", "--head", "c", "--work-dir", str(tmp_path / "runs")]
    call += ["--seeds", "1", "--steps", "60", "--dim", "16", "--threads", "1"]
    reports = []
    for _ in range(2):
        assert main(call) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1]
    layers = reports[0]["layers"]
    assert layers["c"]["ndcg@10"]["mean"] > 40
    assert layers["softmax"]["ndcg@10_unseen"]["mean"] > 60
    assert set(layers["softmax"]["ndcg@10"]) == {"mean", "ci95", "runs"}
    assert reports[0]["baselines"]["after-the-last"]["ndcg@10"] > 90


def test_a_language_model_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n\n".join(
        f"# Page {n}\n" + " ".join(f"the cat number {k % 7} sat ." for k in range(60)) for n in range(22)
    )
    path = tmp_path / "corpus.txt.xz"
    path.write_bytes(lzma.compress((text + "\n").encode()))
    call = ["language", str(path), "--head", "softmax", "--head", "mos", "--work-dir", str(tmp_path / "runs")]
    call += ["--seeds", "1", "--steps", "30", "--dim", "16", "--num-words", "20"]
    assert main([*call, "--threads", "1"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert layers["softmax"]["perplexity"]["mean"] < 12
    assert layers["mos"]["num_parameters"]["mean"] > layers["softmax"]["num_parameters"]["mean"]
    with pytest.raises(ConfigError, match="to learn from"):
        read_corpus([], num_tokens=100, num_words=20, length=64)
