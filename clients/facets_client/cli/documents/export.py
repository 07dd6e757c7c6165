"""``facets export``."""

import csv
import gzip
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer

from facets_client.cli.bulk import ProgressOption
from facets_client.cli.options import WhereOption, parse_where
from facets_client.cli.output import count_of, print_json, progress_bar
from facets_client.cli.settings import settings_of
from facets_client.generated.types import Document
from facets_client.load.source import InputError
from facets_client.load.state import whole_file

_FORMATS = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet")
_OWN = ("id", "text")


def export(
    context: typer.Context,
    collection: Annotated[str, typer.Argument(help="Name of the collection.", show_default=False)],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help=f"{', '.join(_FORMATS)}; - writes JSON lines to standard output.")
    ],
    where: WhereOption = None,
    facets: Annotated[bool, typer.Option("--facets", help="With facet embeddings (JSON lines and Parquet).")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    progress: ProgressOption = None,
) -> None:
    """Write the documents of a collection to a file, which is whole or not there.

    JSON lines and CSV have a column for id, text and each field of the payload, as `facets index` reads them; nested
    values are JSON in CSV. Parquet (pip install 'multifacet-client[parquet]') holds payloads as JSON.

    \b
    Examples:
      facets export news news.jsonl.gz
      facets export news recent.csv --where 'year>=2024'
      facets export news - | jq .title
    """
    settings = settings_of(context)
    suffix = _export_suffix(file, facets=facets, force=force)
    condition = parse_where(where)
    with settings.connect(watched=False) as client, progress_bar(shown=progress, counted="documents") as bar:
        task = bar.add_task("", total=client.count_documents(collection, where=condition))

        def listed(*, is_counted: bool = True) -> Iterator[Document]:
            for document in client.list_documents(collection, where=condition, include_facets=facets):
                yield document
                bar.advance(task, 1 if is_counted else 0)

        with _target(file) as path:
            number = _write(path, suffix, listed, facets=facets)
    if settings.json and file != "-":
        print_json({"file": file, "num_documents": number})
    else:
        settings.note(f"wrote {count_of(number, 'document')} to {'standard output' if file == '-' else file}")


def _export_suffix(file: str, *, facets: bool, force: bool) -> str:
    suffix = ".jsonl" if file == "-" else next((one for one in reversed(_FORMATS) if file.endswith(one)), "")
    if not suffix:
        raise typer.BadParameter(f"FILE must end in {', '.join(_FORMATS)}, or be -, got {file!r}")
    if facets and suffix.startswith(".csv"):
        raise typer.BadParameter(f"--facets: CSV holds no embeddings, expected .jsonl or .parquet, got {file!r}")
    if os.path.lexists(file) and not force:
        raise typer.BadParameter(f"{file} is there already: --force replaces it")
    return suffix


@contextmanager
def _target(file: str) -> Iterator[Path]:
    """Where to write; at the end the file is whole, after an error it is not there."""
    if file == "-":
        yield Path(file)
        return
    try:
        with whole_file(file) as path:
            yield path
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}") from error


def _write(path: Path, suffix: str, listed: Callable[..., Iterator[Document]], *, facets: bool) -> int:
    if suffix == ".parquet":
        try:
            from facets_client.adapters.parquet import write_parquet
        except ImportError as error:
            raise typer.BadParameter(str(error)) from error
        return write_parquet(path, listed())
    with _text_file(path, is_packed=suffix.endswith(".gz")) as out:
        if suffix.startswith(".jsonl"):
            return _write_lines(out, listed(), facets=facets)
        # Which columns there are is known once every document has been seen.
        names = dict.fromkeys(name for document in listed(is_counted=False) for name in _row(document))
        return _write_csv(out, [*_OWN, *(name for name in names if name not in _OWN)], listed())


@contextmanager
def _text_file(path: Path, *, is_packed: bool) -> Iterator[IO[str]]:
    if str(path) == "-":
        yield sys.stdout
        return
    with gzip.open(path, "wb") if is_packed else path.open("wb") as raw:
        with io.TextIOWrapper(raw, encoding="utf-8", newline="") as out:
            yield out


def _row(document: Document) -> dict[str, object]:
    """A document as columns.

    Raises:
        InputError: Its payload has a field of the name of a column of ours.
    """
    doubled = next((name for name in _OWN if name in document.payload), None)
    if doubled:
        sentence = f"the payload of document {document.id!r} has a field {doubled!r}, which is a column of its own"
        raise InputError(f"{sentence}: export to .parquet")
    return {"id": document.id, "text": document.text, **document.payload}


def _write_lines(out: IO[str], documents: Iterable[Document], *, facets: bool) -> int:
    number = 0
    for document in documents:
        number += 1
        row = _row(document)
        if facets and document.facet_embeddings is not None:
            row["facet_embeddings"] = document.facet_embeddings.astype(float).tolist()
        out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return number


def _write_csv(out: IO[str], names: Sequence[str], documents: Iterable[Document]) -> int:
    number = 0
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for document in documents:
        number += 1
        row = _row(document)
        writer.writerow({name: value if isinstance(value, str) else _cell(value) for name, value in row.items()})
    return number


def _cell(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)
