"""Options and arguments that several commands share: texts and pairs, their files, conditions on payloads."""

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from typer import Argument, Option

from facets_client.documents.adding import DEFAULT_COLLECTION
from facets_client.documents.files import Columns, DocumentFiles
from facets_client.filters import AllOf, Contains, Equals, Exists, Filter, NoneOf, OneOf, Range, Scalar
from facets_client.generated.types import Document
from facets_client.load.formats import FORMATS, find_files, format_of_name
from facets_client.load.rows import ReadOptions, Record, Rejection, has_undecodable
from facets_client.load.source import DAMAGED, InputError, Source, detect_encoding

Texts = Annotated[list[str] | None, Argument(metavar="[TEXT]...", help="One or more texts.")]
FileOption = Annotated[
    str | None,
    Option(
        "--file",
        "-f",
        help="File of texts: each line of plain text, each document of other formats; -: lines of standard input.",
    ),
]
TextFileOption = Annotated[
    str | None,
    Option("--file", "-f", help="Document, in a format that facets index reads; -: plain text from standard input."),
]
PairsFileOption = Annotated[
    str | None, Option("--file", "-f", help="File of pairs with a tab between; -: standard input.")
]
ModelOption = Annotated[str, Option(help="Name of the model.  [default: the server's]")]
CollectionOption = Annotated[
    str,
    Option(
        "--collection",
        "-c",
        envvar="FACETS_COLLECTION",
        help=f"The collection.  [default: {DEFAULT_COLLECTION}]",
        show_default=False,
        default_factory=lambda: DEFAULT_COLLECTION,
    ),
]
TopKOption = Annotated[int | None, Option("--top-k", "-k", help="Number of results.")]
SearchFieldOption = Annotated[
    list[str] | None,
    Option(
        "--search-field",
        metavar="FIELD[:WEIGHT]",
        help="Payload field to search along with the text, and the weight of its words (default 2). Repeatable; "
        "'' for none.  [default: title, subject, headline, heading, name; answer, resolution, solution]",
    ),
]
LanguageOption = Annotated[
    str,
    Option(
        metavar="CODE",
        help="Language of the texts, whose stems and stop words searches use, such as de.  [default: detected]",
    ),
]
WhereOption = Annotated[
    list[str] | None,
    Option(
        "--where",
        "-w",
        metavar="CONDITION",
        help="FIELD=VALUE, also !=, <, <=, >, >=; FIELD=A|B: one of these; FIELD~VALUE: the list contains it; FIELD: "
        "exists; !FIELD: is missing. Dots reach into objects; a key with a dot stands in double quotes. Repeat to "
        "require several.",
    ),
]


def parse_search_fields(options: Sequence[str] | None) -> dict[str, float] | None:
    """Fields and weights; None if the option is not set."""
    if options is None:
        return None
    weights: dict[str, float] = {}
    for option in filter(None, options):
        name, colon, weight = ("", "", "") if option.endswith('"') else option.rpartition(":")
        try:
            weights[name if colon else option] = float(weight) if colon else 2.0
        except ValueError as error:
            raise typer.BadParameter(f"--search-field expects FIELD or FIELD:WEIGHT, got {option!r}") from error
    return weights


def check_is_text(text: str) -> str:
    """Returns the text; rejects the name of a file and says what to do instead."""
    if os.path.isfile(text):  # unlike Path.is_file, it takes a name of any length
        raise typer.BadParameter(f'{text!r} is a file: "$(cat {shlex.quote(text)})" gives its text')
    return text


def texts_from(texts: list[str] | None, file: str | None) -> Iterator[str]:
    """The texts from the command line; or of a file: the lines of a plain text, the documents of another format."""
    if bool(texts) == (file is not None):
        raise typer.BadParameter("expected texts, or --file FILE")
    if texts:
        return map(check_is_text, texts)
    file = file or "-"
    if file != "-" and format_of_name(file) not in (None, FORMATS["text"]):
        return (document.text for document in _documents(file))
    return (line.strip() for _, line in lines_of_file(file))


def document_from(text: str | None, file: str | None) -> str:
    """The text from the command line or a file."""
    if (text is None) == (file is None):
        raise typer.BadParameter("expected one text, or --file FILE")
    if text is not None and os.path.isfile(text):
        raise typer.BadParameter(f"{text!r} is a file: --file {shlex.quote(text)} reads it")
    return text_of_file(file or "-") if text is None else text


def text_of_file(name: str) -> str:
    """A whole document as one text; ``-`` is plain text from standard input."""
    form = format_of_name(name)
    if form is not None and form.holds not in ("text", "pages"):
        hint = f"facets index {shlex.quote(name)} -c NAME stores them for facets search"
        raise InputError(f"{name}: expected one document, got {form.name}, which holds many", hint=hint)
    between = "\f" if form is FORMATS["pdf"] else "\n\n"  # a sentence may continue on the next page
    return between.join(document.text for document in _documents(name))


