"""``facets index`` with the files that people have, as a user types it: what is stored, what is said, how it ends."""

import importlib.util
import json
from importlib.util import find_spec

import pytest
from made_pdf import make_pdf

# The client's tests also run without any extra.
_IS_INSTALLED = all(find_spec(name) for name in ("lxml", "pypdfium2", "charset_normalizer"))
NEEDS_FILES = pytest.mark.skipif(not _IS_INSTALLED, reason="the extra 'files' is not installed")

ARTICLES = """No,Headline,Body,Year,Public,Code
1,Goats,Goats climb trees in Morocco.,2019,true,007
2,Kites,"Kites need wind,
and a long string.",2021,false,012
"""


@pytest.fixture
def stored(server):
    """Id -> text and payload of what the server holds."""

    def read():
        return {name: (kept.text, dict(kept.payload.items())) for name, kept in server.world.documents["news"].items()}

    return read


def rejected(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_csv_with_columns_of_its_own(facets, stored, tmp_path):
    (tmp_path / "articles.csv").write_text(ARTICLES)
    done = facets("index", "articles.csv", "-c", "news", "--id", "No")
    assert "text from 'Body', title from 'Headline', ids from 'No', payload: Year, Public, Code" in done.stderr
    assert stored() == {
        "1": ("Goats climb trees in Morocco.", {"title": "Goats", "Year": 2019, "Public": True, "Code": "007"}),
        "2": ("Kites need wind,\nand a long string.", {"title": "Kites", "Year": 2021, "Public": False, "Code": "012"}),
    }


@pytest.mark.parametrize(
    ("rows", "read"),
    [
        ("3,50 3,50 7,5; -1200 3.50 7; 2,25 x 9", [(3.5, "3,50", 7.5), (-1200, "3.50", 7), (2.25, "x", 9)]),
        ("1.249 12,5; 12.700 8; 2.500.000 3", [(1249, 12.5), (12700, 8), (2500000, 3)]),
        ("-87,50; 2.845,33; 1.234.567.890,5", [(-87.5,), (2845.33,), (1234567890.5,)]),
        ("7,5 1.2 2.10.1 007 192.168.178.120 1.3.2024", [(7.5, 1.2, "2.10.1", "007", "192.168.178.120", "1.3.2024")]),
        ("7,5 1,2,3 030.123.456; 8 4,5 040.1", [(7.5, "1,2,3", "030.123.456"), (8, "4,5", "040.1")]),
        ("1,200 12.5 1.249; 2,500 3.5 2.5", [("1,200", 12.5, 1.249), ("2,500", 3.5, 2.5)]),  # commas group thousands
        ("1.249; 2.500", [(1.249,), (2.5,)]),
    ],
)
def test_decimal_commas_and_points_of_a_file_separated_by_semicolons(facets, stored, tmp_path, rows, read):
    lines = [f"text;{row.strip().replace(' ', ';')}" for row in rows.split("; ")]
    names = "abcdef"[: lines[0].count(";")]
    (tmp_path / "a.csv").write_text("\n".join([";".join(["text", *names]), *lines]))
    facets("index", "a.csv", "-c", "news")
    assert [tuple(map(payload.get, names)) for _, payload in stored().values()] == read


def test_a_column_keeps_its_type_to_the_end_of_the_file(facets, stored, tmp_path):
    lines = ["text;price;count", *["text;1,50;7"] * 150, "text;2.845,33;1.249", "text;a,b;"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    (tmp_path / "b.csv").write_text('text,visitors\none,"1,200"\ntwo,"2,500"\n')
    facets("index", "a.csv", "b.csv", "-c", "news")
    assert stored()["a.csv#152"][1] == {"price": 2845.33, "count": 1249}
    assert stored()["a.csv#153"][1] == {"price": "a,b"}
    assert stored()["b.csv#2"] == ("one", {"visitors": "1,200"})


def test_several_texts_and_a_chosen_payload(facets, stored, tmp_path):
    (tmp_path / "articles.csv").write_text(ARTICLES)
    options = ["--text", "headline,body", "--payload", "Year", "--payload", "No"]
    facets("index", "articles.csv", "-c", "news", *options)
    assert stored()["articles.csv#2"] == (
        "Headline: Goats\n\nBody: Goats climb trees in Morocco.",
        {"Year": 2019, "No": 1},
    )


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_delimiters_are_found(facets, stored, tmp_path, delimiter):
    text = "one, or two" if delimiter != "," else "one"
    (tmp_path / "a.csv").write_text(f"text{delimiter}n\n{text}{delimiter}5\n")
    facets("index", "a.csv", "-c", "news")
    assert list(stored().values()) == [(text, {"n": 5})]


def test_standard_input_is_json_or_what_format_says(facets, stored):
    facets("index", "-", "-c", "news", stdin=json.dumps([{"id": "a", "body": "text", "n": 0.5}]))
    assert stored()["a"] == ("text", {"n": 0.5})
    facets("index", "-", "-c", "news", "--format", "csv", stdin=ARTICLES)
    assert len(stored()) == 3


def test_parquet_with_its_types(facets, stored, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import datetime

    from pyarrow import parquet

    table = pyarrow.table(
        {
            "key": [7, 8],
            "abstract": ["On goats.", "On kites."],
            "day": [datetime.date(2020, 1, 2), None],
            "share": [0.5, float("nan")],
            "tags": [["a", "b"], []],
            "picture": [b"\x00", b"\x01"],
        }
    )
    parquet.write_table(table, tmp_path / "papers.parquet")
    done = facets("index", "papers.parquet", "-c", "news", "--id", "key")
    assert "columns of bytes are left out: picture" in done.stderr
    assert stored()["7"] == ("On goats.", {"day": "2020-01-02", "share": 0.5, "tags": ["a", "b"]})
    assert stored()["8"][1] == {"tags": []}
    (tmp_path / "not.parquet").write_bytes(b"no, it is not")
    assert "another format" in facets("index", "not.parquet", "-c", "news", code=2).stderr


def test_the_text_of_a_record_with_prose_is_each_column_after_its_name(facets, stored, tmp_path):
    row = "7,Ann,The screen stays black since Monday.,Change its input to HDMI by the second button.\n"
    (tmp_path / "a.csv").write_text(f"Nr,Customer,Problem,Resolution\n{row}")
    assert "text from the whole row" in facets("index", "a.csv", "-c", "news").stderr
    text, payload = stored()["a.csv#2"]
    assert text.split("\n\n")[:2] == ["Nr: 7", "Customer: Ann"]
    assert text.endswith("\n\nResolution: Change its input to HDMI by the second button.")
    assert payload["Nr"] == 7 and payload["Customer"] == "Ann"


def test_a_single_column_is_the_text(facets, stored, tmp_path):
    (tmp_path / "a.csv").write_text("Name\nAnn\nBo\n")
    assert "text from 'Name', " in facets("index", "a.csv", "-c", "news").stderr
    assert stored()["a.csv#2"][0] == "Ann"


def test_the_text_of_a_short_record_is_its_whole_row(facets, stored, tmp_path):
    (tmp_path / "a.csv").write_text("Name,Role,Age,Note\nSami,plumber,41,also on Sundays\nLotte,vet | nurse,,\n")
    assert "text from the whole row" in facets("index", "a.csv", "-c", "news").stderr
    text, payload = stored()["a.csv#2"]
    assert text == "| Name | Role | Age | Note |\n| --- | --- | --- | --- |\n| Sami | plumber | 41 | also on Sundays |"
    assert payload == {"Name": "Sami", "Role": "plumber", "Age": 41, "Note": "also on Sundays"}
    assert stored()["a.csv#3"][0].endswith("| Lotte | vet \\| nurse |")
    (tmp_path / "b.csv").write_text("Name,Phone\nAnn,555 123\nBo,555 456\n")
    facets("index", "b.csv", "-c", "news")
    text, payload = stored()["b.csv#2"]
    assert text == "| Name | Phone |\n| --- | --- |\n| Ann | 555 123 |" and payload == {
        "Name": "Ann",
        "Phone": "555 123",
    }


def test_all_columns_of_records_are_in_the_payload(facets, stored, tmp_path):
    facts = {f"M{number}": number / 7 for number in range(30)}
    rows = [
        {"id": f"s{row}", "uuid": "7", "Article": "Sensor", **facts, "Late": "x" * (row > 150)} for row in range(160)
    ]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    facets("index", "a.csv", "-c", "news")
    text, payload = stored()["s159"]
    assert payload == {"uuid": 7, "Article": "Sensor", **facts, "Late": "x"}
    assert text.startswith("| Article | M0 |") and text.endswith(" | x |")
    (tmp_path / "b.csv").write_text(",".join(f"g{i}" for i in range(101)) + "\n" + "5," * 100 + "6\n")
    facets("index", "b.csv", "-c", "news")
    assert stored()["b.csv#2"][0].endswith("\n\ng100: 6")


def test_a_long_line_of_utf8_is_known_wherever_its_beginning_ends(facets, stored, tmp_path):
    for shift in range(3):
        (tmp_path / "a.txt").write_text("x" * shift + "\u20ac " * 300_000, encoding="utf-8")
        assert "is not UTF-8" not in facets("index", "a.txt", "-c", "news", "--dry-run").stderr


# What goes wrong


def test_a_broken_row_costs_itself_alone(facets, stored, tmp_path):
    rows = ["text,n", "one,1", '"never closed,2', "three,3", "four,4,5", "five,5", '"six" x,6', "seven,7"]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    done = facets("index", "a.csv", "-c", "news", code=1)
    assert sorted(text for text, _ in stored().values()) == ["five", "one", "seven", "three"]
    found = {(item["line"], item["reason"]) for item in rejected(tmp_path / "a.csv.rejected.jsonl")}
    assert found == {(3, "broken_row"), (5, "broken_row"), (7, "broken_row")}
    assert "3 records were rejected, see a.csv.rejected.jsonl" in done.stderr
    messages = [item["message"] for item in rejected(tmp_path / "a.csv.rejected.jsonl")]
    assert "row has 3 fields, the header has 2" in messages


@pytest.mark.parametrize("encoding", [pytest.param("cp1252", marks=NEEDS_FILES), "utf-16", "utf-8-sig"])
def test_other_encodings_are_found_and_told(facets, stored, tmp_path, encoding):
    texts = [f"Das Caf\u00e9 in M\u00fcnchen \u00f6ffnet f\u00fcr G\u00e4ste um {i} Uhr." for i in range(30)]
    (tmp_path / "a.csv").write_bytes(("text\n" + "\n".join(texts) + "\n").encode(encoding))
    done = facets("index", "a.csv", "-c", "news")
    assert sorted(text for text, _ in stored().values()) == sorted(texts)
    assert ("is not UTF-8, read as" in done.stderr) == (encoding == "cp1252")


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["a.csv", "--text", "Boddy"], ["no column 'Boddy'", "No, Headline, Body", "did you mean 'Body'?"]),
        (["a.csv", "--encoding", "klingon"], ["unknown encoding 'klingon'"]),
        (["json.csv"], ["expected CSV, got JSON", "use --format jsonl or --format json"]),
        (["sheet.csv"], ["expected CSV, got a ZIP archive or an office document"]),
        (["pdf.txt"], ["expected text, got a PDF", "rename it to end in .pdf, or use --format pdf"]),
        (["pictures"], ["no readable file in this folder: it has .png (2)", "readable suffixes: .jsonl"]),
        (["-", "a.csv"], ["must be the only input"]),
        (["object.json"], ["no column holds texts", "the columns are rows"]),
        pytest.param(["not.pdf"], ["expected a PDF"], marks=NEEDS_FILES),
    ],
)
def test_mistakes_are_one_sentence(facets, stored, tmp_path, args, parts):
    (tmp_path / "a.csv").write_text(ARTICLES)
    (tmp_path / "sheet.csv").write_bytes(b"PK\x03\x04rest")
    (tmp_path / "json.csv").write_text('{"text": "a"}\n')
    (tmp_path / "object.json").write_text('{\n  "rows": []\n}\n')
    (tmp_path / "pdf.txt").write_bytes(b"%PDF-1.7")
    (tmp_path / "not.pdf").write_bytes(b"no, it is not")
    (tmp_path / "pictures").mkdir()
    for name in ("a.png", "b.png"):
        (tmp_path / "pictures" / name).write_bytes(b"\x89PNG")
    sentence = facets("index", *args, "-c", "news", code=2).stderr
    assert len(sentence.splitlines()) == 1
    assert all(part in sentence for part in parts), sentence
    error = json.loads(facets("--json", "index", *args, "-c", "news", code=2).stderr)["error"]
    assert error["code"] == "INVALID_ARGUMENT" and parts[0] in error["message"] + error.get("hint", "")
    assert stored() == {}


