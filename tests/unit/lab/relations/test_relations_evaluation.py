"""``facets-eval relations``: pairs, decisions, measures, and the commands on a toy model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.relations.evaluation import PatternScores, read_pairs, relation_metrics
from relation_toys import TOY_ENTAILMENT, make_toy_relation_checkpoint
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


class FixedTable:
    """Stands for a model with three asymmetric relations."""

    names = ("birthPlace", "spouse", "employer")
    symmetric_names: tuple[str, ...] = ()

    @property
    def relations(self) -> "FixedTable":
        return self

    def meanings(self) -> dict[str, tuple[str, bool]]:
        return {}


def metrics_of(data: Any, scores: Any, threshold: float | None = None, num_resamples: int = 0) -> dict[str, Any]:
    thresholds = None if threshold is None else np.full(3, threshold, dtype=np.float32)

    def methods(_: object, patterns: Sequence[str]) -> dict[str, PatternScores]:
        return {"m": PatternScores(np.array(scores, dtype=np.float32), thresholds)}

    return relation_metrics(FixedTable(), methods, data, num_resamples=num_resamples)["m"]  # type: ignore[arg-type]


def test_pairs_need_a_pattern_and_a_relation(tmp_path: Path) -> None:
    data = read_pairs(write_lines(tmp_path / "pairs.tsv", PAIRS))
    assert data.num_rows == 10
    assert [relations for _, relations in data.pairs] == [("birthPlace",), ("spouse",), ("employer", "unheardOf")]
    assert data.pairs[1][0] == ["$ARG1 wed $ARG2"]
    for lines, message in (
        ([*PAIRS, "a\tb\tc"], "line 11: expected entity<TAB>other entity"),
        ([*PAIRS, "a\tb\tc\tx"], "line 11"),
        ([PAIRS[0]], "must have a pair with a pattern and a relation"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            read_pairs(write_lines(tmp_path / "bad.tsv", lines))


def test_perfect_scores_are_perfect_except_for_unknown_relations(tmp_path: Path) -> None:
    data = read_pairs(write_lines(tmp_path / "pairs.tsv", PAIRS))
    scores = [[0.9, 0.1, 0.1], [0.8, 0.2, 0.1], [0.0, 0.9, 0.0], [0.1, 0.0, 0.9]]
    metrics = metrics_of(data, scores, threshold=0.5)
    assert metrics["map"] == pytest.approx(1.0)
    assert metrics["micro_f1"] == pytest.approx(2 * 3 / (3 + 4))  # three found, one of an unknown relation
    assert metrics_of(data, scores) == metrics
    random = metrics_of(data, np.random.default_rng(1).random((4, 3)), num_resamples=20)
    assert random["map_ci95_from"] <= random["map_ci95_to"]


def test_commands_calibrate_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = make_toy_relation_checkpoint(tmp_path / "toy", num_steps=60)
    pairs = write_lines(tmp_path / "pairs.tsv", PAIRS)
    entailment = write_lines(tmp_path / "entailment.tsv", TOY_ENTAILMENT)
    before = (model / "relations.json").read_text()
    assert main(["calibrate-relations", str(pairs), "--model", str(model), "--dry-run"]) == 0
    assert (model / "relations.json").read_text() == before
    assert main(["calibrate-relations", str(pairs), "--model", str(model)]) == 0
    assert (model / "relations.json").read_text() != before
    capsys.readouterr()
    assert main(["relations", str(pairs), "--model", str(model)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 10
    facets = ("symmetric", "asymmetric")
    assert set(report["models"]["toy-relations"]) == {
        *facets,
        "universal_schema",
        *(f"{m}+universal_schema" for m in facets),
    }
    assert main(["entailment", str(entailment), "--model", str(model)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"ap", "micro_accuracy", "macro_accuracy"} <= set(report["models"]["toy-relations"]["asymmetric"])
    assert main(["relations", str(pairs), "--model", "facets-en"]) == 1
    assert "expected a model for relations" in capsys.readouterr().err
