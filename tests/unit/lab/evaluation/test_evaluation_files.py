"""Reading evaluation data: every error names file and line, and nothing is skipped."""

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from facets_lab.evaluation.files import parse_number, read_lines, read_table, split_fields
from facets_lab.texts.pairs import read_sts
from facets_lab.texts.summaries import read_summaries

from facets.errors import InvalidInputError

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


@pytest.mark.parametrize("text", ["nan", "1e999", "1_0", "", "4,5", "\u0663"])
def test_only_finite_decimal_numbers_are_accepted(text: str) -> None:
    with pytest.raises(InvalidInputError, match="here: expected a number as score, got"):
        parse_number(text, "here", name="score")


@pytest.mark.parametrize("line", ["a", "a\tb\tc", "a\t ", "\tb", ""])
def test_lines_with_other_fields_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^here: expected"):
        split_fields(line, ("phrase", "word"), "here")
    (tmp_path / "a.tsv").write_text("x\t3\ny\tmany\n")
    with pytest.raises(InvalidInputError, match=r"a\.tsv, line 2: expected name<TAB>count"):
        list(read_table(tmp_path / "a.tsv", {"name": str, "count": int}))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "empty line"),
        ("{broken", "JSON object"),
        ("null", "NoneType"),
        ("[" * 100_000, "recursion"),
        ('{"n": ' + "9" * 5000 + "}", "digits"),
        ('{"id": "1", "sentences": ["a \\ud800"], "references": ["a"]}', "surrogate"),
        ('{"id": "1", "sentences": ["a", 3], "references": ["a"]}', r"valid string as sentences\.1, got 3"),
        ('{"id": "1", "sentences": ["a"]}', "a field references, got none"),
    ],
)
def test_bad_records_are_named_by_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(RECORD) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=rf"a\.jsonl, line 2: .*{message}"):
        read_summaries(tmp_path / "a.jsonl")
