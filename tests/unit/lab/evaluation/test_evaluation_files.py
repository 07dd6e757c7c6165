"""Reading evaluation data: every kind of damage is reported with file and line, nothing is skipped."""

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from facets_lab.evaluation.files import fields_of, number_of, read_lines, read_records
from facets_lab.texts.evaluation import read_phrase_choices, read_phrase_pairs, read_sts, read_summaries

from facets.errors import ConfigError, InvalidInputError

LINES = b"4.0\ta dog runs\ta dog is running\n1.0\ta cat\ta car\n"
RECORD = {"id": "1", "sentences": ["A dog.", "A cat."], "references": ["A dog."]}


def test_plain_and_packed_files_read_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n"))  # as spreadsheets write it
    (tmp_path / "a.tsv.xz").write_bytes(lzma.compress(LINES))
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(LINES))
    read = [[line for _, line in read_lines(tmp_path / name)] for name in ("a.tsv", "a.tsv.xz", "a.tsv.gz")]
    assert read[0] == read[1] == read[2] == LINES.decode().splitlines()
    assert [place for place, _ in read_lines(tmp_path / "a.tsv")][1] == f"{tmp_path / 'a.tsv'}, line 2"


def cut(packed: bytes) -> bytes:
    return packed[: len(packed) // 2]


def flipped(packed: bytes) -> bytes:
    return packed[: len(packed) // 2] + bytes([packed[len(packed) // 2] ^ 0xFF]) + packed[len(packed) // 2 + 1 :]


def no_archive(packed: bytes) -> bytes:
    return b"no archive"


@pytest.mark.parametrize("damage", [cut, flipped, no_archive])
@pytest.mark.parametrize(("suffix", "pack"), [("xz", lzma.compress), ("gz", gzip.compress)])
def test_damaged_archives_are_reported(
    tmp_path: Path, damage: Callable[[bytes], bytes], suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / f"a.{suffix}"
    file.write_bytes(damage(pack(LINES * 2000)))
    with pytest.raises(InvalidInputError, match=rf"a\.{suffix}, line \d+: expected"):
        read_sts(file)  # what comes out of a damaged archive before it is noticed is no line of the data either


@pytest.mark.parametrize("content", ["4\ta\tb\n".encode("utf-16"), b"4\tcaf\xe9\tb\n"])
def test_other_encodings_are_reported(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tsv").write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"a\.tsv, line 1: expected UTF-8"):
        read_sts(tmp_path / "a.tsv")


@pytest.mark.parametrize("read", [read_sts, read_phrase_pairs, read_phrase_choices, read_summaries])
def test_missing_empty_and_unreadable_files_are_reported(tmp_path: Path, read: Callable[[Path], object]) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(InvalidInputError, match="empty"):
        read(tmp_path / "empty")
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(ConfigError, match="cannot read"):
            read(path)


@pytest.mark.parametrize("blank", [b"\n", b"   \n", b"\r\n"])
@pytest.mark.parametrize("read", [read_sts, read_summaries])
def test_an_empty_line_is_reported(tmp_path: Path, read: Callable[[Path], object], blank: bytes) -> None:
    good = LINES if read is read_sts else json.dumps(RECORD).encode() + b"\n" + json.dumps(RECORD).encode() + b"\n"
    (tmp_path / "a").write_bytes(good + blank + good)
    with pytest.raises(InvalidInputError, match=r"line 3: .*an empty line"):
        read(tmp_path / "a")


@pytest.mark.parametrize(
    "text", ["nan", "inf", "-inf", "Infinity", "1e999", "1_0", "0x1", "", " ", "4,5", "\u0663", "4.0 5.0", "4" * 400]
)
def test_what_is_no_finite_decimal_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="here: expected a number as score, got"):
        number_of(text, "here", what="score")


@pytest.mark.parametrize(("text", "value"), [("4", 4.0), (" 3.50 ", 3.5), ("-1e-2", -0.01), (".5", 0.5), ("5.", 5.0)])
def test_numbers_are_read(text: str, value: float) -> None:
    assert number_of(text, "here", what="score") == value


@pytest.mark.parametrize("line", ["a", "a\tb\tc", "a\t ", "\tb", ""])
def test_lines_with_other_fields_are_refused(line: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^here: expected"):
        fields_of(line, ("phrase", "word"), "here")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{broken", "JSON object"),
        ("null", "NoneType"),
        ("[1]", "list"),
        ("[" * 100_000, "nested"),
        ('{"n": ' + "9" * 5000 + "}", "digits"),
        ('{"id": "1", "sentences": ["a \\ud800"], "references": ["a"]}', "surrogate"),
        ('{"id": "1", "sentences": "a", "references": ["a"]}', "valid list as sentences"),
        ('{"id": "1", "sentences": ["a", 3], "references": ["a"]}', r"valid string as sentences\.1, got 3"),
        ('{"id": "1", "sentences": [" "], "references": ["a"]}', "sentences must have at least one"),
        ('{"id": "1", "sentences": ["a"]}', "a field references, got none"),
        ('{"id": "1", "sentences": ["a"], "references": [""]}', "references must have at least one"),
    ],
)
def test_bad_records_are_named_by_file_and_line(tmp_path: Path, line: str, what: str) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(RECORD) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=rf"a\.jsonl, line 2: .*{what}"):
        read_summaries(tmp_path / "a.jsonl")


def test_records_come_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n": 2}\n', encoding="utf-8")
    assert [record["n"] for _, record in read_records(tmp_path / "a.jsonl")] == [1, 2]
