"""``facets export``."""

import csv
import gzip
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated

import typer
from typer import Argument, Option

from facets_client.cli.options import CollectionOption, WhereOption, parse_where
from facets_client.cli.settings import settings_of
from facets_client.core.drawing import count_of, progress_bar
from facets_client.generated.types import Document
from facets_client.load.outputs import whole_file
from facets_client.load.source import InputError

_SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".parquet")
_OWN_COLUMNS = ("id", "text")


def export(
    context: typer.Context,
    file: Annotated[str, Argument(metavar="FILE", help=f"{', '.join(_SUFFIXES)}; -: JSON lines to standard output.")],
    collection: CollectionOption,
    where: WhereOption = None,
    facets: Annotated[bool, Option("--facets", help="Include facet embeddings (JSON lines, Parquet).")] = False,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the documents of a collection to a file.

    The file appears when it is complete. JSON lines and CSV have a column for id, text and each field of the
    payload, as `facets index` reads them; nested values are JSON in CSV. Parquet (pip install
    'multifacet-client[parquet]') holds payloads as JSON.

    \b
    Examples:
      facets export news.jsonl.gz -c news
      facets export recent.csv -c news --where 'year>=2024'
    """
    settings = settings_of(context)
    suffix = _suffix_of(file, facets=facets, force=force)
    condition = parse_where(where)
    with settings.connect() as client, progress_bar("documents", quiet=settings.quiet) as bar:
        task = bar.add_task("", total=client.count_documents(collection, where=condition))

        num_documents = 0

        def documents(*, is_counted: bool = True) -> Iterator[Document]:
            nonlocal num_documents
            for document in client.list_documents(collection, where=condition, include_facets=facets):
                yield document
                num_documents += is_counted
                bar.update(task, completed=num_documents)

        if file == "-":
            _write_json_lines(sys.stdout, documents(), facets=facets)
        else:
            try:
                with whole_file(file) as path:
                    _write(path, suffix, documents, facets=facets)
            except OSError as error:
                raise InputError(f"{file}: cannot be written: {error.strerror}") from error
    note = f"wrote {count_of(num_documents, 'document')} to {'standard output' if file == '-' else file}"
    if file == "-":
        settings.note(note)
    else:
        settings.done({"file": file, "num_documents": num_documents}, note)


def _suffix_of(file: str, *, facets: bool, force: bool) -> str:
    suffix = ".jsonl" if file == "-" else next((suffix for suffix in reversed(_SUFFIXES) if file.endswith(suffix)), "")
    if not suffix:
        raise typer.BadParameter(f"FILE must end in {', '.join(_SUFFIXES)}, or be -, got {file!r}")
    if facets and suffix.startswith(".csv"):
        raise typer.BadParameter(f"--facets: CSV holds no embeddings, expected .jsonl or .parquet, got {file!r}")
    if os.path.lexists(file) and not force:
        raise typer.BadParameter(f"{file} exists already: --force replaces it")
    return suffix


def _write(path: Path, suffix: str, documents: Callable[..., Iterator[Document]], *, facets: bool) -> None:
    if suffix == ".parquet":
        from facets_client.adapters.parquet import write_parquet

        write_parquet(path, documents())
        return
    with (gzip.open if suffix.endswith(".gz") else open)(path, "wt", encoding="utf-8", newline="") as out:
        if suffix.startswith(".jsonl"):
            _write_json_lines(out, documents(), facets=facets)
            return
        # The columns are known only after all documents have been read.
        names = dict.fromkeys(name for document in documents(is_counted=False) for name in _row(document))
        writer = csv.DictWriter(out, dict.fromkeys((*_OWN_COLUMNS, *names)), lineterminator="\n")
        writer.writeheader()
        for document in documents():
            writer.writerow({name: _cell(value) for name, value in _row(document).items()})


def _row(document: Document) -> dict[str, object]:
    """A document as one row of columns; InputError when its payload has a field called id or text."""
    clash = next((name for name in _OWN_COLUMNS if name in document.payload), None)
    if clash:
        message = f"the payload of document {document.id!r} has a field {clash!r}, which is a column of its own"
        raise InputError(f"{message}: export to .parquet")
    return {"id": document.id, "text": document.text, **document.payload}


def _write_json_lines(out: IO[str], documents: Iterable[Document], *, facets: bool) -> None:
    for document in documents:
        row = _row(document)
        if facets and document.facet_embeddings is not None:
            row["facet_embeddings"] = document.facet_embeddings.astype(float).tolist()
        out.write(json.dumps(row, ensure_ascii=False) + "\n")


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
