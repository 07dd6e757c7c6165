import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.relations.evaluation import PatternMethod, best_threshold, evaluate_relations, pair_scores, read_pairs
from relation_toys import make_toy_relation_checkpoint
from toy_retrieval import write_lines

from facets.errors import InvalidInputError

PAIRS = [
    "a\tb\t$ARG1 was born in $ARG2\t1",
    "a\tb\t$ARG1 , a native of $ARG2\t1",
    "a\tb\tkb:birthPlace\t1",
    "c\td\t$ARG1 wed $ARG2\t1",
    "c\td\tkb:spouse\t1",
    "e\tf\t$ARG1 wed $ARG2\t1",
    "g\th\tkb:spouse\t1",
    "i\tj\t$ARG1 works for $ARG2\t2",
    "i\tj\tkb:employer\t1",
    "i\tj\tkb:unheardOf\t1",
]
ENTAILMENT = [
    ">\t$ARG1 was born in $ARG2\t$ARG1 grew up in $ARG2\t10\t20",
    "<\t$ARG1 wed $ARG2\t$ARG1 is married to $ARG2\t10\t20",
    ":\t$ARG1 works for $ARG2\t$ARG2 hired $ARG1\t10\t20",
    "N\t$ARG1 works for $ARG2\t$ARG1 wed $ARG2\t10\t2",
]


class Table:
    """Scores that were written down."""

    name = "table"
    meanings: ClassVar[dict[str, tuple[str, bool]]] = {}
    symmetric: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, relations: Sequence[str], scores: list[list[float]], threshold: float | None = None) -> None:
        self.relations = relations
        self.scores = np.array(scores, dtype=np.float32)
        self._threshold = None if threshold is None else np.full(len(relations), threshold, dtype=np.float32)

    def methods(self, patterns: Sequence[str]) -> dict[str, PatternMethod]:
        return {"m": PatternMethod(self.scores, self._threshold)}


def test_pairs_need_a_pattern_and_a_relation(tmp_path: Path) -> None:
    data = read_pairs(write_lines(tmp_path / "pairs.tsv", PAIRS))
    assert data.num_rows == 10
    assert data.relations == [("birthPlace",), ("spouse",), ("employer", "unheardOf")]
    assert data.patterns[data.members[data.offsets[1]]] == "$ARG1 wed $ARG2"


def test_a_pair_scores_by_its_best_pattern_and_nan_is_last(tmp_path: Path) -> None:
    data = read_pairs(write_lines(tmp_path / "pairs.tsv", PAIRS))
    scores = np.array([[0.1, np.nan], [0.4, np.nan], [0.2, 0.5], [np.nan, 0.3]], dtype=np.float32)
    found = pair_scores(data, scores)
    assert found[0].tolist() == [pytest.approx(0.4), -np.inf]
    assert found[2].tolist() == [-np.inf, pytest.approx(0.3)]


def test_perfect_scores_are_perfect_but_for_unknown_relations(tmp_path: Path) -> None:
    data = read_pairs(write_lines(tmp_path / "pairs.tsv", PAIRS))
    table = Table(
        ["birthPlace", "spouse", "employer"],
        [[0.9, 0.1, 0.1], [0.8, 0.2, 0.1], [0.0, 0.9, 0.0], [0.1, 0.0, 0.9]],
        threshold=0.5,
    )
    metrics = evaluate_relations(table, data)["m"]
    assert metrics["map"] == pytest.approx(1.0)
    # Three found, one of a relation that the system does not know.
    assert metrics["micro_f1"] == pytest.approx(2 * 3 / (3 + 4))
    assert evaluate_relations(Table(table.relations, table.scores.tolist()), data)["m"] == metrics


def test_intervals_surround_the_figure(tmp_path: Path) -> None:
    data = read_pairs(write_lines(tmp_path / "pairs.tsv", PAIRS))
    table = Table(["birthPlace", "spouse", "employer"], np.random.default_rng(1).random((4, 3)).tolist())
    metrics = evaluate_relations(table, data, num_resamples=20)["m"]
    assert metrics["map_ci95_from"] <= metrics["map_ci95_to"]  # type: ignore[operator]


def test_best_threshold_keeps_ties_together() -> None:
    scores = np.array([0.9, 0.5, 0.5, 0.1], dtype=np.float32)
    assert best_threshold(scores, np.array([True, True, False, False])) == pytest.approx(0.5)
    assert best_threshold(scores, np.array([True, False, False, False])) == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*PAIRS, "a\tb\tc"], r"line 11: expected entity<TAB>other entity"),
        ([*PAIRS, "a\tb\tc\tx"], r"line 11"),
        ([PAIRS[0]], "must have a pair with a pattern and a relation"),
    ],
)
def test_bad_pair_files_are_reported(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_pairs(write_lines(tmp_path / "pairs.tsv", lines))


def test_commands_calibrate_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = make_toy_relation_checkpoint(tmp_path / "toy", num_steps=60)
    pairs, entailment = write_lines(tmp_path / "pairs.tsv", PAIRS), write_lines(tmp_path / "entailment.tsv", ENTAILMENT)
    before = (model / "relations.json").read_text()
    arguments = ["fit-confidence", str(pairs), "--model", str(model)]
    assert main([*arguments, "--dry-run"]) == 0
    assert (model / "relations.json").read_text() == before
    assert main(arguments) == 0
    between = (model / "relations.json").read_text()
    assert between != before
    arguments = ["fit-entailment", str(entailment), "--model", str(model)]
    assert main([*arguments, "--dry-run"]) == 0
    assert (model / "relations.json").read_text() == between
    assert main(arguments) == 0
    assert (model / "relations.json").read_text() != between
    capsys.readouterr()
    assert main(["relations", str(pairs), "--model", str(model)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 10
    assert set(report["models"]["toy-relations"]) == {
        "symmetric",
        "asymmetric",
        "universal_schema",
        "symmetric+universal_schema",
        "asymmetric+universal_schema",
    }
    assert main(["entailment", str(entailment), "--model", str(model)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"ap", "micro_accuracy", "macro_accuracy"} <= set(report["models"]["toy-relations"]["asymmetric"])


def test_a_model_of_another_task_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relations", str(write_lines(tmp_path / "pairs.tsv", PAIRS)), "--model", "facets-en"]) == 1
    assert "expected a model for relations" in capsys.readouterr().err


def test_names_that_mean_the_same_count_as_one_and_inverse_ones_the_other_way_round(tmp_path: Path) -> None:
    data = read_pairs(
        write_lines(tmp_path / "pairs.tsv", ["a\tb\tkb:bornIn\t1", "a\tb\tkb:birthOf\t1", "a\tb\t$ARG1 x $ARG2\t1"])
    )
    canonical = data.canonical({"bornIn": ("birthPlace", False), "birthOf": ("birthPlace", True)})
    assert canonical.relations == [("birthPlace",), ("birthPlace",)]
    assert canonical.patterns == ["$ARG1 x $ARG2", "$ARG2 x $ARG1"]


def test_single_patterns_also_stand_the_other_way_round(tmp_path: Path) -> None:
    lines = ["a\tb\tkb:spouse\t1", "a\tb\tkb:child\t1", "a\tb\t$ARG1 x $ARG2\t1", "a\tb\t$ARG2 y $ARG1\t1"]
    single = read_pairs(write_lines(tmp_path / "pairs.tsv", lines)).single_patterns({"spouse"})
    assert len(single.relations) == 4
    assert single.relations[0] == ("spouse", "child")
    assert single.relations[1] == ("spouse",)
