"""Phrases: reading, precision and recall, choices, the commands' JSON."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.texts.evaluation import (
    choice_accuracy,
    evaluate_phrase_choice,
    evaluate_phrase_pairs,
    precision_recall,
    read_phrase_choices,
    read_phrase_pairs,
)
from facets_lab.texts.systems import EmbeddingPairs, FacetPairs
from numpy.typing import NDArray
from toys import toy_model

from facets.errors import InvalidInputError

PAIRS = ["1\tlifting weights\tmusic", "0\tthe dog\tguitar", "1\ta man\tman", "0\tqwxz dog\tvbnm"]
CHOICES = [
    "guitar music\tplays\tguitar\tmusic\tdog\tman\tgarage\tweights",
    "dog garage\tman\tdog\tgarage\tplays\tmusic\tqwxz\tthe",
]


def _write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    toy_model().save(tmp_path / "toy")
    return str(tmp_path / "toy")


class _Table:
    """Scores from a table; 0 for any other pair."""

    name = "table"

    def __init__(self, table: dict[tuple[str, str], float]) -> None:
        self._table = table

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, NDArray[np.float32]]]:
        yield "looked_up", np.array([self._table.get(pair, 0.0) for pair in pairs], dtype=np.float32)


def test_read_pairs_and_choices(tmp_path: Path) -> None:
    pairs = read_phrase_pairs(_write(tmp_path / "pairs.tsv", PAIRS))
    assert pairs.is_alike.tolist() == [True, False, True, False] and pairs.pairs[1] == ("the dog", "guitar")
    choices = read_phrase_choices(_write(tmp_path / "choices.tsv", CHOICES))
    assert choices.phrases[0] == ("guitar", "music")
    assert choices.candidates[0] == ("plays", "dog", "man", "garage", "weights")


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("1\tonly", "label<TAB>phrase<TAB>word, got 2 fields"),
        ("2\ta man\tman", "label 0 or 1, got '2'"),
        ("yes\ta man\tman", "label 0 or 1, got 'yes'"),
        ("1\t \tman", "a phrase, got an empty"),
        ("1\ta man\t", "a word, got an empty"),
    ],
)
def test_bad_pairs_are_named_by_file_and_line(tmp_path: Path, bad: str, what: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"bad\.tsv, line 3: .*{what}"):
        read_phrase_pairs(_write(tmp_path / "bad.tsv", [*PAIRS[:2], bad]))


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("dog garage\tman", "got 2 fields"),
        ("dog garage\tman\tdog\tguitar\ta\tb\tc\td", "own two words, got 'dog', 'guitar'"),
        ("dog garage\tman\tdog\tgarage\ta\tman\tc\td", "distractors other than the answer"),
        ("dog garage\tman\tdog\tgarage\ta\tb\t\td", "a distractor 3"),
    ],
)
def test_bad_choices_are_named_by_file_and_line(tmp_path: Path, bad: str, what: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"bad\.tsv, line 2: .*{what}"):
        read_phrase_choices(_write(tmp_path / "bad.tsv", [CHOICES[0], bad]))


def test_files_without_anything_to_measure_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="both labels"):
        read_phrase_pairs(_write(tmp_path / "pairs.tsv", [PAIRS[0]]))
    with pytest.raises(InvalidInputError, match="at least one line"):
        read_phrase_choices(_write(tmp_path / "choices.tsv", []))


def test_precision_recall_by_hand() -> None:
    # Thresholds from the top: P, R = (1, 1/2), (1/2, 1/2), (2/3, 1), (1/2, 1).
    result = precision_recall(np.array([0.9, 0.8, 0.7, 0.1]), np.array([True, False, True, False]))
    assert result["f1"] == pytest.approx(0.8)
    assert result["auc"] == pytest.approx(1 / 2 * 1 + 1 / 2 * (1 / 2 + 2 / 3) / 2)


def test_undefined_without_alike_pairs() -> None:
    assert precision_recall(np.array([0.1, 0.2]), np.array([False, False])) == {"auc": None, "f1": None}


def test_tied_choices_count_as_guesses() -> None:
    scores = np.array([[0.5, 0.5, 0.5, 0.5], [0.5, 0.6, 0.6, 0.1], [0.7, 0.6, 0.6, 0.1]])
    assert choice_accuracy(scores).tolist() == [0.25, 0.0, 1.0]


def test_ten_choices_add_the_reversed_phrase(tmp_path: Path) -> None:
    data = read_phrase_choices(_write(tmp_path / "choices.tsv", CHOICES))
    right_way = _Table({("guitar music", "plays"): 1.0, ("dog garage", "man"): 1.0})
    assert evaluate_phrase_choice(right_way, data) == {"looked_up": {"accuracy_5": 1.0, "accuracy_10": 1.0}}
    one_reversed = _Table({("guitar music", "plays"): 1.0, ("music guitar", "dog"): 2.0, ("dog garage", "qwxz"): 1.0})
    assert evaluate_phrase_choice(one_reversed, data) == {"looked_up": {"accuracy_5": 0.5, "accuracy_10": 0.0}}


def test_order_free_scores_gain_half_of_ten_choices(tmp_path: Path) -> None:
    data = read_phrase_choices(_write(tmp_path / "choices.tsv", CHOICES))
    metrics = evaluate_phrase_choice(FacetPairs("toy", toy_model(), ("average",)), data)["average"]
    assert metrics["accuracy_10"] == pytest.approx(metrics["accuracy_5"] / 2)


def test_embedding_pairs_score_by_cosine() -> None:
    vectors = {"x": [3.0, 0.0], "y": [0.0, 2.0], "z": [1.0, 1.0], "nothing": [0.0, 0.0]}
    system = EmbeddingPairs("toy", lambda texts: np.array([vectors[text] for text in texts], dtype=np.float32))
    [(method, scores)] = system.scores([("x", "y"), ("z", "x"), ("y", "y"), ("x", "nothing")])
    assert method == "cosine" and scores.tolist() == pytest.approx([0.0, 0.5**0.5, 1.0, 0.0])


def test_encoder_is_the_cosine_of_averaged_states(tmp_path: Path) -> None:
    data = read_phrase_pairs(_write(tmp_path / "pairs.tsv", PAIRS))
    model = toy_model()
    system = FacetPairs("toy", model, ("encoder",))
    scores = dict(system.scores(data.pairs))["encoder"]
    states = model.embed([text for text, _ in data.pairs] + [word for _, word in data.pairs])
    assert states.shape == (8, 32)
    units = states / np.linalg.norm(states, axis=1, keepdims=True)
    assert scores == pytest.approx((units[:4] * units[4:]).sum(axis=1), abs=1e-5)
    assert evaluate_phrase_pairs(system, data) == {"encoder": precision_recall(scores, data.is_alike)}


@pytest.mark.parametrize(
    ("command", "lines", "metrics"),
    [("phrase-pairs", PAIRS, ["auc", "f1"]), ("phrase-choice", CHOICES, ["accuracy_5", "accuracy_10"])],
)
def test_commands_print_one_object_of_the_agreed_form(
    tmp_path: Path,
    checkpoint: str,
    capsys: pytest.CaptureFixture[str],
    command: str,
    lines: list[str],
    metrics: list[str],
) -> None:
    data = _write(tmp_path / "data.tsv", lines)
    assert main([command, str(data), "--model", checkpoint, "--bootstrap", "20"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["data"] == str(data) and report["rows"] == len(lines)
    assert list(report["models"]) == ["toy"] and list(report["models"]["toy"]) == ["codebook", "encoder"]
    for values in report["models"]["toy"].values():
        assert list(values) == [m + end for m in metrics for end in ("", "_ci95_from", "_ci95_to")]
        assert all(0 <= value <= 1 for value in values.values())
        assert all(values[f"{m}_ci95_from"] <= values[f"{m}_ci95_to"] for m in metrics)


def test_bad_lines_end_the_command_with_1(tmp_path: Path, checkpoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = _write(tmp_path / "data.tsv", [PAIRS[0], "1\tno word"])
    assert main(["phrase-pairs", str(data), "--model", checkpoint]) == 1
    output = capsys.readouterr()
    assert output.out == "" and "data.tsv, line 2" in output.err
