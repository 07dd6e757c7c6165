"""``facets index``."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from facets_client.cli.bulk import (
    BatchOption,
    BulkInput,
    ProgressOption,
    RejectedOption,
    ResumeOption,
    WaitOption,
    WindowOption,
    bulk_input,
    telling_waits,
)
from facets_client.cli.options import SearchFieldOption, parse_search_fields
from facets_client.cli.output import count_of, documents_table, print_json, stdout
from facets_client.cli.settings import settings_of
from facets_client.client import FacetsClient
from facets_client.core.extras import require_extra
from facets_client.documents.bulk import IndexTask, document_batches
from facets_client.documents.encoding import EncodedBy
from facets_client.errors import AlreadyExistsError, NotFoundError
from facets_client.generated.types import ModelVersion
from facets_client.load.batches import Place, RejectedFile, StateFile, default_state_path
from facets_client.load.files import ColumnChoice, DocumentFiles, MadeIds
from facets_client.load.formats import FormatName, find_files
from facets_client.load.records import ReadOptions, Record, Rejection
from facets_client.load.runner import BulkReport, BulkSettings, call_patiently, check_batches

if TYPE_CHECKING:
    from facets_client.adapters.encoded import EncodedDocuments

_FIRST_DOCUMENTS = 3  # that a dry run shows
_MAX_NOTES = 20  # about files, of thousands of which each may need one

FilesArgument = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="Files, folders, 'patterns'; - reads standard input.")
]
TextOption = Annotated[
    list[str] | None,
    typer.Option("--text", "--text-field", metavar="COLUMN", help="Column of the text; several are joined."),
]
IdOption = Annotated[str, typer.Option("--id", "--id-field", metavar="COLUMN", help="Column of the id.")]
PayloadOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Column of the payload.  [default: all others]")
]
IdsOption = Annotated[MadeIds | None, typer.Option(help="Make ids: file and row, or digest of text.")]
FormatOption = Annotated[FormatName | None, typer.Option("--format", help="Of all files.  [default: by the suffix]")]
TitleOption = Annotated[str, typer.Option(metavar="COLUMN", help="Column of the title.")]
EncodingOption = Annotated[str, typer.Option(help="Of texts.  [default: found out]")]
DelimiterOption = Annotated[str, typer.Option(help="Between values.  [default: found out]")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Stop with the first rejected record.")]
LimitOption = Annotated[int, typer.Option(help="Stop after this many records; 0: all.", min=0)]


def index(
    context: typer.Context,
    collection: Annotated[str, typer.Option("--collection", "-c", help="Where to store.", show_default=False)],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Files, folders, 'patterns'; - reads standard input."),
    ] = None,
    from_encoded: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="In place of files: what facets encode has written.")
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Make the collection if it is not there.")] = False,
    model: Annotated[str, typer.Option(help="Model of a collection made by --create.")] = "",
    search_field: SearchFieldOption = None,
    text: TextOption = None,
    title: TitleOption = "",
    id_column: IdOption = "",
    payload: PayloadOption = None,
    ids: IdsOption = None,
    form: FormatOption = None,
    encoding: EncodingOption = "",
    delimiter: DelimiterOption = "",
    batch_size: BatchOption = 64,
    window: WindowOption = 8,
    rejected: RejectedOption = None,
    strict: StrictOption = False,
    resume: ResumeOption = True,
    state: Annotated[Path | None, typer.Option(help="Where to keep the place.  [default: in XDG_STATE_HOME]")] = None,
    max_wait_s: WaitOption = 300.0,
    limit: LimitOption = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read, check, show the first ones, send nothing.")] = False,
    progress: ProgressOption = None,
) -> None:
    """Load documents: JSON lines, JSON arrays, CSV, TSV, Parquet, Arrow, text, Markdown, HTML, PDF; also compressed.

    Columns called text, body, content, abstract, ... hold the text unless --text says otherwise; what becomes of
    the columns is said before it begins. Without an id column ids are made of the file's name and the row, so that
    the same command stores a changed file again without doubling it. Folders are read with all that is below them.

    Safe to interrupt (Ctrl-C, crash of either side): the same command goes on where it stopped, and nothing is
    lost or stored twice. For standard input that means: feed the same input again, what is done is skipped.
    Rejected records go to a file with line number and reason, and the exit code is 1. Ids that come up twice
    within 100,000 records are rejected; farther apart the later record replaces the earlier one.

    \b
    Examples:
      facets index articles.csv --collection news --create --text body --title headline
      facets index articles.csv -c news --dry-run
      facets index handbook/ 'reports/*.pdf' -c docs --create
      zcat part-*.gz | facets index - --collection news --id key --text body
      facets index --from-encoded articles.encoded --collection news --create
    """
    settings = settings_of(context)
    choice = chosen_columns(text, title, id_column, payload, ids)
    options = ReadOptions(encoding=encoding, delimiter=delimiter, tell=capped(settings.note))
    bulk = BulkSettings(batch_size=batch_size, window=window, max_wait_s=max_wait_s, limit=limit, strict=strict)
    creation = Creation(create, model, parse_search_fields(search_field))
    with _source(files, from_encoded, options, choice=choice, form=form, creation=creation) as documents:
        given = bulk_input(settings, documents, rejected, paths=[file.path for file in documents.files])
        documents.check()
        load = _Load(given, documents, bulk, collection=collection, names=_full_names(files or [documents.name]))
        if dry_run:
            load.check()
        else:
            asked = [repr(choice), repr(form), encoding, delimiter]
            load.run(creation.of(documents), asked=asked, state=state, resume=resume, progress=progress)


def _source(
    files: list[str] | None,
    folder: Path | None,
    options: ReadOptions,
    *,
    choice: ColumnChoice,
    form: FormatName | None,
    creation: "Creation",
) -> "DocumentFiles | EncodedDocuments":
    """Files, or encoded documents, of which columns, model and fields are known."""
    if bool(files) == (folder is not None):
        raise typer.BadParameter("expected files, or --from-encoded FOLDER")
    if folder is None:
        return DocumentFiles(find_files(files or (), form, options.tell), options, choice=choice, form=form)
    if choice != ColumnChoice() or creation.model or creation.search_fields is not None:
        raise typer.BadParameter("--from-encoded: columns, model and fields were chosen by facets encode")
    require_extra("parquet", "pyarrow")
    from facets_client.adapters.encoded import EncodedDocuments

    return EncodedDocuments(folder)


def chosen_columns(
    text: list[str] | None, title: str, id_column: str, payload: list[str] | None, ids: MadeIds | None
) -> ColumnChoice:
    """What the options say about columns."""
    wanted = None if payload is None else tuple(payload)
    return ColumnChoice(text=tuple(text or ()), title=title, id=id_column, payload=wanted, made_ids=ids)


@dataclass(frozen=True)
class Creation:
    """How the collection is made where it is not there."""

    allowed: bool
    model: str
    search_fields: dict[str, float] | None
    made_by: EncodedBy | None = None  # what has encoded the documents: it must be the collection's

    def of(self, documents: "DocumentFiles | EncodedDocuments") -> "Creation":
        """For these documents: encoded ones say what made them."""
        if isinstance(documents, DocumentFiles):
            return self
        made_by = documents.made_by
        return Creation(self.allowed, made_by.name, dict(made_by.search_fields), made_by)


@dataclass(frozen=True)
class _Load:
    """Documents on their way into a collection."""

    given: BulkInput
    documents: "DocumentFiles | EncodedDocuments"
    bulk: BulkSettings
    collection: str
    names: Sequence[str]  # absolute, of what the command names

    def check(self) -> None:
        """Reads everything and shows the first documents as they would be stored."""
        first: list[Record] = []
        read = document_batches(_kept(self.documents.read(Place()), first), self.bulk, place=Place())
        report = check_batches(read, RejectedFile(self.given.rejected_path))
        if not self.given.settings.json and first:
            stdout().print(documents_table((record.id, record.text, record.payload) for record in first))
        _print_report(self.given, report, first=first, dry_run=True)

    def run(
        self, creation: Creation, *, asked: list[str], state: Path | None, resume: bool, progress: bool | None
    ) -> None:
        """Stores everything, from the saved place on."""
        settings = self.given.settings
        with settings.connect(watched=False) as client:
            with telling_waits(settings) as tell:
                made = call_patiently(lambda: create_time(client, self.collection, creation), self.bulk, tell)
            identity = self.given.identity(
                names=list(self.names), asked=asked, collection=self.collection, create_time=made
            )
            default = default_state_path(os.environ, "index", client.target, self.collection, *self.names)
            by = creation.made_by
            made_by = None if by is None else ModelVersion(by.name, by.revision)
            task = IndexTask(client, self.documents.read, self.collection, settings=self.bulk, encoded_by=made_by)
            report = self.given.run(
                task,
                self.bulk,
                state_file=StateFile(state or default, identity),
                resume=resume,
                progress=progress,
                done="stored",
            )
        num_truncated = report.place.totals.get("num_truncated", 0)
        if num_truncated:
            first = ", ".join(
                f"{item.id} ({item.token_stats.num_tokens} of {item.token_stats.num_tokens_in_text} tokens)"
                for item in task.truncated
            )
            stored = count_of(num_truncated, "document is", "documents are")
            settings.note(f"{stored} stored but not read to the end: {first or '...'}")
        _print_report(self.given, report, index_revision=task.index_revision)


def _full_names(names: Sequence[str]) -> list[str]:
    return [name if name == "-" else str(Path(name).resolve()) for name in names]


def _kept(records: Iterator[Record | Rejection], first: list[Record]) -> Iterator[Record | Rejection]:
    """The records, the first good ones of which are kept."""
    for record in records:
        if isinstance(record, Record) and len(first) < _FIRST_DOCUMENTS:
            first.append(record)
        yield record


def capped(note: Callable[[str], None]) -> Callable[[str], None]:
    """Passes on the first notes and says that there are more."""
    num_told = 0

    def tell(sentence: str) -> None:
        nonlocal num_told
        num_told += 1
        if num_told <= _MAX_NOTES:
            note(sentence)
        elif num_told == _MAX_NOTES + 1:
            note("more files need a word: see the file of rejected records")

    return tell


def create_time(client: FacetsClient, collection: str, creation: Creation) -> str:
    """When the collection was made; makes it when allowed."""
    try:
        found = client.get_collection(collection)
    except NotFoundError as error:
        if not creation.allowed:
            if error.reason == "NOT_FOUND" or not error.reason:
                raise typer.BadParameter(f"{error.details}: make it with --create") from error
            raise
        try:
            found = client.create_collection(collection, model=creation.model, search_fields=creation.search_fields)
        except AlreadyExistsError:  # somebody was faster
            found = client.get_collection(collection)
    made_by, searched = creation.made_by, {field.name: field.weight for field in found.search_fields}
    if made_by and list(searched.items()) != list(made_by.search_fields.items()):
        raise typer.BadParameter(
            f"collection {collection!r} searches the fields {_listed(searched)}, the documents were encoded with "
            f"{_listed(made_by.search_fields)}: encode them with these --search-field"
        )
    return found.create_time.isoformat() if found.create_time else ""


def _listed(fields: Mapping[str, float]) -> str:
    return ", ".join(f"{name}:{weight:g}" for name, weight in fields.items()) or "none"


def _print_report(
    given: BulkInput,
    report: BulkReport,
    *,
    index_revision: int = 0,
    first: Sequence[Record] = (),
    dry_run: bool = False,
) -> None:
    place = report.place
    if given.settings.json:
        shown = [{"id": record.id, "text": record.text, "payload": record.payload} for record in first]
        print_json(
            {
                "num_records": place.num_records,
                "num_indexed": place.num_done,
                "num_rejected": place.num_rejected,
                "num_truncated": place.totals.get("num_truncated", 0),
                "duration_s": report.duration_s,
                "documents_per_s": report.records_per_s,
                "num_reconnects": report.num_reconnects,
                "index_revision": index_revision,
                "rejected_file": given.rejected_file(place),
                "dry_run": dry_run,
                **({"first_documents": shown} if dry_run else {}),
            }
        )
    elif not given.settings.quiet:
        verb = "readable" if dry_run else "stored"
        speed = "" if dry_run else f", {report.records_per_s:.0f} documents/s"
        typer.echo(
            f"{count_of(place.num_records, 'record')}: {place.num_done:,} {verb}, {place.num_rejected:,} rejected, "
            f"{report.duration_s:.1f} s{speed}"
        )
    given.end(place)
