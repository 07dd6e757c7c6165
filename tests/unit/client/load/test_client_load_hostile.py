"""Files made to fill the memory or to keep a reader busy: each costs what it holds, a bad record costs itself."""

import gzip
import io
import json
import lzma
import subprocess
import sys
from importlib.util import find_spec

import pytest
from facets_client.load.batches import Place
from facets_client.load.files import ColumnChoice, DocumentFiles
from facets_client.load.formats import find_files
from facets_client.load.records import ReadOptions, Record
from facets_client.load.source import InputError, RecordSource
from hypothesis import given
from hypothesis import strategies as st

MEGABYTE = 2**20
NEEDS_LXML = pytest.mark.skipif(find_spec("lxml") is None, reason="the extra 'files' is not installed")

PROBE = """
import resource, sys
from facets_client.load.batches import Place
from facets_client.load.files import ColumnChoice, DocumentFiles
from facets_client.load.formats import find_files
from facets_client.load.records import ReadOptions
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with DocumentFiles(find_files(sys.argv[1:], None), ReadOptions(), choice=ColumnChoice(), form=None) as files:
    found = [getattr(item, "reason", item.text if hasattr(item, "text") else "") for item in files.read(Place())]
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // 1024, *found)
"""


def read(path, **options):
    """The texts of a file, or why there is none, in order."""
    made = ReadOptions(**options)
    with DocumentFiles(find_files([str(path)], None), made, choice=ColumnChoice(), form=None) as files:
        return [item.text if isinstance(item, Record) else item.reason for item in files.read(Place())]


def read_apart(path, environment):
    """The same by a process of its own: grown megabytes, then what it found."""
    command = [sys.executable, "-c", PROBE, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)
    grown, *found = done.stdout.split()
    return int(grown), found


@pytest.mark.parametrize(("suffix", "opened"), [("gz", gzip.open), ("xz", lzma.open)])
def test_a_line_that_unpacks_to_much_is_rejected_without_being_held(tmp_path, environment, suffix, opened):
    path = tmp_path / f"line.jsonl.{suffix}"
    with opened(path, "wb") as stream:
        stream.write(b'{"id": "a", "text": "')
        for _ in range(160):
            stream.write(b"a" * MEGABYTE)
        stream.write(b'"}\n{"id": "b", "text": "good"}\n')
    assert path.stat().st_size < MEGABYTE / 2
    grown, found = read_apart(path, environment)
    assert found == ["line_too_long", "good"]
    assert grown < 120


def test_xz_that_asks_for_much_memory_is_refused(tmp_path):
    path = tmp_path / "a.csv.xz"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 512 * MEGABYTE}]
    with lzma.open(path, "wb", filters=filters) as stream:
        stream.write(b"text\nhello\n")
    with pytest.raises(InputError, match="the xz data is damaged: it asks for more than 128 MiB of memory"):
        read(path)


def test_xz_of_several_streams_with_padding_is_read_to_its_end(tmp_path):
    path = tmp_path / "a.csv.xz"
    path.write_bytes(lzma.compress(b"text\none\n") + b"\0" * 8 + lzma.compress(b"two\n"))
    assert read(path) == ["one", "two"]


def test_xz_that_is_cut_off_says_so_after_what_it_holds(tmp_path):
    path = tmp_path / "a.jsonl.xz"
    lines = b"".join(b'{"id": "%d", "text": "%x"}\n' % (n, hash(str(n)) & 0xFFFFFFFF) for n in range(20_000))
    path.write_bytes(lzma.compress(lines)[:-50_000])
    found = read(path)
    assert found[-1] == "damaged_input" and len(found) > 100


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_json_that_is_nested_too_deeply_costs_its_record(tmp_path, form):
    deep = '{"id": "a", "text": "x", "a": ' + "[" * 200_000 + "]" * 200_000 + "}"
    good = '{"id": "b", "text": "good"}'
    path = tmp_path / f"deep.{form}"
    path.write_text(f"{deep}\n{good}\n" if form == "jsonl" else f"[{deep}, {good}]")
    assert read(path) == ["invalid_json", "good"]


def test_a_record_of_an_array_over_the_limit_costs_itself(tmp_path):
    path = tmp_path / "a.json"
    records = [{"id": "a", "text": "first"}, {"id": "b", "text": "word " * 40}, {"id": "c", "text": "last"}]
    path.write_text(json.dumps(records))
    assert read(path, max_row_bytes=100) == ["first", "row_too_long", "last"]


