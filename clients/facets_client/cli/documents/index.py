"""``facets index``."""

import os
from pathlib import Path
from typing import Annotated

import typer

from facets_client.cli.bulk import (
    BatchOption,
    BulkInput,
    InputArgument,
    ProgressOption,
    RejectedOption,
    ResumeOption,
    WaitOption,
    WindowOption,
    bulk_input,
)
from facets_client.cli.output import print_json
from facets_client.cli.settings import settings_of
from facets_client.client import FacetsClient
from facets_client.core.bulk.rejected import RejectedFile
from facets_client.core.bulk.runner import BulkReport, BulkSettings, call_patiently, check_batches
from facets_client.core.bulk.state import Place, StateFile, default_state_path
from facets_client.core.records import RecordFormat
from facets_client.core.source import RecordSource
from facets_client.documents.bulk import IndexTask, document_batches
from facets_client.errors import AlreadyExistsError, NotFoundError


def index(
    context: typer.Context,
    file: InputArgument,
    collection: Annotated[str, typer.Option("--collection", "-c", help="Where to store.", show_default=False)],
    create: Annotated[bool, typer.Option("--create", help="Make the collection if it is not there.")] = False,
    model: Annotated[str, typer.Option(help="Model of a collection made by --create.")] = "",
    id_field: Annotated[str, typer.Option(help="Field with the id.")] = "id",
    text_field: Annotated[str, typer.Option(help="Field with the text.")] = "text",
    batch_size: BatchOption = 64,
    window: WindowOption = 8,
    rejected: RejectedOption = None,
    resume: ResumeOption = True,
    state: Annotated[Path | None, typer.Option(help="Where to keep the place.  [default: in XDG_STATE_HOME]")] = None,
    max_wait_s: WaitOption = 300.0,
    limit: Annotated[int, typer.Option(help="Stop after this many records; 0: all.", min=0)] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check, send nothing.")] = False,
    progress: ProgressOption = None,
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
    bulk = BulkSettings(batch_size=batch_size, window=window, max_wait_s=max_wait_s, limit=limit)
    record_format = RecordFormat(id_field=id_field, text_field=text_field)
    with RecordSource(file) as source:
        given = bulk_input(settings, source, rejected)
        if dry_run:
            read = document_batches(source, record_format, bulk, place=Place())
            _print_report(given, check_batches(read, RejectedFile(given.rejected_path)), dry_run=True)
            return
        with settings.connect() as client:
            made = call_patiently(
                lambda: _create_time(client, collection, create=create, model=model),
                bulk,
                lambda why: settings.note(f"waiting for the server: {why}"),
            )
            identity = given.identity(
                name=given.full_name, fields=[id_field, text_field], collection=collection, create_time=made
            )
            default = default_state_path(os.environ, "index", client.target, collection, given.full_name)
            task = IndexTask(client, source, collection, settings=bulk, record_format=record_format)
            state_file = StateFile(state or default, identity)
            report = given.run(task, bulk, state_file=state_file, resume=resume, progress=progress, done="stored")
    num_truncated = report.place.totals.get("num_truncated", 0)
    if num_truncated:
        first = ", ".join(
            f"{item.id} ({item.token_stats.num_tokens} of {item.token_stats.num_tokens_in_text} tokens)"
            for item in task.truncated
        )
        settings.note(f"{num_truncated} documents are stored but were not read to their end: {first or '...'}")
    _print_report(given, report, index_revision=task.index_revision)


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


def _print_report(given: BulkInput, report: BulkReport, *, index_revision: int = 0, dry_run: bool = False) -> None:
    place = report.place
    if given.settings.json:
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
            }
        )
    else:
        verb = "readable" if dry_run else "stored"
        speed = "" if dry_run else f", {report.records_per_s:.0f} documents/s"
        typer.echo(
            f"{place.num_records} records: {place.num_done} {verb}, {place.num_rejected} rejected, "
            f"{report.duration_s:.1f} s{speed}"
        )
    given.end(place)
