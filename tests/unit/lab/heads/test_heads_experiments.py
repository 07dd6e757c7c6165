"""Experiments with output layers: items of users, text, linearly dependent words."""

import itertools
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.heads.__main__ import main
from facets_lab.heads.dependency import ambiguous_contexts, dependency_ratios, measure_templates, read_analogies
from facets_lab.heads.language_models import read_corpus
from facets_lab.heads.networks import NetworkTrainingConfig, SequenceTrainer
from facets_lab.heads.sequences import (
    Sequences,
    learned_and_held_out,
    ranking_figures,
    read_sequences,
    windows,
)

from facets.errors import ConfigError, InvalidInputError
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary


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


def test_users_with_fewer_than_three_items_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    path.write_text("a\tx y\nb\tx y z\nc\ty y y\n", encoding="utf-8")
    data = read_sequences(path)
    assert [items.tolist() for items in data.users] == [[1, 2, 3], [2, 2, 2]]
    assert data.num_items == 4
    assert data.share_repeated == 0.5
    path.write_text("a\tx y\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="three items or more"):
        read_sequences(path)
    path.write_text("a x y z\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="line 1"):
        read_sequences(path)


def test_windows_hold_every_step_once() -> None:
    items = np.arange(1, 24)
    pieces = windows([items], 5)
    steps = {(a, b) for row in pieces.tolist() for a, b in itertools.pairwise(row) if b}
    assert steps == set(zip(items.tolist(), items[1:].tolist(), strict=False))
    assert sum(int((row[1:] != 0).sum()) for row in pieces) == len(items) - 1


def test_held_out_steps_are_not_learned(shelf: Path, tmp_path: Path) -> None:
    """Its loss is that of each user's last item but one alone, which no learned sequence holds."""
    data = read_sequences(shelf)
    learned, held_out = learned_and_held_out(data, 5)
    assert not {tuple(row[row > 0].tolist()) for row in held_out} - {(int(items[-2]),) for items in data.users}
    assert int((held_out > 0).sum()) == len(data.users)
    assert int((learned[:, 1:] > 0).sum()) == sum(len(items) - 3 for items in data.users)
    trainer = SequenceTrainer(config(max_length=5), learned, held_out, num_words=data.num_items)
    trainer.network.eval()
    inputs = torch.from_numpy(np.abs(held_out[:, :-1]))
    expected = [
        -float(trainer.network(row[None])[0, -1, target].detach())
        for row, target in zip(inputs, held_out[:, -1].tolist(), strict=True)
    ]
    assert trainer.mean_loss(held_out) == pytest.approx(np.mean(expected), rel=1e-2)


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
    call += ["--seeds", "2", "--steps", "150", "--dim", "16", "--threads", "1"]
    reports = []
    for _ in range(2):
        assert main(call) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1]
    layers = reports[0]["layers"]
    assert layers["c"]["ndcg@10"]["mean"] > 80
    assert layers["softmax"]["ndcg@10_unseen"]["mean"] > 80
    assert set(layers["softmax"]["ndcg@10"]) == {"mean", "ci95", "runs"}
    assert "unreachable" in layers["softmax"]
    assert reports[0]["baselines"]["after-the-last"]["ndcg@10"] > 90


def test_a_language_model_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n\n".join(
        f"# Page {n}\n" + " ".join(f"the cat number {k % 7} sat ." for k in range(60)) for n in range(22)
    )
    path = tmp_path / "corpus.txt.xz"
    path.write_bytes(lzma.compress((text + "\n").encode()))
    call = ["language", str(path), "--head", "softmax", "--head", "mos", "--work-dir", str(tmp_path / "runs")]
    call += ["--seeds", "1", "--steps", "60", "--dim", "16", "--num-words", "20", "--rank-contexts", "100"]
    assert main([*call, "--threads", "1"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert layers["softmax"]["perplexity"]["mean"] < 6
    assert layers["softmax"]["rank_0.0001"]["mean"] <= 17  # dimensions and the constant
    assert layers["mos"]["num_parameters"]["mean"] > layers["softmax"]["num_parameters"]["mean"]
    with pytest.raises(ConfigError, match="to learn from"):
        read_corpus([], num_tokens=100, num_words=20, length=64)


def parallelograms(count: int = 24, dim: int = 12) -> WordVectors:
    """Words in pairs that differ by one direction, so that any two pairs lie in one plane with it."""
    random = np.random.default_rng(2)
    bases = random.standard_normal((count, dim))
    vectors = np.concatenate((bases, bases + 0.5 * np.eye(dim)[0]))
    words = [f"m{n}" for n in range(count)] + [f"f{n}" for n in range(count)]
    return WordVectors(Vocabulary(words, np.arange(len(words), 0, -1)), vectors)


def test_words_of_analogies_are_more_dependent(tmp_path: Path) -> None:
    words = parallelograms()
    path = tmp_path / "analogies.txt"
    lines = [f"m{a} f{a} m{b} f{b}" for a in range(24) for b in range(24) if a != b]
    path.write_text(": family\n" + "\n".join(lines) + "\nm0 f0 m1 nowhere\n: gram1\nm1 f1 m2 f2\n", encoding="utf-8")
    rows = read_analogies(path, words)
    assert len(rows) == len(lines)
    assert dependency_ratios(words, rows, sizes=(2, 4))["analogies"]["4"] < 0.3
    path.write_text(": family\nx y z\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="four known words"):
        read_analogies(path, words)


def test_held_out_pairs_are_never_learned(tmp_path: Path) -> None:
    words = parallelograms()
    rows = np.array([[a, a + 24, b, b + 24] for a in range(24) for b in range(24) if a != b])
    contexts = ambiguous_contexts(words, rows, kind="diagonal", num_contexts=500)

    def pairs(sequences: np.ndarray) -> set[frozenset[int]]:
        return {frozenset(np.abs(row[row != 0]).tolist()) for row in sequences}

    assert not pairs(contexts.learned) & pairs(contexts.held_out)
    figures = measure_templates(
        contexts, config(dim=12, max_length=contexts.learned.shape[1], num_steps=40, head="mos"), tmp_path / "run"
    )
    assert 1.0 < figures["perplexity"] < len(contexts.vectors)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--head", "soft"], "unknown layer 'soft'"),
        (["--head", "clr"], "reranker of 100 words needs a larger vocabulary than 30"),
        (["--dim", "15"], "multiple of num_attention_heads, got 15"),
    ],
)
def test_wrong_settings_are_one_line(
    arguments: list[str], expected: str, shelf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["items", str(shelf), "--work-dir", str(tmp_path / "runs"), *arguments]) == 1
    error = capsys.readouterr().err
    assert expected in error
    assert "Traceback" not in error
