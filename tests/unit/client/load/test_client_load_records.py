"""Reading JSONL: good lines, bad lines, compressions, streams, places to resume from."""

import gzip
import io
import json
import lzma

import pytest
from facets_client.load.records import MAX_ROW_BYTES, Record, RecordFormat, Rejection, Row, read_objects, to_record
from facets_client.load.source import InputError, RecordSource


def read_records(source, record_format, *, max_line_bytes=MAX_ROW_BYTES, **place):
    """What the rows of an input become, as the commands do it."""
    for item in read_objects(source, max_line_bytes=max_line_bytes, **place):
        yield to_record(item, record_format) if isinstance(item, Row) else item


def read(data: bytes, tmp_path, record_format=None, **place):
    path = tmp_path / "input.jsonl"
    path.write_bytes(data)
    with RecordSource(str(path)) as source:
        return list(read_records(source, record_format or RecordFormat(), **place))


def line(**fields) -> bytes:
    return json.dumps(fields).encode() + b"\n"


GOOD = [line(id=f"d{i}", text=f"text {i}", n=i) for i in range(5)]


def test_good_lines(tmp_path):
    records = read(b"".join(GOOD), tmp_path)
    assert [record.id for record in records] == [f"d{i}" for i in range(5)]
    assert records[3].text == "text 3"
    assert records[3].payload == {"n": 3}
    assert [record.line for record in records] == [1, 2, 3, 4, 5]
    assert records[-1].end == sum(map(len, GOOD))


@pytest.mark.parametrize(
    ("bad", "reason", "message"),
    [
        (b'{"id": "x", "text": "caf\xe9"}\n', "invalid_utf8", "0xe9 at column 25"),
        (b'{"id": "x", "text": "cut o\n', "invalid_json", "column"),
        (b"{\x00}\n", "invalid_json", "column"),
        (b"[1, 2]\n", "not_an_object", "got an array"),
        (b"null\n", "not_an_object", "got null"),
        (b"12\n", "not_an_object", "got a number"),
        (b'{"text": "a"}\n', "missing_id", "'id' is missing"),
        (b'{"id": "x"}\n', "missing_text", "'text' is missing"),
        (b'{"id": "", "text": "a"}\n', "invalid_id", "empty"),
        (b'{"id": null, "text": "a"}\n', "invalid_id", "got null"),
        (b'{"id": true, "text": "a"}\n', "invalid_id", "got true"),
        (b'{"id": 1.5, "text": "a"}\n', "invalid_id", "got a number"),
        (b'{"id": "x", "text": ["a"]}\n', "invalid_text", "got an array"),
        (b'{"id": "x", "text": ""}\n', "empty_text", "no text"),
        (b'{"id": "x", "text": " \\n\\t "}\n', "empty_text", "no text"),
        (b'{"id": "x", "text": "a", "n": NaN}\n', "invalid_json", "NaN"),
        (b'{"id": "x", "text": "a", "n": ' + b"1" * 5000 + b"}\n", "invalid_json", "digits"),
        (b'{"id": "x", "text": "a", "n": ' + b"[" * 100_000 + b"\n", "invalid_json", "deep"),
        (b'{"id": "x", "text": "' + b"a" * 200 + b'"}\n', "text_too_long", "200 bytes, the limit is 100"),
        (b'{"id": "' + b"x" * 60 + b'", "text": "a"}\n', "id_too_long", "60 bytes, the limit is 50"),
        (b'{"id": "x", "text": "' + b"a" * 300_000 + b'"}\n', "line_too_long", "the limit is 200000"),
    ],
)
def test_a_bad_line_is_rejected_with_its_reason_and_the_others_are_read(tmp_path, bad, reason, message):
    record_format = RecordFormat(max_text_bytes=100, max_id_bytes=50)
    items = read(b"".join([*GOOD[:2], bad, *GOOD[2:]]), tmp_path, record_format, max_line_bytes=200_000)
    assert [type(item) for item in items] == [Record, Record, Rejection, Record, Record, Record]
    rejected = items[2]
    assert (rejected.line, rejected.reason) == (3, reason)
    assert message in rejected.message
    assert len(rejected.excerpt) <= 200
    assert items[-1].end == sum(map(len, GOOD)) + len(bad)


def test_a_truncated_last_line(tmp_path):
    items = read(b"".join(GOOD) + GOOD[0][:12], tmp_path)
    assert len(items) == 6
    assert items[-1].reason == "invalid_json"
    assert "cut off" in items[-1].message


