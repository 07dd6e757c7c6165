"""Rows of JSON lines, JSON arrays and CSV files: good rows, bad rows, compressions, hostile files."""

import errno
import gzip
import io
import json
import lzma
import os
import tempfile
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from facets_client.load.formats import find_files, format_of
from facets_client.load.json_rows import read_json
from facets_client.load.rows import MAX_ROW_BYTES, ReadOptions, Rejection, Row
from facets_client.load.source import InputError, Source
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def rows_of(name, data, tmp_path):
    """The rows, and at last an error if there is one."""
    path = tmp_path / name
    path.write_bytes(data)
    rows = []
    with Source(str(path)) as source:
        try:
            rows.extend(format_of(source, ReadOptions()).read(source, ReadOptions()))
        except InputError as error:
            rows.append(error)
    return rows


def texts_of(name, data, tmp_path):
    """The texts of the rows, the reasons of their rejections, or an error."""
    rows = rows_of(name, data, tmp_path)
    return [row.fields["text"] if isinstance(row, Row) else getattr(row, "reason", "error") for row in rows]


@contextmanager
def given_file(data):
    """A file of its own for each example of hypothesis."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with Source(file.name) as source:
            yield source


GOOD = [json.dumps({"id": f"d{i}", "text": f"text{i}", "n": i}).encode() + b"\n" for i in range(5)]


@pytest.mark.parametrize(
    ("bad", "reason", "message"),
    [
        (b'{"id": "x", "text": "caf\xe9"}\n', "invalid_utf8", "0xe9 at column 25"),
        (b'{"id": "x", "text": "cut o\n', "invalid_json", "column"),
        (b"[1, 2]\n", "not_an_object", "got an array"),
        (b"null\n", "not_an_object", "got null"),
        (b'{"text": "a", "n": ' + b"1" * 5000 + b"}\n", "invalid_json", "digits"),
        (b'{"text": "a", "n": ' + b"[" * 100_000 + b"\n", "invalid_json", "deep"),
        (b'{"text": "' + b"a" * MAX_ROW_BYTES + b'"}\n', "line_too_long", f"the limit is {MAX_ROW_BYTES}"),
    ],
)
def test_a_bad_line_is_rejected_and_the_others_are_read(tmp_path, bad, reason, message):
    rows = rows_of("a.jsonl", b"".join([*GOOD[:2], bad, *GOOD[2:]]), tmp_path)
    assert [type(row) for row in rows] == [Row, Row, Rejection, Row, Row, Row]
    assert (rows[2].line, rows[2].reason) == (3, reason)
    assert message in rows[2].message


def test_blank_lines_windows_line_ends_byte_order_mark_and_a_cut_off_last_line(tmp_path):
    data = b"\xef\xbb\xbf" + GOOD[0].replace(b"\n", b"\r\n") + b"\n  \r\n" + GOOD[1]
    rows = rows_of("a.jsonl", data + GOOD[2][:12], tmp_path)
    assert [(row.fields["id"], row.line) for row in rows[:2]] == [("d0", 1), ("d1", 4)]
    assert "cut off" in rows[2].message
    assert len(rows_of("a.jsonl", b"".join(GOOD).rstrip(b"\n"), tmp_path)) == 5


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_compressions_are_known_by_their_content(tmp_path, compress, monkeypatch):
    data = compress(b"".join(GOOD[:2])) + compress(b"".join(GOOD[2:]))
    assert texts_of("a.jsonl", data, tmp_path) == [f"text{i}" for i in range(5)]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(data), 16)))
    with Source("-") as source:
        assert source.size is None
        assert len(list(format_of(source, ReadOptions()).read(source, ReadOptions()))) == 5


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compressed_data_that_is_cut_off_or_damaged_ends_with_a_rejection(tmp_path, compress):
    lines = b"".join(b'{"text": "text %d"}\n' % (i * 7919 % 10_007) for i in range(20_000))
    whole = compress(lines)
    rows = rows_of("a.jsonl", whole[: len(whole) // 2], tmp_path)
    assert 1_000 < len(rows) < 20_000 and rows[-1].reason == "damaged_input"
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    assert rows_of("a.jsonl", bytes(damaged), tmp_path)[-1].reason == "damaged_input"


# JSON arrays


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        ('{"id": "b", "text": "open},', ["first", "error"]),
        ('{"id": }, ]', ["first", "error"]),
        ('{"text": "x", "a": ' + "[" * 200_000 + "]" * 200_000 + "},", ["first", "error"]),
        ('{"text": "' + "w" * (MAX_ROW_BYTES + 9) + '"},', ["first", "row_too_long", "last"]),
        ("5,", ["first", "not_an_object", "last"]),
    ],
    ids=["string", "value", "deep", "long", "number"],
)
def test_a_bad_record_of_an_array(tmp_path, broken, found):
    lines = ["[", '  {"id": "a", "text": "first"},', f"  {broken}", '  {"id": "c", "text": "last"}', "]"]
    assert texts_of("a.json", "\n".join(lines).encode(), tmp_path) == found


@pytest.mark.parametrize("end", ["", ', {"text": "la', '] [{"text": "b"}]', "] , x"])
def test_an_array_that_is_cut_off_or_goes_on_is_damaged(tmp_path, end):
    found = texts_of("a.json", f'[{{"text": "first"}}{end}'.encode(), tmp_path)
    assert found == ["first", "error"]
    assert texts_of("a.json", b'[{"text": "a"}]' + b"\n" * 300_000, tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ('{"version": 3, "items": [\n{"text": "a"},\n{"text": "b"}\n]}', ["a", "b"]),
        ('{"version": 3, "items": [{"text": "a"}, \r\n{"text": "b"}\r\n]}', ["a", "b"]),
        ('{"text":\n{"a": 1}}', [{"a": 1}]),
        ('{"text": "a"}\n{"text": "b"}', ["a", "b"]),
        ('{"text": "a", "b": \n{"text": "b"}\n', ["invalid_json"]),
        ('{"text": "a",\n{"text": "b"}', ["invalid_json", "b"]),
        ('{"text": "a\n{"text": "b"}', ["invalid_json", "b"]),
        ('{"text": a}\n{"text": "b"}', ["invalid_json", "b"]),
        ('{"text": "a"}\nnonsense', ["a", "invalid_json"]),
    ],
)
def test_an_object_over_several_lines_and_json_lines_are_told_apart(tmp_path, file, found):
    assert texts_of("a.json", file.encode(), tmp_path) == found


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@pytest.mark.parametrize("above", ["Account 7\n", '"Account 7";\n\nPeriod: March, April\n', "Account;;\n"])
def test_lines_above_the_header_are_titles(tmp_path, above):
    rows = rows_of("a.csv", (above + "Day;Amount;What\n1.3.;12,50;Bread\n2.3.;3;Milk\n").encode(), tmp_path)
    assert [row.fields["What"] for row in rows] == ["Bread", "Milk"]
    assert rows[0].line == above.count("\n") + 2


def test_prose_with_commas_is_not_taken_for_a_header(tmp_path):
    rows = rows_of("a.csv", b"sentence\nA dog, a cat, a cow.\nOne, two, three, four.\nNo more.\n", tmp_path)
    assert [getattr(row, "fields", None) for row in rows] == [None, None, {"sentence": "No more."}]


def test_lines_with_commas_below_one_name_are_rows_of_its_column(tmp_path):
    rows = rows_of("a.csv", b'text\n"Well, then, go, now."\n"One, two, three, four."\n', tmp_path)
    assert [row.fields for row in rows] == [{"text": "Well, then, go, now."}, {"text": "One, two, three, four."}]


def test_a_line_that_names_the_separator_and_spaces_after_it_are_no_values(tmp_path):
    rows = rows_of("a.csv", b'sep=;\r\na; b\r\n1; "x; y"\r\n2;z\r\n', tmp_path)
    assert [(row.line, row.fields) for row in rows] == [(3, {"a": "1", "b": "x; y"}), (4, {"a": "2", "b": "z"})]


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(st.lists(st.dictionaries(st.text(min_size=1), PLAIN, max_size=3), max_size=5), st.sampled_from([None, 0, 2]))
def test_records_of_an_array_are_what_json_reads(records, indent):
    data = json.dumps(records, indent=indent, ensure_ascii=True).encode()
    with given_file(data) as source:
        assert [row.fields for row in read_json(source, ReadOptions())] == records


# CSV


def test_a_quote_that_is_not_closed_costs_its_row(tmp_path):
    rows = "".join(f"{n},good\n" for n in range(2, 20_000))
    found = texts_of("a.csv", f'id,text\n1,"open\n{rows}'.encode(), tmp_path)
    assert (found[0], found[1:]) == ("broken_row", ["good"] * 19_998)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r")), min_size=2, max_size=2)))
def test_rows_of_a_csv_file_are_what_was_written(table):
    import csv

    from facets_client.load.tables import read_csv

    table = [row for row in table if any(value.strip() for value in row)]
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows([["text", "b"], *table])
    with given_file(file.getvalue().encode()) as source:
        rows = list(read_csv(source, ReadOptions(encoding="utf-8"), delimiter=","))
    assert [list(row.fields.values()) for row in rows] == table


def test_files_that_arguments_name(tmp_path):
    for name in ("a/x.txt", "b/x.txt", "b/.hidden.txt", "b/~$x.docx", "b/photo.png", "LICENSE"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text")
    os.mkfifo(tmp_path / "b" / "pipe.txt")
    for link, target in {"folder": "../a", "out.txt": "../a/x.txt", "nothing.txt": "y.txt", "z.txt": "x.txt"}.items():
        (tmp_path / "b" / link).symlink_to(target)
    notes = []
    options = ReadOptions(note=notes.append)
    names = [str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "LICEN*"), str(tmp_path / "a" / "x.txt")]
    assert [file.label for file in find_files(names, options)] == ["a/x.txt", "b/x.txt", "LICENSE"]
    assert len(notes) == 1 and "skipped: links (3), .png (1), pipes and sockets (1)" in notes[0]


def test_a_folder_that_cannot_be_listed_is_rejected_as_an_unreadable_file(tmp_path, monkeypatch):
    (tmp_path / "locked").mkdir()
    (tmp_path / "a.txt").write_text("text")
    list_folder = os.scandir

    def deny(path):
        if os.path.basename(path) == "locked":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", deny)
    assert [file.label for file in find_files([str(tmp_path)], ReadOptions())] == ["a.txt", "locked"]
    assert [file.path for file in find_files([f"{tmp_path}/locked"], ReadOptions())] == [f"{tmp_path}/locked"]
