"""Office documents and books: Word, PowerPoint, sheets, OpenDocument and EPUB."""

import io
import posixpath
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from facets_client.load.pages import MAX_FILE_BYTES, Blocks, HtmlPage, document, given_title, read_whole
from facets_client.load.rows import TEXT_NAMES, Items, Part, ReadOptions, Row, Rows
from facets_client.load.source import InputError, Source
from facets_client.load.tables import column_names, plain

_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_MAX_RATIO = 100  # of the sizes of a part over 64 MiB, unpacked and stored; sheets rarely reach 20
_ROWS_PER_DOCUMENT = 50  # of a sheet that has no column of texts
_MIN_TEXT_CHARS = 20  # on average, of a column of texts
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
# Mammoth's own styles cover headings and lists.
_WORD_STYLES = "\n".join(
    ["p[style-name='Title'] => h1:fresh", "p[style-name='Subtitle'] => p:fresh", "p[style-name='TOC Heading'] => !"]
    + [f"p[style-name='{case} {level}'] => !" for case in ("toc", "TOC") for level in range(1, 10)]
)


def read_docx(source: Source, options: ReadOptions) -> Rows:
    """The text of a Word document with headings, lists and tables, without headers, comments and deleted text."""
    from mammoth import convert_to_html

    file = _open(source, options, "Word document")
    with ZipFile(file) as archive:
        title = _xml_title(archive, "docProps/core.xml")
    html = convert_to_html(file, style_map=_WORD_STYLES, convert_image=lambda image: []).value
    yield from HtmlPage(html, first_row_is_header=True).blocks.document(title)


def _open(source: Source, options: ReadOptions, kind: str) -> BinaryIO:
    head = source.peek(4)
    if head != b"PK\x03\x04":
        is_old = head == _OLD_OFFICE
        got = "one that is encrypted, or of an old version: save it without a password" if is_old else "something else"
        raise InputError(f"{source.name}: expected a {kind}, got {got}")
    return _checked(source, options, is_text=True)


def _checked(source: Source, options: ReadOptions, *, is_text: bool) -> BinaryIO:
    """The file, unless its ZIP directory tells of too large parts. No reader unpacks more than the directory tells."""
    file = source.seekable(options.unpacked_bytes)
    with suppress(BadZipFile), ZipFile(file) as archive:  # an old workbook is no archive
        parts = archive.infolist()
        for part in parts:
            is_bomb = part.file_size > _MAX_RATIO * part.compress_size or (is_text and part.filename.endswith(".xml"))
            if part.file_size > MAX_FILE_BYTES and is_bomb:
                size = f"{part.filename} unpacks to {part.file_size:,} bytes"
                raise InputError(f"{source.name}: {size}, the limit is {MAX_FILE_BYTES:,}")
        if sum(part.file_size for part in parts) > options.unpacked_bytes:
            raise InputError(f"{source.name}: unpacks to more than the limit, {options.unpacked_bytes:,} bytes")
    file.seek(0)
    return file


def _xml(archive: ZipFile, name: str) -> Any:
    """A part of a document. External entities are not loaded, and internal ones not expanded."""
    from lxml.etree import XML, XMLParser

    return XML(_part(archive, name), XMLParser(resolve_entities=False, no_network=True))


def _part(archive: ZipFile, name: str) -> bytes:
    with archive.open(name) as part:
        return read_whole(part, name)


def _xml_title(archive: ZipFile, name: str) -> str:
    found = _xml(archive, name).iter(_TITLE) if name in archive.namelist() else ()
    return next((given_title(element.text) for element in found if element.text), "")


def read_pptx(source: Source, options: ReadOptions) -> Rows:
    """The slides of a presentation, each with its title, text, tables and notes."""
    from pptx import Presentation

    deck = Presentation(_open(source, options, "presentation"))
    title = given_title(deck.core_properties.title)
    for number, slide in enumerate(deck.slides, start=1):
        blocks = Blocks()
        heading = slide.shapes.title
        if heading is not None:
            blocks.add(heading.text_frame.text, kind="heading")
        _add_shapes(blocks, [shape for shape in slide.shapes if heading is None or shape.shape_id != heading.shape_id])
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text
            blocks.add(f"Notes: {notes}" if notes.strip() else "")
        yield from blocks.document(blocks.first_heading() or title, number, slide=number)


def _add_shapes(blocks: Blocks, shapes: Any) -> None:
    for shape in shapes:
        role = str(shape.placeholder_format.type) if shape.is_placeholder else ""
        if hasattr(shape, "shapes"):  # a group
            _add_shapes(blocks, shape.shapes)
        elif getattr(shape, "has_table", False):
            for index, row in enumerate(shape.table.rows):
                blocks.add_row([cell.text for cell in row.cells], is_header=index == 0)
        elif shape.has_text_frame and not role.startswith(("SLIDE_NUMBER", "FOOTER", "DATE", "HEADER")):
            is_list = role.startswith(("BODY", "OBJECT"))
            for paragraph in shape.text_frame.paragraphs:
                blocks.add(paragraph.text, kind="item" if is_list or paragraph.level else "", depth=paragraph.level + 1)


def read_sheets(source: Source, options: ReadOptions) -> Items:
    """The sheets of a workbook: rows where a column holds texts, else documents with a table of up to 50 rows."""
    from python_calamine import CalamineWorkbook, SheetTypeEnum

    workbook = CalamineWorkbook.from_filelike(_with_types(_checked(source, options, is_text=False)))
    for sheet in workbook.sheets_metadata:
        if sheet.typ == SheetTypeEnum.WorkSheet:
            rows = [[_cell(value) for value in row] for row in workbook.get_sheet_by_name(sheet.name).to_python()]
            yield from _sheet(sheet.name, rows, {name.casefold() for name in options.text})