def test_a_last_line_without_line_end_is_good_when_it_is_whole(tmp_path):
    assert len(read(b"".join(GOOD).rstrip(b"\n"), tmp_path)) == 5


def test_blank_lines_windows_line_ends_and_byte_order_mark(tmp_path):
    data = b"\xef\xbb\xbf" + GOOD[0].replace(b"\n", b"\r\n") + b"\n  \r\n" + GOOD[1]
    records = read(data, tmp_path)
    assert [(record.id, record.line) for record in records] == [("d0", 1), ("d1", 4)]


def test_integer_ids_and_other_field_names(tmp_path):
    data = line(key=17, body="b", id="payload", text="payload, too")
    (record,) = read(data, tmp_path, RecordFormat(id_field="key", text_fields=("body",)))
    assert (record.id, record.text) == ("17", "b")
    assert record.payload == {"id": "payload", "text": "payload, too"}


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_compressions_are_known_by_content_and_resumable(tmp_path, compress):
    data = compress(b"".join(GOOD))
    records = read(data, tmp_path)
    assert [record.id for record in records] == [f"d{i}" for i in range(5)]
    place = records[2]
    rest = read(data, tmp_path, line=place.line, end=place.end)
    assert [(record.id, record.line, record.end) for record in rest] == [
        (record.id, record.line, record.end) for record in records[3:]
    ]


def test_two_gzip_members_are_one_input(tmp_path):
    data = gzip.compress(b"".join(GOOD[:2])) + gzip.compress(b"".join(GOOD[2:]))
    assert len(read(data, tmp_path)) == 5


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compressed_data_that_is_cut_off(tmp_path, compress):
    lines = [line(id=f"d{i}", text=f"text {i * 7919 % 10_007}") for i in range(20_000)]
    whole = compress(b"".join(lines))
    items = read(whole[: len(whole) // 2], tmp_path)
    assert 1_000 < len(items) < 20_000
    assert all(isinstance(item, Record) for item in items[:-1])
    assert items[-1].reason == "damaged_input"
    assert f"after line {items[-2].line}" in items[-1].message


def test_compressed_data_with_a_flipped_byte(tmp_path):
    lines = [line(id=f"d{i}", text=f"text {i * 7919 % 10_007}") for i in range(20_000)]
    whole = bytearray(gzip.compress(b"".join(lines)))
    whole[len(whole) // 2] ^= 0xFF
    items = read(bytes(whole), tmp_path)
    assert [item.reason for item in items if isinstance(item, Rejection)][-1] == "damaged_input"


class Pipe(io.RawIOBase):
    """Standard input that gives a few bytes at a time."""

    def __init__(self, data):
        self.left = data

    def readable(self):
        return True

    def readinto(self, buffer):
        piece, self.left = self.left[:7], self.left[7:]
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_standard_input_is_read_and_resumed_by_skipping(compress):
    data = compress(b"".join(GOOD))
    with RecordSource("-", io.BufferedReader(Pipe(data))) as source:
        assert source.size is None
        records = list(read_records(source, RecordFormat()))
    with RecordSource("-", io.BufferedReader(Pipe(data))) as again:
        assert again.head_digest == source.head_digest
        rest = list(read_records(again, RecordFormat(), line=2, end=records[1].end))
    assert [record.id for record in rest] == ["d2", "d3", "d4"]


def test_standard_input_that_ends_before_the_place_to_resume_from():
    with RecordSource("-", io.BufferedReader(Pipe(GOOD[0]))) as source:
        with pytest.raises(InputError, match="ends"):
            list(read_records(source, RecordFormat(), line=5, end=10_000))


def test_a_long_line_is_not_held_in_memory(tmp_path):
    path = tmp_path / "long.jsonl"
    with path.open("wb") as stream:
        for _ in range(64):
            stream.write(b"x" * 2**20)
        stream.write(b"\n" + GOOD[0])
    import tracemalloc

    tracemalloc.start()
    with RecordSource(str(path)) as source:
        items = list(read_records(source, RecordFormat(), max_line_bytes=2**20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [type(item) for item in items] == [Rejection, Record]
    assert peak < 16 * 2**20


def test_inputs_that_cannot_be_opened(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        RecordSource(str(tmp_path / "nope.jsonl"))
    with pytest.raises(InputError, match="folder"):
        RecordSource(str(tmp_path))


def test_an_empty_file(tmp_path):
    assert read(b"", tmp_path) == []
