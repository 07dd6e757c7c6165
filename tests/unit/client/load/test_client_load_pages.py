"""What pages of HTML, Markdown, Word and PDF become: plain text with headings, items and rows marked, and no more."""

from importlib.util import find_spec

import pytest
from facets_client.documents.files import Columns, DocumentFiles
from facets_client.load.formats import find_files
from facets_client.load.rows import ReadOptions
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
    return [record.item for record in records]


def read(path):
    return [document.text for document in documents(path)]


def styled(text, style="", more=""):
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{more}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'


def numbered(text, level):
    return styled(text, "x", f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>')


def row(*cells, more=""):
    return f"<w:tr>{more}{''.join(f'<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>' for cell in cells)}</w:tr>"


WORD = [
    styled("Cranes", "berschrift1"),
    "<w:p><w:r><w:t>A cra</w:t></w:r><w:r><w:t>ne fell</w:t><w:br/><w:t>in May.</w:t></w:r></w:p>",
    "<w:p><w:del><w:r><w:delText>Not this.</w:delText></w:r></w:del></w:p>",
    styled("Contents 3", "Verzeichnis1"),
    numbered("First", 0),
    numbered("Second", 1),
    f"<w:tbl>{row('Town', 'People', more='<w:trPr><w:tblHeader/></w:trPr>')}{row('Oslo', '709,000')}</w:tbl>",
    f"<w:sdt><w:sdtContent>{styled('A field.')}</w:sdtContent></w:sdt>",
]
STYLES = {"berschrift1": "heading 1", "Verzeichnis1": "toc 1", "x": "Normal"}
# File name, content, text.
PAGES = {
    "heading.html": ("<h2>Towns</h2><p>Three of\nthem.</p>", "## Towns\n\nThree of them."),
    "table.html": (
        "<table><tr><th><th>People<th>Area</tr> <tr><td>Oslo</td> <td><p>709,000</p></td><td></td></tr></table>",
        "|  | People | Area |\n| --- | --- | --- |\n| Oslo | 709,000 |  |",
    ),
    "list.html": ("<ul><li>a<ul><li><p>b</p></li></ul></li><li>c</li></ul>", "- a\n  - b\n- c"),
    "quotation.html": ("<p>He said:</p><blockquote><p>No.</p></blockquote>", "He said:\n\n> No."),
    "code.html": ("<p>Run</p><pre>a = 1\n  b</pre>", "Run\n\n```\na = 1\n  b\n```"),
    "nested.html": ("<table><tr><td><table><tr><td>in</td><td>ner</td></tr></table></td></tr></table>", "| in | ner |"),
    "arabic.html": ('<meta charset="utf-8"><p>\u0645\u0631\u062d\u0628\u0627</p>', "\u0645\u0631\u062d\u0628\u0627"),
    "main.html": (
        "<html><head><title>A\n page</title><style>p {}</style></head><body><nav>Menu</nav><p>Before</p>"
        "<main><h1>Head</h1>One<br>two<aside>Aside</aside><svg><title>No</title></svg><ul><li>three</ul></main>"
        "<main>second</main><footer>Foot</footer></body></html>",
        "# Head\n\nOne two\n\n- three",
    ),
    "deep.html": ("<html><body>" + "<div>" * 50_000 + "hello" + "</div>" * 50_000, "hello"),
    "a.md": (
        "# Fog\n\n[![b](https://shields.io/x)](u)\n\nText *a* of\ntwo lines.\n\n- one\n  - two\n\n| a | b |\n|--|--|\n"
        "| 1 | 2 |\n\n> said\n\n```sh\nx  = 1\n```\n\n<p align=center>Hi <b>you</b></p>\n",
        "# Fog\n\nText a of two lines.\n\n- one\n  - two\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n> said\n\n```"
        "\nx  = 1\n```\n\nHi you",
    ),
    "a.docx": (
        lambda path: make_docx(path, "".join(WORD), styles=STYLES),
        "# Cranes\n\nA crane fell in May.\n\n- First\n  - Second\n\n| Town | People |\n| --- | --- |\n"
        "| Oslo | 709,000 |\n\nA field.",
    ),
    **{
        name: (text, text)
        for name in ("LICENSE", "LICENSE-MIT", "notes-of-ann", "guide.rst")
        for text in ["To gr\u00fc\u00dfen."]
    },
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_keeps_its_structure_and_no_more(tmp_path, name):
    content, text = PAGES[name]
    if callable(content):
        content(tmp_path / name)
    else:
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert read(tmp_path / name) == [text]


def test_a_file_of_unknown_suffix_is_text_in_any_encoding(tmp_path):
    text = "Die M\u00f6wen fliegen \u00fcber den Hafen, und die M\u00e4nner schlafen."
    (tmp_path / "a.log").write_bytes(text.encode("latin-1"))
    assert read(tmp_path / "a.log") == [text]
    (tmp_path / "a.doc").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    with pytest.raises(InputError, match="expected text, got an old office document"):
        read(tmp_path / "a.doc")


def test_a_pdf_loses_running_heads_and_numbers_of_pages_only(tmp_path):
    words = [chr(ord("a") + number // 7) * (number % 7 + 1) for number in range(50)]
    pages = [f"The harbour of Oslo\nPage text {word} of it\n{number}" for number, word in enumerate(words, start=7)]
    make_pdf(tmp_path / "a.pdf", pages)
    assert read(tmp_path / "a.pdf") == [f"Page text {word} of it" for word in words]
    pages = [
        f"Exercise {number}\n\nText {word}\nof it\n\nNo. 3, page {number} of 2" for number, word in [(1, "a"), (2, "b")]
    ]
    make_pdf(tmp_path / "two.pdf", pages)
    assert read(tmp_path / "two.pdf") == ["Exercise 1\n\nText a\nof it", "Exercise 2\n\nText b\nof it"]
    make_pdf(tmp_path / "scan.pdf", ["", ""])
    with pytest.raises(InputError, match="need OCR first"):
        read(tmp_path / "scan.pdf")
    make_pdf(tmp_path / "b.pdf", ["One\ntwo\nthree", "Four\nfive\nsix"])
    assert read(tmp_path / "b.pdf") == ["One\ntwo\nthree", "Four\nfive\nsix"]


def test_paragraphs_of_a_pdf_are_set_apart_as_on_the_page(tmp_path):
    pages = ["Care\n\nWipe the\ndoor.\n\nFaults\n\nF1\nF2\n\nCall us\nor write.", "One\n\nTwo\n\nThree"]
    make_pdf(tmp_path / "a.pdf", pages)
    assert read(tmp_path / "a.pdf") == [pages[0], "One\nTwo\nThree"]  # lines of equal distances stay together


def test_a_table_of_a_pdf_has_rows_with_its_header(tmp_path):
    table = "Model\tWeight\tPrice\nX-20\t2.8 kg\t199 EUR\n\nX-20S\t3.1 kg\t259 EUR\n\t\tand more"
    form = "Name\tTown\tDate\nStreet\tPhone\tMail\nPlace\tSign\tSeal"
    make_pdf(tmp_path / "a.pdf", [f"Prices\n\n{table}\n\nCall us.", form])
    rows = ["| Model | Weight | Price |", "| --- | --- | --- |", "| X-20 | 2.8 kg | 199 EUR |"]
    rows += ["| X-20S | 3.1 kg | 259 EUR and more |"]
    assert read(tmp_path / "a.pdf") == ["\n".join(["Prices\n", *rows, "\nCall us."]), form.replace("\t", " ")]


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("The harbour", "The harbour"),
        ("Untitled Hearts", "Untitled Hearts"),
        *((one, None) for one in ("untitled", "Untitled 3", "(anonymous)", "Microsoft Word - a b.doc", "a.DOCX", " ")),
    ],
)
def test_a_title_that_a_program_made_up_is_none(tmp_path, title, shown):
    make_pdf(tmp_path / "a.pdf", ["One"], title)
    assert documents(tmp_path / "a.pdf")[0].payload.get("title") == shown
