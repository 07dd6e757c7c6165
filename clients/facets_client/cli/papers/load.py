"""``facets recommend bulk``, ``add-papers``, ``add-authors``: what every record of a file says, batch by batch."""

import csv
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar

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
from facets_client.cli.options import WhereOption, names_of_file, parse_where, text_of_file
from facets_client.cli.output import count_of, print_json
from facets_client.cli.settings import settings_of
from facets_client.client import FacetsClient
from facets_client.generated.types import AddedAuthors, AddedPapers, CandidateKind, NewAuthor, Paper
from facets_client.load.batches import Entry, Place, StateFile, batches, default_state_path
from facets_client.load.records import Rejection
from facets_client.load.runner import BulkReport, BulkSettings, CallTask
from facets_client.load.source import InputError, RecordSource
from facets_client.papers.bulk import BulkPaperSettings, CandidatesFile
from facets_client.papers.records import read_authors, read_papers
from facets_client.papers.results import PaperOptions

PapersModelOption = Annotated[str, typer.Option(help="Model; the server's default model of papers when not given.")]


def bulk(
    context: typer.Context,
    file: InputArgument,
    out: Annotated[Path, typer.Option(help="The CSV file to make: paper, candidate, score.", show_default=False)],
    kind: Annotated[CandidateKind, typer.Option(help="What to recommend.")] = "authors",
    candidates: Annotated[
        str | None, typer.Option(help="Only these: a file with one name or id a line; - reads standard input.")
    ] = None,
    conflicts: Annotated[
        Path | None, typer.Option(help="CSV without header: id of a paper, candidate never recommended for it.")
    ] = None,
    own: Annotated[bool, typer.Option("--own/--no-own", help="Also recommend a paper's own authors.")] = False,
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="Candidates for each paper.", min=1)] = 50,
    where: WhereOption = None,
    facet_weight: Annotated[
        float | None, typer.Option(help="Share of the facets in the score, 0 to 1.", min=0, max=1)
    ] = None,
    batch_size: BatchOption = 128,
    window: WindowOption = 2,
    rejected: RejectedOption = None,
    resume: ResumeOption = True,
    max_wait_s: WaitOption = 300.0,
    progress: ProgressOption = None,
    model: PapersModelOption = "",
) -> None:
    """Match a whole conference: the best candidates of every paper, to a sparse CSV file of scores.

    FILE has one paper a line: {"id", "title", "abstract", "authors", "excluded"}. A paper's own authors and those in
    "excluded" are never recommended for it. The CSV file appears when it is complete; until then its rows are in
    OUT.part, and the same command goes on after an interruption. Rejected records go to a file, and the exit code is 1.

    \b
    Examples:
      facets recommend bulk submissions.jsonl --candidates reviewers.txt --out scores.csv
      facets recommend bulk submissions.jsonl.xz --conflicts conflicts.csv --top-k 100 --out scores.csv
      facets recommend bulk papers.jsonl --kind citations --out citing.csv
    """
    settings = settings_of(context)
    if file == candidates == "-":
        raise typer.BadParameter("papers and --candidates cannot both be standard input")
    options = PaperOptions(
        top_k=top_k,
        candidates=None if candidates is None else names_of_file(candidates),
        where=parse_where(where),
        facet_weight=facet_weight,
    )
    wanted = BulkPaperSettings(
        kind=kind,
        options=options,
        model=model,
        own_excluded=not own,
        conflicts={} if conflicts is None else _conflicts(conflicts),
    )
    how = BulkSettings(batch_size=batch_size, window=window, max_wait_s=max_wait_s)
    made = CandidatesFile(out, wanted)
    with RecordSource(file) as source:
        given = bulk_input(settings, source, rejected)
        report = _run(source, given, made, wanted=wanted, how=how, resume=resume, progress=progress)
    _print_report(given, made, report)


def _run(
    source: RecordSource,
    given: BulkInput,
    made: CandidatesFile,
    *,
    wanted: BulkPaperSettings,
    how: BulkSettings,
    resume: bool,
    progress: bool | None,
) -> BulkReport:
    for name in (given.source.name, str(given.rejected_path)):
        if name != "-" and Path(name).resolve() == made.path.resolve():
            raise typer.BadParameter(f"--out must not be the input or the rejected file, got {str(made.path)!r}")
    if not made.path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(made.path))
    state_file = StateFile(made.state_path, given.identity(settings=wanted.digest()))
    with given.settings.connect(watched=False) as client:
        task = made.task(client, source, how)
        try:
            return given.run(
                task,
                how,
                state_file=state_file,
                resume=resume,
                progress=progress,
                done="answered",
                may_go_on=made.holds,
            )
        finally:
            made.close()


def _print_report(given: BulkInput, made: CandidatesFile, report: BulkReport) -> None:
    settings, place = given.settings, report.place
    if made.num_unknown_candidates:
        first = ", ".join(repr(name) for name in made.unknown_candidates[:3])
        count = made.num_unknown_candidates
        entries = count_of(count, "entry of --candidates is", "entries of --candidates are")
        settings.note(f"{entries} unknown ({first}): add-authors adds them")
    if made.unmatched_conflicts and not made.is_resumed:
        unmatched = sorted(made.unmatched_conflicts)
        ids = count_of(len(unmatched), "id of --conflicts is", "ids of --conflicts are")
        settings.note(f"{ids} no paper of {given.source.name}, {unmatched[0]!r} for one")
    num_rows, num_empty = (place.totals.get(name, 0) for name in ("num_rows", "num_empty"))
    if settings.json:
        print_json(
            {
                "num_papers": place.num_done,
                "num_rows": num_rows,
                "num_empty": num_empty,
                "num_rejected": place.num_rejected,
                "duration_s": report.duration_s,
                "papers_per_s": report.records_per_s,
                "num_unknown_candidates": made.num_unknown_candidates,
                "unknown_candidates": made.unknown_candidates,
                "out": str(made.path),
                "rejected_file": given.rejected_file(place),
            }
        )
    else:
        typer.echo(
            f"{count_of(place.num_done, 'paper')}: {count_of(num_rows, 'row')} in {made.path}, "
            f"{num_empty} without a candidate, "
            f"{place.num_rejected} rejected, {report.duration_s:.1f} s, {report.records_per_s:.0f} papers/s"
        )
    given.end(place)


