"""What a stranger tries on files of his own: each case with what he should be told, and the exit code."""

import gzip
from importlib.util import find_spec

import pytest

NEEDS_FILES = pytest.mark.skipif(find_spec("lxml") is None, reason="the extra 'files' is not installed")

FILES = {
    "table.txt": b"id;name;text\n1;a;A dog barks.\n2;b;A cat sleeps.\n",
    "letter.txt": b"Dear Ann; thank you.\nIt rained.\nYours, Bob\n",
    "semicolons.csv": b'id;title;text\n1;First;"Rain, all day; long."\n2;Second;Sun.\n',
    "json.csv": b'{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n',
    "empty.csv": b"",
    "utf16.csv": "id,text\n1,Caf\u00e9\n".encode("utf-16"),
    "broken.jsonl": b'{"id": "a", "text": "A dog."}\n{"id": "b", "text": "A ca\n{"id": "c", "text": "A cow."}\n',
    "bomb.jsonl.gz": gzip.compress(b"x" * 20_000_000),
    "sheet.xlsx": b"PK\x03\x04nonsense",
    "folder/letter.txt": b"A letter about rain.",
    "folder/picture.png": b"\x89PNG\r\n\x1a\n",
    "folder/bad.pdf": b"%PDF-1.4 nonsense",
    "folder/bad.docx": b"PK\x03\x04nonsense",
}


@pytest.fixture(autouse=True)
def files(facets, tmp_path):
    """All of them, and an empty folder, where the command runs."""
    (tmp_path / "nothing").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)


@pytest.mark.parametrize(
    "asked",
    [
        *("embed letter.txt", "summarize letter.txt", "search letter.txt -c news", "rerank dog letter.txt"),
        *("similarity dog letter.txt", "recommend authors letter.txt"),
    ],
)
def test_a_name_of_a_file_is_no_text(facets, asked):
    assert "'letter.txt' is a file: \"$(cat letter.txt)\" gives its text" in facets(*asked.split(), code=2).stderr


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ("index table.txt -c news --format csv", 0, "2 documents: 2 added"),
        ("index letter.txt", 0, "1 document: 1 added"),
        ("index letter.txt -c nwes", 2, "'nwes' does not exist"),
        ("index semicolons.csv -c news", 0, "2 documents: 2 added"),
        ("index json.csv -c news", 2, "expected CSV, got JSON (use --format jsonl or --format json)"),
        ("index empty.csv -c news", 2, "empty.csv: is empty"),
        ("index utf16.csv -c news", 0, "1 document: 1 added"),
        ("index broken.jsonl -c news", 1, "1 record was rejected, see broken.jsonl.rejected.jsonl"),
        ("index bomb.jsonl.gz -c news", 1, "0 removed, 1 rejected"),
        ("index sheet.xlsx -c news", 2, "sheet.xlsx: is damaged or of another format than its name says"),
        pytest.param("index folder -c news", 1, "skipped files of other formats: .png (1)", marks=NEEDS_FILES),
        ("index nothing -c news", 2, "no readable file in this folder: it is empty"),
        ("serach dog", 2, "Did you mean 'search'?"),
        ("--target 127.0.0.1:1 --timeout-s 1 search dog -c news", 3, "at 127.0.0.1:1"),
    ],
)
def test_one_sentence_says_what_is_wrong_or_what_was_done(facets, asked, code, said):
    done = facets(*asked.split(), code=code)
    assert said in done.stdout + done.stderr
    if code > 1:
        (line,) = done.stderr.splitlines()
        assert line.startswith("facets: ")
        (line,) = facets("--json", *asked.split(), code=code).stderr.splitlines()
        assert line.startswith('{"error": ') and f'"exit_code": {code}' in line
