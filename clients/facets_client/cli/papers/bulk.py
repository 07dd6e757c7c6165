"""``facets recommend bulk``."""

import csv
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from facets_client.cli.failures import ExitCode
from facets_client.cli.inputs import text_of_file
from facets_client.cli.output import print_json, progress_bar, say
from facets_client.cli.papers.add import (
    InputArgument,
    ModelOption,
    ProgressOption,
    RejectedOption,
    end,
    rejected_path_of,
)
from facets_client.cli.settings import settings_of
from facets_client.cli.where import WhereOption, parse_where
from facets_client.core.records import InputError, RecordSource
from facets_client.errors import FacetsClientError
from facets_client.papers.bulk import BulkRecommender, BulkRecommendSettings, Place
from facets_client.papers.results import CandidateKind, RecommendationOptions


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
    batch_size: Annotated[int, typer.Option(help="Papers of one request.", min=1)] = 128,
    window: Annotated[int, typer.Option(help="Requests under way at the same time.", min=1)] = 2,
    rejected: RejectedOption = None,
    resume: Annotated[
        bool, typer.Option("--resume/--restart", help="Go on where an interrupted run stopped, or start over.")
    ] = True,
    max_wait_s: Annotated[
        float, typer.Option(help="Seconds to wait for a server that is away or full.", min=0)
    ] = 300.0,
    progress: ProgressOption = None,
    model: ModelOption = "",
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
    wanted = BulkRecommendSettings(
        kind=kind,
        options=RecommendationOptions(
            top_k=top_k,
            candidates=None if candidates is None else _names(candidates),
            where=parse_where(where),
            facet_weight=facet_weight,
        ),
        model=model,
        own_excluded=not own,
        conflicts={} if conflicts is None else _conflicts(conflicts),
        batch_size=batch_size,
        window=window,
        max_wait_s=max_wait_s,
    )
    rejected_path = rejected_path_of(file, rejected)
    for name in (file, str(rejected_path)):
        if name != "-" and Path(name).resolve() == out.resolve():
            raise typer.BadParameter(f"--out must not be the input or the rejected file, got {str(out)!r}")
    with (
        RecordSource(file) as source,
        settings.connect() as client,
        progress_bar(shown=progress, counted="percent") as bar,
    ):
        task = bar.add_task("", total=100 if source.size else None)

        def show(place: Place, raw_position: int) -> None:
            done = 100 * raw_position / source.size if source.size else 0
            bar.update(task, completed=done, description=f"{place.num_papers} papers, {place.num_rows} rows")

        run = BulkRecommender(client, source, out, rejected_path=rejected_path, settings=wanted, on_progress=show)
        try:
            report = run.run(resume=resume)
        except KeyboardInterrupt:
            say(f"facets: interrupted after {run.place.num_papers} papers; the same command goes on from there")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except FacetsClientError:
            say(f"facets: stopped after {run.place.num_papers} papers; the same command goes on from there")
            raise
    if run.num_unknown_candidates:
        first = ", ".join(repr(name) for name in run.unknown_candidates[:3])
        say(f"facets: {run.num_unknown_candidates} of --candidates are unknown ({first}): add them with add-authors")
    if run.unmatched_conflicts and not run.is_resumed:
        unmatched = sorted(run.unmatched_conflicts)
        say(f"facets: {len(unmatched)} ids of --conflicts are no paper of {file}, {unmatched[0]!r} for one")
    if settings.json:
        print_json(
            {
                **asdict(report),
                "num_unknown_candidates": run.num_unknown_candidates,
                "unknown_candidates": run.unknown_candidates,
                "out": str(out),
                "rejected_file": str(rejected_path) if report.num_rejected else None,
            }
        )
    else:
        typer.echo(
            f"{report.num_papers} papers: {report.num_rows} rows in {out}, {report.num_empty} without a candidate, "
            f"{report.num_rejected} rejected, {report.duration_s:.1f} s, {report.papers_per_s:.0f} papers/s"
        )
    end(report.num_rejected, rejected_path)


def _names(file: str) -> list[str]:
    """Names or ids, one a line, without doubles."""
    found = list(dict.fromkeys(line.strip() for line in text_of_file(file).splitlines() if line.strip()))
    if not found:
        raise InputError(f"{file}: expected at least one name, got none")
    return found


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