def _conflicts(path: Path) -> dict[str, list[str]]:
    """Id of a paper -> candidates never recommended for it."""
    found: dict[str, list[str]] = {}
    for number, row in enumerate(csv.reader(text_of_file(str(path)).splitlines()), start=1):
        if not row:
            continue
        if len(row) < 2 or not row[0].strip() or not row[1].strip():
            raise InputError(f"{path}, line {number}: expected the id of a paper and a candidate, got {row!r:.60}")
        found.setdefault(row[0].strip(), []).append(row[1].strip())
    return found


ItemT = TypeVar("ItemT", Paper, NewAuthor)
AddedT = TypeVar("AddedT", AddedPapers, AddedAuthors)
_ADD_PAPERS_HELP = """Add papers with their authors and the papers that cite them, without training.

    FILE has one paper a line: {"id", "title", "abstract", "authors", "cited_by", "year"}; an author is a name, or
    {"name", "id"}. Every request is stored whole or not at all, and durable once it is counted; running the command
    again replaces papers of the same id.

    \b
    Examples:
      facets recommend add-papers new-papers.jsonl
      zcat papers.jsonl.gz | facets recommend add-papers -
    """
_ADD_AUTHORS_HELP = """Add authors by what they wrote, without training; known authors get more papers.

    FILE has one author a line: {"name", "id", "papers": [{"title", "abstract"}, ...], "paper_ids": [...]}. Every
    request is stored whole or not at all, and durable once it is counted.

    \b
    Examples:
      facets recommend add-authors reviewers.jsonl
    """


@dataclass(frozen=True, slots=True)
class _Added(Generic[ItemT, AddedT]):
    """What is added: its name, how it is read and stored, what replies count, and what is said of that."""

    name: str
    read: Callable[[RecordSource, Place], Iterator[Entry[ItemT] | Rejection]]
    add: Callable[[FacetsClient, list[ItemT], str], AddedT]
    counts: tuple[str, ...]
    told: str


def _add_command(added: _Added[ItemT, AddedT], num_records: int) -> Callable[..., None]:
    """``add-papers`` and ``add-authors`` have the same arguments."""

    def command(
        context: typer.Context,
        file: InputArgument,
        batch_size: BatchOption = num_records,
        rejected: RejectedOption = None,
        resume: ResumeOption = True,
        max_wait_s: WaitOption = 300.0,
        progress: ProgressOption = None,
        model: PapersModelOption = "",
    ) -> None:
        bulk = BulkSettings(batch_size=batch_size, window=1, max_wait_s=max_wait_s)
        settings = settings_of(context)
        with RecordSource(file) as source, settings.connect(watched=False) as client:
            given = bulk_input(settings, source, rejected)
            task = CallTask(
                added.name,
                lambda place: batches(added.read(source, place), size=bulk.batch_size),
                lambda items: added.add(client, items, model),
                lambda items, reply: {name: getattr(reply, name) for name in added.counts},
            )
            state_path = default_state_path(os.environ, f"add-{added.name}", client.target, model, given.full_name)
            state_file = StateFile(state_path, given.identity(name=given.full_name, model=model))
            report = given.run(task, bulk, state_file=state_file, resume=resume, progress=progress, done="added")
        _tell_added(given, report.place, added.counts, added.told)

    return command


_ONE = {
    "num_papers": "paper",
    "num_authors": "author",
    "num_citing_papers": "citing paper",
    "num_unknown_citations": "unknown citation",
}


def _tell_added(given: BulkInput, place: Place, counts: Sequence[str], told: str) -> None:
    totals = {name: place.totals.get(name, 0) for name in counts}
    if given.settings.json:
        print_json({**totals, "num_rejected": place.num_rejected, "rejected_file": given.rejected_file(place)})
    else:
        said = {name: count_of(totals[name], _ONE[name]) for name in counts}
        typer.echo(f"{told.format_map(said)}; {place.num_rejected} rejected")
        if unknown := totals.get("num_unknown_citations"):
            entries = count_of(unknown, "entry of cited_by is", "entries of cited_by are")
            given.settings.note(f"{entries} no known paper")
    given.end(place)


add_papers = _add_command(
    _Added(
        "papers",
        lambda source, place: read_papers(source, need_id=True, line=place.line, end=place.byte),
        lambda client, papers, model: client.add_papers(papers, model=model),
        ("num_papers", "num_authors", "num_citing_papers", "num_unknown_citations"),
        "{num_papers} added; {num_authors} and {num_citing_papers} fitted",
    ),
    128,
)
add_authors = _add_command(
    _Added(
        "authors",
        lambda source, place: read_authors(source, line=place.line, end=place.byte),
        lambda client, authors, model: client.add_authors(authors, model=model),
        ("num_authors", "num_papers"),
        "{num_authors} of {num_papers} added",
    ),
    32,
)
ADD_HELP = {"add-papers": (add_papers, _ADD_PAPERS_HELP), "add-authors": (add_authors, _ADD_AUTHORS_HELP)}
