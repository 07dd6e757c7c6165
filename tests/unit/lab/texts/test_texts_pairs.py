"""``facets-eval`` on pairs of texts: reading, measures, the commands."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.texts import pairs
from facets_lab.texts.pairs import (
    PAIR_METHODS,
    correlations,
    precision_recall,
    read_labelled,
    read_phrase_choices,
    read_sts,
)
from toy_retrieval import write_lines
from toys import toy_model

from facets.errors import ConfigError, InvalidInputError
from facets.texts import fit_common_components

STS = [
    "5.0\tA man plays the guitar.\tThe man plays a guitar.",
    "3.5\tA dog plays.\tThe dog lifting weights",
    '0.2\tmusic "in the garage"\tdog',
    "1.0\tguitar music\ta man",
    "2.4\tthe weights\tA man lifting weights",
    "0\tqwxz vbnm\tweights in the garage",
]
PHRASES = ["1\tlifting weights\tmusic", "0\tthe dog\tguitar", "1\ta man\tman", "0\tqwxz dog\tvbnm"]
CHOICES = ["guitar music\tplays\tguitar\tmusic\tdog\tman\ta\tthe", "dog garage\tman\tdog\tgarage\ta\tin\tqwxz\tvbnm"]
read_phrase_pairs = partial(read_labelled, names=("label", "phrase", "word"), negative="0", positive="1")


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    model = toy_model()
    model.common_components = fit_common_components(model, [field for line in STS for field in line.split("\t")[1:]])
    model.save(tmp_path / "toy")
    return str(tmp_path / "toy")


def letters(texts: Iterator[str]) -> np.ndarray:
    return np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], dtype=np.float32)


def test_sts_keeps_quotes(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes("\r\n".join(STS).encode())
    data = read_sts(path)
    assert data.gold.tolist() == [5.0, 3.5, 0.2, 1.0, 2.4, 0.0]
    assert data.pairs[2] == ('music "in the garage"', "dog")


@pytest.mark.parametrize(
    ("read", "lines", "message"),
    [
        (read_sts, [STS[0], "3.0\tonly one"], "line 2: .*2 fields"),
        (read_sts, [STS[0], "3.0\ta\tb\tneutral"], "line 2: .*4 fields"),
        (read_sts, [STS[0], "nan\ta\tb"], "line 2: .*finite number"),
        (read_phrase_pairs, [PHRASES[0], "2\tdog\tcat"], "line 2: .*label 0 or 1, got '2'"),
        (read_phrase_pairs, [PHRASES[0]], "both labels"),
        (read_phrase_choices, [], "at least one line"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, read, lines: list[str], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInputError, match=message):
        read(write_lines(tmp_path / "bad.tsv", lines))
    with pytest.raises(ConfigError, match="cannot read"):
        read(tmp_path / "nowhere.tsv")


def test_correlations_over_all_and_over_the_lower_half() -> None:
    gold = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 5.0])
    scores = np.array([0.3, 0.2, 0.1, 0.5, 0.7, 0.9], dtype=np.float32)
    result = correlations(gold, scores)
    assert result["pearson"] == pytest.approx(np.corrcoef(scores, gold)[0, 1])
    assert result["spearman"] == pytest.approx(np.corrcoef([3, 2, 1, 4, 5, 6], [1, 2, 3, 4, 5.5, 5.5])[0, 1])
    assert (result["pearson_low"], result["spearman_low"]) == (pytest.approx(-1), pytest.approx(-1))  # median 3.5
    assert set(correlations(gold[:3], np.zeros(3)).values()) == {None}


def test_precision_recall_by_hand() -> None:
    # Thresholds from the top: P, R = (1, 1/2), (1/2, 1/2), (2/3, 1), (1/2, 1).
    result = precision_recall(np.array([True, False, True, False]), np.array([0.9, 0.8, 0.7, 0.1]))
    assert result["f1"] == pytest.approx(0.8)
    assert result["auc"] == pytest.approx(1 / 2 * 1 + 1 / 2 * (1 / 2 + 2 / 3) / 2)
    assert precision_recall(np.array([False, False]), np.array([0.1, 0.2])) == {"auc": None, "f1": None}


@pytest.mark.parametrize(
    ("command", "lines", "metrics"),
    [
        ("sts", STS, ["pearson", "spearman", "pearson_low", "spearman_low"]),
        ("phrase-pairs", PHRASES, ["auc", "f1"]),
        ("phrase-choice", CHOICES, ["accuracy_5", "accuracy_10"]),
    ],
)
def test_commands_print_one_object_with_models_and_baselines(
    tmp_path: Path,
    checkpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    lines: list[str],
    metrics: list[str],
) -> None:
    monkeypatch.setattr(pairs, "EMBEDDERS", {"letters": lambda: letters})
    monkeypatch.setattr(pairs, "BASELINE_MODELS", ())
    data = write_lines(tmp_path / "data.tsv", lines)
    options = ["--skip-wmd"] if command == "sts" else []
    assert main([command, str(data), "--model", checkpoint, "--baselines", "--bootstrap", "5", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["data"], report["rows"]) == (str(data), len(lines))
    assert list(report["models"]) == ["toy", "letters", *(["words"] if command != "sts" else [])]
    own = [str(name) for name in PAIR_METHODS if "wmd" not in name] if command == "sts" else ["codebook", "encoder"]
    assert list(report["models"]["toy"]) == own and list(report["models"]["letters"]) == ["cosine"]
    for values in report["models"]["toy"].values():
        assert list(values) == [m + end for m in metrics for end in ("", "_ci95_from", "_ci95_to")]
        assert all(-1 <= values[m] <= 1 for m in metrics if values[m] is not None)
