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

from facets_client.cli.options import ProgressOption, WhereOption, parse_where
from facets_client.cli.output import count_of, print_json, progress_bar
from facets_client.cli.settings import settings_of
from facets_client.generated.types import Document
from facets_client.load.source import InputError
from facets_client.load.state import whole_file

_SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet")
_OWN_COLUMNS = ("id", "text")


def export(
    context: typer.Context,
    collection: Annotated[str, typer.Argument(help="Name of the collection.")],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help=f"{', '.join(_SUFFIXES)}; -: JSON lines to standard output.")
    ],
    where: WhereOption = None,
    facets: Annotated[bool, typer.Option("--facets", help="Include facet embeddings (JSON lines, Parquet).")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    progress: ProgressOption = None,
) -> None:
    """Write the documents of a collection to a file.

    The file appears when it is complete. JSON lines and CSV have a column for id, text and each field of the
    payload, as `facets index` reads them; nested values are JSON in CSV. Parquet (pip install
    'multifacet-client[parquet]') holds payloads as JSON.

    \b
    Examples:
      facets export news news.jsonl.gz
      facets export news recent.csv --where 'year>=2024'
    """
    settings = settings_of(context)
    suffix = _suffix_of(file, facets=facets, force=force)
    condition = parse_where(where)
    with settings.connect() as client, progress_bar(shown=progress, counted="documents") as bar:
        task = bar.add_task("", total=client.count_documents(collection, where=condition))

        def documents(*, is_counted: bool = True) -> Iterator[Document]:
            for document in client.list_documents(collection, where=condition, include_facets=facets):
                yield document
                bar.advance(task, 1 if is_counted else 0)

        if file == "-":
            num_documents = _write_json_lines(sys.stdout, documents(), facets=facets)
        else:
            try:
                with whole_file(file) as path:
                    num_documents = _write(path, suffix, documents, facets=facets)
            except OSError as error:
                raise InputError(f"{file}: cannot be written: {error.strerror}") from error
    if settings.json and file != "-":
        print_json({"file": file, "num_documents": num_documents})
    else:
        target = "standard output" if file == "-" else file
        settings.note(f"wrote {count_of(num_documents, 'document')} to {target}")


def _suffix_of(file: str, *, facets: bool, force: bool) -> str:
    suffix = ".jsonl" if file == "-" else next((suffix for suffix in reversed(_SUFFIXES) if file.endswith(suffix)), "")
    if not suffix:
        raise typer.BadParameter(f"FILE must end in {', '.join(_SUFFIXES)}, or be -, got {file!r}")
    if facets and suffix.startswith(".csv"):
        raise typer.BadParameter(f"--facets: CSV holds no embeddings, expected .jsonl or .parquet, got {file!r}")
    if os.path.lexists(file) and not force:
        raise typer.BadParameter(f"{file} exists already: --force replaces it")
    return suffix


def _write(path: Path, suffix: str, documents: Callable[..., Iterator[Document]], *, facets: bool) -> int:
    if suffix == ".parquet":
        from facets_client.adapters.parquet import write_parquet

        return write_parquet(path, documents())
    with _text_file(path, is_compressed=suffix.endswith(".gz")) as out:
        if suffix.startswith(".jsonl"):
            return _write_json_lines(out, documents(), facets=facets)
        # The columns are known only after all documents have been read.
        names = dict.fromkeys(name for document in documents(is_counted=False) for name in _row(document))
        columns = [*_OWN_COLUMNS, *(name for name in names if name not in _OWN_COLUMNS)]
        return _write_csv(out, columns, documents())


@contextmanager
def _text_file(path: Path, *, is_compressed: bool) -> Iterator[IO[str]]:
    with gzip.open(path, "wb") if is_compressed else path.open("wb") as raw:
        with io.TextIOWrapper(raw, encoding="utf-8", newline="") as out:
            yield out


def _row(document: Document) -> dict[str, object]:
    """A document as one row of columns.

    Raises:
        InputError: Its payload has a field called id or text.
    """
    clash = next((name for name in _OWN_COLUMNS if name in document.payload), None)
    if clash:
        message = f"the payload of document {document.id!r} has a field {clash!r}, which is a column of its own"
        raise InputError(f"{message}: export to .parquet")
    return {"id": document.id, "text": document.text, **document.payload}


def _write_json_lines(out: IO[str], documents: Iterable[Document], *, facets: bool) -> int:
    num_documents = 0
    for document in documents:
        num_documents += 1
        row = _row(document)
        if facets and document.facet_embeddings is not None:
            row["facet_embeddings"] = document.facet_embeddings.astype(float).tolist()
        out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return num_documents


def _write_csv(out: IO[str], columns: Sequence[str], documents: Iterable[Document]) -> int:
    num_documents = 0
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for document in documents:
        num_documents += 1
        writer.writerow({name: _cell(value) for name, value in _row(document).items()})
    return num_documents


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
