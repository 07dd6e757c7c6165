"""``facets index``."""

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from facets_client.cli.failures import ExitCode
from facets_client.cli.output import print_json, progress_bar, say
from facets_client.cli.settings import Settings, settings_of
from facets_client.client import FacetsClient
from facets_client.core.records import RecordFormat, RecordSource
from facets_client.core.rejected import RejectedFile
from facets_client.documents.bulk_index import BulkIndexer, IndexReport, IndexSettings, Progress, check_records
from facets_client.documents.index_state import IndexState, InputIdentity, StateFile, default_state_path
from facets_client.errors import AlreadyExistsError, FacetsClientError, NotFoundError


def index(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="JSONL, plain, gzip or xz; - reads standard input.")],
    collection: Annotated[str, typer.Option("--collection", "-c", help="Where to store.", show_default=False)],
    create: Annotated[bool, typer.Option("--create", help="Make the collection if it is not there.")] = False,
    model: Annotated[str, typer.Option(help="Model of a collection made by --create.")] = "",
    id_field: Annotated[str, typer.Option(help="Field with the id.")] = "id",
    text_field: Annotated[str, typer.Option(help="Field with the text.")] = "text",
    batch_size: Annotated[int, typer.Option(help="Documents of one batch.", min=1)] = 64,
    window: Annotated[int, typer.Option(help="Batches under way at the same time.", min=1)] = 8,
    rejected: Annotated[
        Path | None, typer.Option(help="Where rejected records go.  [default: FILE.rejected.jsonl]")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--restart", help="Go on where an interrupted load stopped, or start over.")
    ] = True,
    state: Annotated[Path | None, typer.Option(help="Where to keep the place.  [default: in XDG_STATE_HOME]")] = None,
    max_wait_s: Annotated[
        float, typer.Option(help="Seconds to wait for a server that is away or full.", min=0)
    ] = 300.0,
    limit: Annotated[int, typer.Option(help="Stop after this many records; 0: all.", min=0)] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check, send nothing.")] = False,
    progress: Annotated[bool | None, typer.Option(help="Progress bar; by default only on a terminal.")] = None,
) -> None:
    """Load documents from JSONL: one object a line, {"id", "text", ...payload}.

    Safe to interrupt (Ctrl-C, crash of either side): the same command goes on where it stopped, and nothing is
    lost or stored twice. For standard input that means: feed the same input again, what is done is skipped.
    Rejected records go to a file with line number and reason, and the exit code is 1. Ids that come up twice
    within 100,000 records are rejected; farther apart the later record replaces the earlier one.

    \b
    Examples:
      facets index articles.jsonl.gz --collection news --create
      zcat part-*.gz | facets index - --collection news --id-field key --text-field body
      facets index articles.jsonl -c news --dry-run
    """
    settings = settings_of(context)
    wanted = IndexSettings(
        batch_size=batch_size,
        window=window,
        max_wait_s=max_wait_s,
        limit=limit,
        record_format=RecordFormat(id_field=id_field, text_field=text_field),
    )
    rejected_path = rejected or Path("stdin.rejected.jsonl" if file == "-" else f"{file}.rejected.jsonl")
    if file != "-" and rejected_path.resolve() == Path(file).resolve():
        raise typer.BadParameter(f"--rejected must not be the input itself, got {str(rejected_path)!r}")
    with RecordSource(file) as source:
        if dry_run:
            report = _dry_run(source, wanted, rejected_path)
        else:
            state_path = state or _default_state(settings, collection, file, os.environ)
            with settings.connect() as client:
                made = _create_time(client, collection, create=create, model=model)
                identity = _identity(source, wanted.record_format, collection, made)
                load = _Load(client, source, wanted, rejected_path, StateFile(state_path), identity)
                report = load.run(resume=resume, progress=progress)
    _tell(settings, report, rejected_path, dry_run=dry_run)
    if report.num_rejected:
        raise typer.Exit(ExitCode.REJECTED)