@NEEDS_FILES
def test_a_file_that_cannot_be_read_among_others_is_one_rejection(facets, stored, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.csv").write_bytes(b"")
    (tmp_path / "docs" / "b.csv").write_text("text\ngood\n")
    (tmp_path / "docs" / "c.pdf").write_bytes(b"no pdf")
    done = facets("index", "docs", "-c", "news", code=1)
    assert list(stored()) == ["b.csv#2"]
    other = facets("index", "docs", "-c", "news", "--rejected", "nowhere/rejected.jsonl", code=1)
    assert "1 document: " in other.stdout and "2 rejected" in other.stdout
    problem = "2 records were rejected; nowhere/rejected.jsonl cannot be written: No such file or directory"
    assert f"{problem} (--rejected FILE names another place)" in other.stderr
    assert [item["file"] for item in rejected(tmp_path / "index.rejected.jsonl")] == ["a.csv", "c.pdf"]
    assert "a.csv: the file is empty" in done.stderr


def test_dry_run_shows_the_first_documents(facets, stored, tmp_path):
    (tmp_path / "a.csv").write_text(ARTICLES)
    out = facets("index", "a.csv", "-c", "news", "--dry-run").stdout
    assert "a.csv#2" in out and "Goats climb" in out and '"Year": 2019' in out
    report = json.loads(facets("--json", "index", "a.csv", "-c", "news", "--dry-run").stdout)
    assert report["first_documents"][0]["payload"]["title"] == "Goats"
    assert stored() == {}


def test_without_the_reader_it_is_said_what_to_install(facets, tmp_path, monkeypatch):

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "pypdfium2" else found(name, *rest)
    )
    make_pdf(tmp_path / "a.pdf", ["Words."])
    assert "pip install 'multifacet-client[files]'" in facets("index", "a.pdf", "-c", "news", code=2).stderr
