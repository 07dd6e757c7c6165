"""``facets recommend add-papers``, ``add-authors``: what every record of a file says, added batch by batch."""

import os
from collections.abc import Callable, Iterator
from typing import Annotated, TypeVar

import typer

from facets_client.cli.bulk import (
    BatchOption,
    BulkInput,
    InputArgument,
    ProgressOption,
    RejectedOption,
    ResumeOption,
    WaitOption,
    bulk_input,
)
from facets_client.cli.output import print_json
from facets_client.cli.settings import settings_of
from facets_client.client import FacetsClient
from facets_client.core.bulk.batches import Entry, batches
from facets_client.core.bulk.calls import CallTask
from facets_client.core.bulk.runner import BulkSettings
from facets_client.core.bulk.state import Place, StateFile, default_state_path
from facets_client.core.records import Rejection
from facets_client.core.source import RecordSource
from facets_client.papers.records import read_authors, read_papers
from facets_client.papers.results import AddedAuthors, AddedPapers, NewAuthor, Paper

ItemT = TypeVar("ItemT", Paper, NewAuthor)
AddedT = TypeVar("AddedT", AddedPapers, AddedAuthors)

PapersModelOption = Annotated[str, typer.Option(help="Model; the server's default model of papers when not given.")]


def add_papers(
    context: typer.Context,
    file: InputArgument,
    batch_size: BatchOption = 128,
    rejected: RejectedOption = None,
    resume: ResumeOption = True,
    max_wait_s: WaitOption = 300.0,
    progress: ProgressOption = None,
    model: PapersModelOption = "",
) -> None:
    """Add papers with their authors and the papers that cite them, without training.

    FILE has one paper a line: {"id", "title", "abstract", "authors", "cited_by", "year"}; an author is a name, or
    {"name", "id"}. Every request is stored whole or not at all, and durable once it is counted; running the command
    again replaces papers of the same id.

    \b
    Examples:
      facets recommend add-papers new-papers.jsonl
      zcat papers.jsonl.gz | facets recommend add-papers -
    """
    bulk = BulkSettings(batch_size=batch_size, window=1, max_wait_s=max_wait_s)
    settings = settings_of(context)
    with RecordSource(file) as source, settings.connect(watched=False) as client:
        given = bulk_input(settings, source, rejected)

        def read(place: Place) -> Iterator[Entry[Paper] | Rejection]:
            return read_papers(source, need_id=True, line=place.line, end=place.byte)

        def add(papers: list[Paper]) -> AddedPapers:
            return client.add_papers(papers, model=model)

        names = ("num_papers", "num_authors", "num_citing_papers", "num_unknown_citations")
        place = _run(given, client, "papers", read, add, names, bulk, model=model, resume=resume, progress=progress)
    totals = {name: place.totals.get(name, 0) for name in names}
    if settings.json:
        print_json({**totals, "num_rejected": place.num_rejected, "rejected_file": given.rejected_file(place)})
    else:
        typer.echo(
            f"{totals['num_papers']} papers added; {totals['num_authors']} authors and "
            f"{totals['num_citing_papers']} citing papers fitted; {place.num_rejected} rejected"
        )
        if totals["num_unknown_citations"]:
            settings.note(f"{totals['num_unknown_citations']} entries of cited_by are no known paper")
    given.end(place)


def add_authors(
    context: typer.Context,
    file: InputArgument,
    batch_size: BatchOption = 32,
    rejected: RejectedOption = None,
    resume: ResumeOption = True,
    max_wait_s: WaitOption = 300.0,
    progress: ProgressOption = None,
    model: PapersModelOption = "",
) -> None:
    """Add authors by what they wrote, without training; known authors get more papers.

    FILE has one author a line: {"name", "id", "papers": [{"title", "abstract"}, ...], "paper_ids": [...]}. Every
    request is stored whole or not at all, and durable once it is counted.

    \b
    Examples:
      facets recommend add-authors reviewers.jsonl
    """
    bulk = BulkSettings(batch_size=batch_size, window=1, max_wait_s=max_wait_s)
    settings = settings_of(context)
    with RecordSource(file) as source, settings.connect(watched=False) as client:
        given = bulk_input(settings, source, rejected)

        def read(place: Place) -> Iterator[Entry[NewAuthor] | Rejection]:
            return read_authors(source, line=place.line, end=place.byte)

        def add(authors: list[NewAuthor]) -> AddedAuthors:
            return client.add_authors(authors, model=model)

        names = ("num_authors", "num_papers")
        place = _run(given, client, "authors", read, add, names, bulk, model=model, resume=resume, progress=progress)
    totals = {name: place.totals.get(name, 0) for name in names}
    if settings.json:
        print_json({**totals, "num_rejected": place.num_rejected, "rejected_file": given.rejected_file(place)})
    else:
        added = f"{totals['num_authors']} authors of {totals['num_papers']} papers added"
        typer.echo(f"{added}; {place.num_rejected} rejected")
    given.end(place)


def _run(
    given: BulkInput,
    client: FacetsClient,
    name: str,
    read: Callable[[Place], Iterator[Entry[ItemT] | Rejection]],
    add: Callable[[list[ItemT]], AddedT],
    names: tuple[str, ...],
    bulk: BulkSettings,
    *,
    model: str,
    resume: bool,
    progress: bool | None,
) -> Place:
    """Adds everything an input holds, and counts what the replies count under these names."""

    def take(items: list[ItemT], added: AddedT) -> dict[str, int]:
        return {counted: getattr(added, counted) for counted in names}

    state_path = default_state_path(os.environ, f"add-{name}", client.target, model, given.full_name)
    state_file = StateFile(state_path, given.identity(name=given.full_name, model=model))
    task = CallTask(name, lambda place: batches(read(place), size=bulk.batch_size), add, take)
    try:
        report = given.run(task, bulk, state_file=state_file, resume=resume, progress=progress, done="added")
    finally:
        task.close()
    return report.place