_UNTYPED_CELL = re.compile(rb"<table:table-cell(?=[\s>])(?![^>]*value-type)(?=[^>]*>\s*<text:p)")


def _with_types(file: BinaryIO) -> BinaryIO:
    """The file; of OpenDocument a copy in which cells without a type, which Calamine leaves out, are strings."""
    with suppress(BadZipFile, KeyError), ZipFile(file) as archive:
        content, number = _UNTYPED_CELL.subn(rb'\g<0> office:value-type="string"', archive.read("content.xml"))
        if number:
            typed = io.BytesIO()
            with ZipFile(typed, "w") as copy:
                copy.writestr("content.xml", content)
                for name in {*archive.namelist()} - {"content.xml"}:
                    copy.writestr(name, archive.read(name))
            file = typed
    file.seek(0)
    return file


def _cell(value: Any) -> Any:
    value = plain(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _sheet(name: str, rows: Sequence[Sequence[Any]], asked: set[str]) -> Items:
    """A sheet; rows above the first one with two values are its title."""
    lines = [(number, row) for number, row in enumerate(rows, start=1) if any(value != "" for value in row)]
    first = next((index for index, (_, row) in enumerate(lines) if sum(value != "" for value in row) > 1), len(lines))
    above = [str(value) for _, row in lines[:first] for value in row if value != ""]
    if not lines:
        return
    yield Part(name)
    if first == len(lines):
        yield document("\n\n".join(above), name, lines[0][0], key=str(lines[0][0]), sheet=name)
        return
    names = column_names([str(value) for value in lines[first][1]])
    texts = [
        len(str(row[index]))
        for index, column in enumerate(names)
        for _, row in lines[first + 1 :]
        if column.casefold() in TEXT_NAMES and row[index] != ""
    ]
    if asked.intersection(map(str.casefold, names)) or sum(texts) > _MIN_TEXT_CHARS * len(texts):
        for number, row in lines[first + 1 :]:
            fields = {column: value for column, value in zip(names, row, strict=False) if value != ""}
            yield Row(fields, number)
        return
    for start in range(first + 1, max(len(lines), first + 2), _ROWS_PER_DOCUMENT):
        blocks = Blocks()
        blocks.add(name, kind="heading")
        for text in above:
            blocks.add(text)
        blocks.add_row([str(value) for value in lines[first][1]], is_header=True)
        for _, row in lines[start : start + _ROWS_PER_DOCUMENT]:
            blocks.add_row([str(value) for value in row])
        number = lines[min(start, len(lines) - 1)][0]
        yield document(blocks.text(), " ".join([name, *above[:1]]), number, key=str(number), sheet=name)


# Elements of OpenDocument as elements of HTML; others only hold some of these.
_TAGS = {
    **{"p": "p", "list": "ul", "list-item": "li", "list-header": "li", "table": "table", "table-row": "tr"},
    **{"table-cell": "td", "covered-table-cell": "td", "line-break": "br", "notes": "section", "note-body": "p"},
    **{"annotation": "aside", "tracked-changes": "aside", "note-citation": "aside", "table-of-content": "aside"},
    **{"forms": "aside", "desc": "aside"},
}


def read_opendocument(source: Source, options: ReadOptions) -> Rows:
    """A text document, or the slides of a presentation with their notes."""
    with ZipFile(_open(source, options, "OpenDocument file")) as archive:
        body = _xml(archive, "content.xml")
        title = _xml_title(archive, "meta.xml")
    slides = list(body.iter("{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}page"))
    for number, part in enumerate(slides or [body], start=1):
        blocks = HtmlPage(_as_html(part), first_row_is_header=True).blocks
        if slides:
            yield from blocks.document(blocks.first_heading() or title, number, slide=number)
        else:
            yield from blocks.document(title)


def _as_html(root: Any) -> str:
    from lxml.etree import QName, tostring

    for element in root.iter("*"):
        name = QName(element).localname
        attributes = {QName(key).localname: value for key, value in element.attrib.items()}
        level = attributes.get("outline-level", "1")
        element.tag = f"h{min(6, int(level))}" if name == "h" and level.isdigit() else _TAGS.get(name, "other")
        if name == "frame" and attributes.get("class") == "title":
            element.tag = "h1"
        elif name == "p" and next(element.iterancestors("h1"), None) is not None:
            element.tag = "other"
        elif name in ("s", "tab"):
            element.text = " "
    return str(tostring(root, encoding="unicode", method="html", with_tail=False))


def read_epub(source: Source, options: ReadOptions) -> Rows:
    """The chapters of a book."""
    with ZipFile(_open(source, options, "book in EPUB")) as archive:
        package_name = next(
            element.get("full-path") for element in _xml(archive, "META-INF/container.xml").iter("{*}rootfile")
        )
        package = _xml(archive, package_name)
        book = next((" ".join(element.text.split()) for element in package.iter(_TITLE) if element.text), "")
        files: dict[str, Any] = {item.get("id"): item for item in package.iter("{*}item")}
        names = set(archive.namelist())
        for number, reference in enumerate(package.iter("{*}itemref"), start=1):
            item = files.get(reference.get("idref"), {})
            path = posixpath.join(posixpath.dirname(package_name), unquote(item.get("href", "")))
            path = posixpath.normpath(path)
            if path in names and "nav" not in (item.get("properties") or "").split():
                blocks = HtmlPage(_part(archive, path).decode("utf-8", "replace")).blocks
                yield from blocks.document(blocks.first_heading() or book, number, book=book, chapter=number)