@pytest.mark.parametrize("broken", ['{"id": "b", "text": "open},', '{"id": "b", "text": ["open"},', '{"id": }, ]'])
def test_a_broken_record_of_an_array_costs_itself(tmp_path, broken):
    path = tmp_path / "a.json"
    lines = ["[", '  {"id": "a", "text": "first"},', f"  {broken}", '  {"id": "c", "text": "last"}', "]"]
    path.write_text("\n".join(lines))
    found = read(path)
    assert (found[0], found[1]) == ("first", "invalid_json")
    assert broken.endswith("]") or found[2:] == ["last"]


def test_an_array_that_is_cut_off_says_so_after_its_last_record(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"id": "a", "text": "first"}, {"id": "b", "text": "la')
    assert read(path) == ["first", "damaged_input"]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(min_size=1), PLAIN, max_size=3), max_size=5), st.sampled_from([None, 0, 2]))
def test_records_of_an_array_are_what_json_reads(records, indent):
    from facets_client.load.tables import read_json

    data = json.dumps(records, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    source = RecordSource("-", io.BytesIO(data))
    assert [item.fields for item in read_json(source, ReadOptions())] == records


@pytest.mark.parametrize("form", ["{one}\n{two}", "{one}{two}", "{one} , x"])
def test_what_follows_an_array_is_told(tmp_path, form):
    path = tmp_path / "two.json"
    one, two = (json.dumps([{"id": name, "text": name}]) for name in "ab")
    path.write_text(form.format(one=one, two=two))
    assert read(path) == ["a", "damaged_input"]
    path.write_text(one + "\n" * 300_000)
    assert read(path) == ["a"]


def test_a_header_over_the_limit_costs_its_file_alone(tmp_path):
    path, good = tmp_path / "long.csv", tmp_path / "good.csv"
    path.write_text("text," + "a" * 500 + "\nhello\n")
    good.write_text("text\nhello\n")
    made = ReadOptions(max_row_bytes=200)
    with DocumentFiles(find_files([str(path), str(good)], None), made, choice=ColumnChoice(), form=None) as files:
        found = [item.text if isinstance(item, Record) else item.reason for item in files.read(Place())]
    assert found[-1] == "hello" and len(found) == 2


@NEEDS_LXML
def test_html_that_is_nested_deeply_is_read(tmp_path, environment):
    path = tmp_path / "deep.html"
    path.write_text("<html><body>" + "<div>" * 200_000 + "hello" + "</div>" * 200_000 + "</body></html>")
    grown, found = read_apart(path, environment)
    assert found == ["hello"]
    assert grown < 120


@NEEDS_LXML
def test_html_shows_its_main_part_without_menus_and_scripts(tmp_path):
    path = tmp_path / "a.html"
    path.write_text(
        "<html><head><title>A\n page</title><style>p {}</style></head><body><nav>Menu</nav><p>Before</p>"
        "<main><h1>Head</h1>One<br>two<aside>Aside</aside><svg><title>No</title></svg><ul><li>three</ul></main>"
        "<main>second</main><footer>Foot</footer></body></html>"
    )
    assert read(path) == ["# Head\n\nOne two\n\n- three"]


@NEEDS_LXML
def test_html_has_the_encoding_that_it_declares(tmp_path):
    path = tmp_path / "a.html"
    path.write_bytes('<meta charset="koi8-r"><p>\u0441\u043b\u043e\u0432\u043e'.encode("koi8-r"))
    assert read(path) == ["\u0441\u043b\u043e\u0432\u043e"]


def test_a_quote_that_is_not_closed_costs_its_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,"open\n' + "".join(f"{n},good\n" for n in range(2, 60_000)))
    found = read(path)
    assert (found[0], found[1:]) == ("broken_row", ["good"] * 59_998)


@pytest.mark.parametrize("compression", ["gz", "xz", "zst"])
def test_reading_goes_on_in_a_compressed_file(tmp_path, compression):
    lines = b"".join(b'{"id": "%d", "text": "text %d"}\n' % (n, n) for n in range(1_000))
    path = tmp_path / f"a.jsonl.{compression}"
    if compression == "zst":
        pyarrow = pytest.importorskip("pyarrow")
        sink = pyarrow.BufferOutputStream()
        with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(lines)
        path.write_bytes(sink.getvalue().to_pybytes())
    else:
        path.write_bytes(gzip.compress(lines) if compression == "gz" else lzma.compress(lines))
    with DocumentFiles(find_files([str(path)], None), ReadOptions(), choice=ColumnChoice(), form=None) as files:
        found = list(files.read(Place()))
    with DocumentFiles(find_files([str(path)], None), ReadOptions(), choice=ColumnChoice(), form=None) as files:
        place = Place(line=found[499].line, byte=found[499].end)
        assert [item.id for item in files.read(place)] == [item.id for item in found[500:]]
