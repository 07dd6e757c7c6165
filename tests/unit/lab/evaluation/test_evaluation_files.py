"""Reading evaluation data: every error names file and line, and nothing is skipped."""

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from facets_lab.evaluation.comparison import load_models
from facets_lab.evaluation.files import parse_number, read_lines, read_table
from facets_lab.evaluation.statistics import expected_calibration_error, with_intervals
from facets_lab.texts.pairs import read_sts
from facets_lab.texts.summaries import read_summaries

from facets.errors import InvalidInputError, NotFoundError

LINES = b"4.0\ta dog runs\ta dog is running\n1.0\ta cat\ta car\n"
RECORD = {"id": "1", "sentences": ["A dog.", "A cat."], "references": ["A dog."]}


def test_plain_and_compressed_files_read_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n"))  # as spreadsheets write it
    (tmp_path / "a.tsv.xz").write_bytes(lzma.compress(LINES))
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(LINES))
    read = [[line for _, line in read_lines(tmp_path / name)] for name in ("a.tsv", "a.tsv.xz", "a.tsv.gz")]
    assert read[0] == read[1] == read[2] == LINES.decode().splitlines()
    assert [place for place, _ in read_lines(tmp_path / "a.tsv")][1] == f"{tmp_path / 'a.tsv'}, line 2"


@pytest.mark.parametrize("damage", [lambda packed: packed[: len(packed) // 2], lambda _: b"no archive"])
@pytest.mark.parametrize(("suffix", "pack"), [("xz", lzma.compress), ("gz", gzip.compress)])
def test_damaged_archives_are_refused(
    tmp_path: Path, damage: Callable[[bytes], bytes], suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / f"a.{suffix}"
    file.write_bytes(damage(pack(LINES * 2000)))
    with pytest.raises(InvalidInputError, match=rf"a\.{suffix}, line \d+: expected"):
        read_sts(file)  # a damaged archive may give other lines before the damage is noticed


@pytest.mark.parametrize("line", ["a", "a\t2\tc", "a\t ", "\t2", "y\tmany", "y\tnan", "y\t1e999", "y\t4,5"])
def test_lines_with_other_fields_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.tsv").write_text(f"name\tscore\nx\t3.5\n\n{line}\n")
    rows = read_table(tmp_path / "a.tsv", {"name": str, "score": parse_number})
    assert next(rows) == ("x", 3.5)
    with pytest.raises(InvalidInputError, match=r"a\.tsv, line 4: expected name<TAB>score"):
        next(rows)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{broken", "JSON object"),
        ("null", "JSON object, got 'None'"),
        ("[" * 100_000, "recursion"),
        ('{"id": "1", "sentences": ["a \\ud800"], "references": ["a"]}', "hex escape"),
        ('{"id": "1", "sentences": ["a", 3], "references": ["a"]}', r"valid string as sentences\.1, got 3"),
        ('{"id": "1", "sentences": ["a"]}', "a field references, got none"),
    ],
)
def test_bad_records_are_named_by_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(RECORD) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=rf"a\.jsonl, line 2: .*{message}"):
        read_summaries(tmp_path / "a.jsonl")


def load(name: str | None) -> SimpleNamespace:
    if name == "missing":
        raise NotFoundError("no model 'missing'")
    return SimpleNamespace(name=name or "shipped")


@pytest.mark.parametrize(
    ("asked", "baselines", "names"),
    [([], [], ["shipped"]), (["b", "a"], ["c"], ["b", "a", "c"]), (["c"], ["c", "missing", "d"], ["c", "d"])],
)
def test_models_come_before_baselines(asked: list[str], baselines: list[str], names: list[str]) -> None:
    assert [model.name for model in load_models(asked, baselines, load)] == names


def test_interval_of_a_mean_is_the_normal_one() -> None:
    values = np.random.default_rng(3).normal(2.0, 1.0, size=400)
    result = with_intervals(lambda x: {"mean": float(x.mean())}, values, num_resamples=2000)
    error = values.std() / np.sqrt(400)
    assert list(result) == ["mean", "mean_ci95_from", "mean_ci95_to"]
    assert result["mean_ci95_from"] == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert result["mean_ci95_to"] == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_undefined_resamples_are_left_out() -> None:
    nothing = with_intervals(lambda x: {"x": None}, np.arange(3), num_resamples=5)
    assert nothing == {"x": None, "x_ci95_from": None, "x_ci95_to": None}
    sometimes = with_intervals(lambda x: {"x": 1.0 if 0 in x else None}, np.arange(3), num_resamples=50)
    assert sometimes == {"x": 1.0, "x_ci95_from": 1.0, "x_ci95_to": 1.0}


def test_claims_that_are_right_as_often_as_they_say_have_no_error() -> None:
    confidence = np.full(10, 0.7)
    right = np.arange(10) < 7
    assert expected_calibration_error(confidence, right) == pytest.approx(0.0)
    assert expected_calibration_error(confidence, ~right) == pytest.approx(0.4)
    assert expected_calibration_error(confidence[:0], right[:0]) == 0.0