def _documents(name: str) -> Iterator[Document]:
    """The documents of a file, as ``facets index`` reads them."""
    options = ReadOptions(format="text" if name == "-" else None, note=_note)
    if os.path.isdir(name):
        raise InputError(f"{name}: expected a file, got a folder")
    with DocumentFiles(find_files([name], options), Columns(), options) as source:
        for record in source.read():
            if isinstance(record, Rejection):
                raise InputError(record.message if name in record.message else f"{name}: {record.message}")
            if isinstance(record, Record):
                yield record.item


def names_of_file(name: str) -> list[str]:
    """Distinct names or ids in a file, one per line; ``-`` is standard input."""
    return list(dict.fromkeys(line.strip() for _, line in lines_of_file(name)))


def pairs_from(first: str | None, second: str | None, file: str | None) -> list[tuple[str, str]]:
    """The pair from the command line, or the pairs from a file."""
    if file is None:
        if first is None or second is None:
            raise typer.BadParameter("expected two texts, or --file FILE")
        return [(check_is_text(first), check_is_text(second))]
    if first is not None:
        raise typer.BadParameter("expected two texts or --file FILE, got both")
    pairs = []
    for where, line in lines_of_file(file, blanks=" "):
        texts = line.split("\t")
        if len(texts) != 2 or not all(map(str.strip, texts)):
            raise InputError(f"{where}: expected two texts with a tab between, got {line[:60]!r}")
        pairs.append((texts[0], texts[1]))
    return pairs


def lines_of_file(name: str, *, blanks: str | None = None) -> Iterator[tuple[str, str]]:
    """Position and text of each line, except lines of only ``blanks`` characters (by default white space)."""
    is_empty = True
    with Source(name) as source:
        encoding = detect_encoding(name, source.text_head("lines of text"), "", _note)
        try:
            for number, line in enumerate(source.text(encoding), start=1):
                if has_undecodable(line):
                    raise InputError(f"{name}, line {number}: is not {encoding}")
                if line.strip("\r\n").strip(blanks):
                    is_empty = False
                    yield f"{name}, line {number}", line.rstrip("\r\n")
        except DAMAGED as error:
            raise InputError(f"{name}: is cut off or damaged: {error}") from error
    if is_empty:
        raise InputError(f"{name}: expected at least one line with text, got none")


def _note(sentence: str) -> None:
    typer.echo(sentence.removesuffix(" (--encoding overrides this)"), err=True)


_CONDITION = re.compile(r'(?P<field>(?:"[^"]*"|[^"=!<>~])+?)\s*(?P<operator>!=|<=|>=|==|=|<|>|~)\s*(?P<value>.*)', re.S)
_FIELD = re.compile(r'(?:"[^"]+"|[^"=!<>~:\s])+')  # a colon would be a mistake, such as owner:Jo
_BOUNDS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


def parse_where(conditions: Sequence[str] | None) -> Filter | None:
    """The filter that requires all conditions, whose values are JSON or else strings; None if there are none."""
    if not conditions:
        return None
    filters = tuple(_parse_condition(condition.strip()) for condition in conditions)
    return filters[0] if len(filters) == 1 else AllOf(filters)


def _parse_condition(condition: str) -> Filter:
    match = _CONDITION.fullmatch(condition)
    if not match:
        field = condition.removeprefix("!").strip()
        if not _FIELD.fullmatch(field):
            rule = "FIELD=VALUE or the like; alone, a field whose name has spaces stands in double quotes"
            raise typer.BadParameter(f"--where expects {rule}; got {condition!r}")
        return Exists(field, not condition.startswith("!"))
    field, operator, value = match["field"], match["operator"], match["value"]
    if value.startswith(("=", "<", ">")):
        rule = f"expects one operator, got {condition!r}; a value that begins with {value[0]} stands in double quotes"
        raise typer.BadParameter(f"--where {rule}")
    if operator in _BOUNDS:
        bound = _scalar(value)
        if bound in (None, "") or isinstance(bound, bool):
            raise typer.BadParameter(f"--where {field}{operator} expects a number or a string, got {value!r}")
        return Range(field, **{_BOUNDS[operator]: bound})
    if operator == "~":
        return Contains(field, _scalar(value))
    values = [_scalar(value)] if value.startswith('"') else [_scalar(part) for part in value.split("|")]
    equal: Filter = Equals(field, values[0]) if len(values) == 1 else OneOf(field, values)
    return NoneOf((equal,)) if operator == "!=" else equal


def _scalar(text: str) -> Scalar:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str | int | float | bool | None) else text
