"""What pages of HTML, Markdown and PDF become: plain text with headings, items and rows marked, and no more."""

from importlib.util import find_spec

import pytest
from facets_client.documents.files import Columns, DocumentFiles
from facets_client.load.formats import find_files
from facets_client.load.rows import ReadOptions, Record
from facets_client.load.source import InputError
from made_docx import make_docx
from made_pdf import make_pdf

pytestmark = pytest.mark.skipif(
    not all(find_spec(name) for name in ("lxml", "mammoth", "markdown_it")), reason="the extra 'files' is not installed"
)


def documents(path):
    options = ReadOptions()
    with DocumentFiles(find_files([str(path)], options), Columns(), options) as files:
        *records, _ = files.read()
    return records


def read(path):
    """The texts of a file, or the reasons of its rejections."""
    return [record.item.text if isinstance(record, Record) else record.reason for record in documents(path)]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h2>Towns</h2><p>Three of\nthem.</p>", "## Towns\n\nThree of them."),
        (
            "<table><tr><th><th>People<th>Area</tr> <tr><td>Oslo</td> <td><p>709,000</p></td><td></td></tr></table>",
            "| | People | Area |\n| --- | --- | --- |\n| Oslo | 709,000 | |",
        ),
        ("<ul><li>a<ul><li><p>b</p></li></ul></li><li>c</li></ul>", "- a\n  - b\n- c"),
        ("<p>He said:</p><blockquote><p>No.</p></blockquote>", "He said:\n\n> No."),
        ("<p>Run</p><pre>a = 1\n  b</pre>", "Run\n\n```\na = 1\n  b\n```"),
        ("<table><tr><td><table><tr><td>in</td><td>ner</td></tr></table></td></tr></table>", "| in | ner |"),
        ("<p>\u0645\u0631\u062d\u0628\u0627</p>", "\u0645\u0631\u062d\u0628\u0627"),
    ],
    ids="heading table list quotation code nested arabic".split(),
)
def test_html_keeps_its_structure(tmp_path, html, expected):
    (tmp_path / "a.html").write_text(f'<html><head><meta charset="utf-8"></head><body>{html}</body></html>')
    (found,) = read(tmp_path / "a.html")
    assert found.replace("\n\n", "\n").split() == expected.replace("\n\n", "\n").split()
    assert found.count("\n- ") + found.count("\n| ") == expected.count("\n- ") + expected.count("\n| ")


def test_markdown_keeps_its_structure_without_badges_and_marks(tmp_path):
    (tmp_path / "a.md").write_text(
        "# Fog\n\n[![b](https://shields.io/x)](u)\n\nText *a* of\ntwo lines.\n\n- one\n  - two\n\n| a | b |\n|--|--|\n"
        "| 1 | 2 |\n\n> said\n\n```sh\nx  = 1\n```\n\n<p align=center>Hi <b>you</b></p>\n"
    )
    (found,) = read(tmp_path / "a.md")
    assert found == (
        "# Fog\n\nText a of two lines.\n\n- one\n  - two\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n> said\n\n```"
        "\nx  = 1\n```\n\nHi you"
    )


def test_a_pdf_loses_running_heads_and_numbers_of_pages_only(tmp_path):
    pages = [f"The harbour of Oslo\nPage text {word} of it\n{number}" for number, word in enumerate("abcd", start=7)]
    make_pdf(tmp_path / "a.pdf", pages)
    assert read(tmp_path / "a.pdf") == [f"Page text {word} of it" for word in "abcd"]
    make_pdf(tmp_path / "scan.pdf", ["", ""])
    with pytest.raises(InputError, match="need OCR first"):
        read(tmp_path / "scan.pdf")
    make_pdf(tmp_path / "b.pdf", ["One\ntwo\nthree", "Four\nfive\nsix"])
    assert read(tmp_path / "b.pdf") == ["One\ntwo\nthree", "Four\nfive\nsix"]


@pytest.mark.parametrize("name", ["LICENSE", "LICENSE-MIT", "notes-of-ann", "guide.rst"])
def test_texts_without_a_suffix_are_read(tmp_path, name):
    (tmp_path / name).write_text("Permission is hereby granted to gr\u00fc\u00dfen.", encoding="utf-8")
    assert read(tmp_path / name) == ["Permission is hereby granted to gr\u00fc\u00dfen."]


def styled(text, style="", more=""):
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{more}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'


def test_a_word_document_keeps_headings_items_and_tables(tmp_path):
    row = "<w:tr>{}</w:tr>".format
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>".format
    body = [
        styled("Cranes", "berschrift1"),
        "<w:p><w:r><w:t>A cra</w:t></w:r><w:r><w:t>ne fell</w:t><w:br/><w:t>in May.</w:t></w:r></w:p>",
        "<w:p><w:del><w:r><w:delText>Not this.</w:delText></w:r></w:del></w:p>",
        styled("Contents 3", "Verzeichnis1"),
        styled("First", "x", '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'),
        styled("Second", "x", '<w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr>'),
        "<w:tbl>"
        + row("<w:trPr><w:tblHeader/></w:trPr>" + cell("Town") + cell("People"))
        + row(cell("Oslo") + cell("709,000"))
        + "</w:tbl>",
        "<w:sdt><w:sdtContent>" + styled("A field.") + "</w:sdtContent></w:sdt>",
    ]
    styles = {"berschrift1": "heading 1", "Verzeichnis1": "toc 1", "x": "Normal"}
    make_docx(tmp_path / "a.docx", "".join(body), styles=styles)
    assert read(tmp_path / "a.docx") == [
        "# Cranes\n\nA crane fell in May.\n\n- First\n  - Second\n\n| Town | People |\n| --- | --- |\n"
        "| Oslo | 709,000 |\n\nA field."
    ]


def test_html_shows_its_main_part_without_menus_and_scripts(tmp_path):
    path = tmp_path / "a.html"
    path.write_text(
        "<html><head><title>A\n page</title><style>p {}</style></head><body><nav>Menu</nav><p>Before</p>"
        "<main><h1>Head</h1>One<br>two<aside>Aside</aside><svg><title>No</title></svg><ul><li>three</ul></main>"
        "<main>second</main><footer>Foot</footer></body></html>"
    )
    assert read(path) == ["# Head\n\nOne two\n\n- three"]


def test_html_that_is_nested_deeply_is_read(tmp_path):
    (tmp_path / "deep.html").write_text("<html><body>" + "<div>" * 50_000 + "hello" + "</div>" * 50_000)
    assert read(tmp_path / "deep.html") == ["hello"]