class _Load:
    """One load with its files and its progress bar."""

    def __init__(
        self,
        client: FacetsClient,
        source: RecordSource,
        wanted: IndexSettings,
        rejected_path: Path,
        state_file: StateFile,
        identity: InputIdentity,
    ) -> None:
        self._client = client
        self._source = source
        self._wanted = wanted
        self._rejected_path = rejected_path
        self._state_file = state_file
        self._identity = identity

    def run(self, *, resume: bool, progress: bool | None) -> IndexReport:
        """Loads from the saved place or from the beginning."""
        state = self._first_state(resume=resume)
        rejected = RejectedFile(self._rejected_path, keep_bytes=state.rejected_bytes)
        total = 100 if self._source.size else None
        waiting = ""
        with progress_bar(shown=progress, counted="percent") as bar:
            task = bar.add_task("", total=total)

            def show(now: Progress) -> None:
                nonlocal waiting
                done = 100 * now.raw_position / self._source.size if self._source.size else 0
                text = f"{now.num_indexed} stored, {now.num_rejected} rejected"
                bar.update(task, completed=done, description=f"{text} {now.waiting}".strip())
                if now.waiting and not waiting:
                    say(f"facets: waiting for the server: {now.waiting}")
                waiting = now.waiting

            indexer = BulkIndexer(
                self._client,
                self._source,
                state=state,
                state_file=self._state_file,
                rejected=rejected,
                settings=self._wanted,
                on_progress=show,
            )
            try:
                return indexer.run()
            except KeyboardInterrupt:
                say(f"facets: interrupted {_place(indexer.state)}; the same command goes on from there")
                raise typer.Exit(ExitCode.INTERRUPTED) from None
            except FacetsClientError:
                say(f"facets: stopped {_place(indexer.state)}; the same command goes on from there")
                raise

    def _first_state(self, *, resume: bool) -> IndexState:
        """The saved state of this very input if it is to go on, else a fresh one."""
        fresh = IndexState(self._identity)
        saved = self._state_file.load() if resume else None
        if saved is None:
            return fresh
        if saved.identity != self._identity:
            say("facets: the input or the collection changed since the interrupted load: starting over")
            return fresh
        if saved.line:
            say(f"facets: going on {_place(saved)}")
        return saved


def _place(state: IndexState) -> str:
    return f"after line {state.line} ({state.num_indexed} stored, {state.num_rejected} rejected)"


def _dry_run(source: RecordSource, wanted: IndexSettings, rejected_path: Path) -> IndexReport:
    identity = InputIdentity(source.name, source.size, source.head_digest, ("", ""), "", "")
    return check_records(source, IndexState(identity), rejected=RejectedFile(rejected_path), settings=wanted)


def _create_time(client: FacetsClient, collection: str, *, create: bool, model: str) -> str:
    """When the collection was made; makes it when allowed."""
    try:
        found = client.get_collection(collection)
    except NotFoundError as error:
        if not create:
            if error.reason == "NOT_FOUND" or not error.reason:
                raise typer.BadParameter(f"{error.details}: make it with --create") from error
            raise
        try:
            found = client.create_collection(collection, model=model)
        except AlreadyExistsError:  # somebody was faster
            found = client.get_collection(collection)
    return found.create_time.isoformat() if found.create_time else ""


def _identity(source: RecordSource, record_format: RecordFormat, collection: str, create_time: str) -> InputIdentity:
    name = source.name if source.name == "-" else str(Path(source.name).resolve())
    fields = (record_format.id_field, record_format.text_field)
    return InputIdentity(name, source.size, source.head_digest, fields, collection, create_time)


def _default_state(settings: Settings, collection: str, file: str, environment: Mapping[str, str]) -> Path:
    name = file if file == "-" else str(Path(file).resolve())
    return default_state_path(environment, target=settings.target, collection=collection, name=name)


def _tell(settings: Settings, report: IndexReport, rejected_path: Path, *, dry_run: bool) -> None:
    where = str(rejected_path) if report.num_rejected else None
    if settings.json:
        print_json({**asdict(report), "rejected_file": where, "dry_run": dry_run})
        return
    verb = "readable" if dry_run else "stored"
    speed = "" if dry_run else f", {report.documents_per_s:.0f} documents/s"
    typer.echo(
        f"{report.num_records} records: {report.num_indexed} {verb}, {report.num_rejected} rejected, "
        f"{report.duration_s:.1f} s{speed}"
    )
    if report.num_rejected:
        say(f"facets: {report.num_rejected} records were rejected, see {rejected_path}")
