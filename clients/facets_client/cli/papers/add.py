"""``facets recommend add-papers``, ``add-authors``: what every record of a file says, added batch by batch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from facets_client.cli.failures import ExitCode
from facets_client.cli.output import print_json, progress_bar, say
from facets_client.cli.settings import settings_of
from facets_client.core.records import JsonLine, RecordSource, Rejection
from facets_client.core.rejected import RejectedFile
from facets_client.errors import InvalidArgumentError, NotFoundError
from facets_client.papers.records import read_authors, read_papers
from facets_client.papers.results import NewAuthor, Paper

ItemT = TypeVar("ItemT", Paper, NewAuthor)

InputArgument = Annotated[str, typer.Argument(help="JSONL, plain, gzip or xz; - reads standard input.")]
RejectedOption = Annotated[Path | None, typer.Option(help="Where rejected records go.  [default: FILE.rejected.jsonl]")]
ProgressOption = Annotated[bool | None, typer.Option(help="Progress bar; by default only on a terminal.")]
ModelOption = Annotated[str, typer.Option(help="Model; the server's default model of papers when not given.")]


def add_papers(
    context: typer.Context,
    file: InputArgument,
    batch_size: Annotated[int, typer.Option(help="Papers of one request.", min=1)] = 128,
    rejected: RejectedOption = None,
    progress: ProgressOption = None,
    model: ModelOption = "",
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
    settings = settings_of(context)
    path = rejected_path_of(file, rejected)
    totals = {"num_papers": 0, "num_authors": 0, "num_citing_papers": 0, "num_unknown_citations": 0}
    with RecordSource(file) as source, settings.connect() as client:

        def send(items: list[Paper]) -> None:
            added = client.add_papers(items, model=model)
            for name in totals:
                totals[name] += getattr(added, name)

        num_rejected = _send_all(
            read_papers(source, need_id=True), send, batch_size, RejectedFile(path), progress=progress, counted="papers"
        )
    if settings.json:
        print_json({**totals, "num_rejected": num_rejected, "rejected_file": str(path) if num_rejected else None})
    else:
        typer.echo(
            f"{totals['num_papers']} papers added; {totals['num_authors']} authors and "
            f"{totals['num_citing_papers']} citing papers fitted; {num_rejected} rejected"
        )
        if totals["num_unknown_citations"]:
            say(f"facets: {totals['num_unknown_citations']} entries of cited_by are no known paper")
    end(num_rejected, path)


def add_authors(
    context: typer.Context,
    file: InputArgument,
    batch_size: Annotated[int, typer.Option(help="Authors of one request.", min=1)] = 32,
    rejected: RejectedOption = None,
    progress: ProgressOption = None,
    model: ModelOption = "",
) -> None:
    """Add authors by what they wrote, without training; known authors get more papers.

    FILE has one author a line: {"name", "id", "papers": [{"title", "abstract"}, ...], "paper_ids": [...]}. Every
    request is stored whole or not at all, and durable once it is counted.

    \b
    Examples:
      facets recommend add-authors reviewers.jsonl
    """
    settings = settings_of(context)
    path = rejected_path_of(file, rejected)
    totals = {"num_authors": 0, "num_papers": 0}
    with RecordSource(file) as source, settings.connect() as client:

        def send(items: list[NewAuthor]) -> None:
            added = client.add_authors(items, model=model)
            for name in totals:
                totals[name] += getattr(added, name)

        num_rejected = _send_all(
            read_authors(source), send, batch_size, RejectedFile(path), progress=progress, counted="authors"
        )
    if settings.json:
        print_json({**totals, "num_rejected": num_rejected, "rejected_file": str(path) if num_rejected else None})
    else:
        typer.echo(f"{totals['num_authors']} authors of {totals['num_papers']} papers added; {num_rejected} rejected")
    end(num_rejected, path)


def rejected_path_of(file: str, rejected: Path | None) -> Path:
    """Where rejected records of an input go.

    Raises:
        BadParameter: That is the input itself.
    """
    path = rejected or Path("stdin.rejected.jsonl" if file == "-" else f"{file}.rejected.jsonl")
    if file != "-" and path.resolve() == Path(file).resolve():
        raise typer.BadParameter(f"--rejected must not be the input itself, got {str(path)!r}")
    return path


def end(num_rejected: int, path: Path) -> None:
    """Ends the command with the exit code that rejected records have."""
    if num_rejected:
        say(f"facets: {num_rejected} records were rejected, see {path}")
        raise typer.Exit(ExitCode.REJECTED)


def _send_all(
    items: Iterator[tuple[ItemT, JsonLine] | Rejection],
    send: Callable[[list[ItemT]], None],
    batch_size: int,
    rejected: RejectedFile,
    *,
    progress: bool | None,
    counted: str,
) -> int:
    """Sends items in batches and lists those that cannot be sent; returns how many those are."""
    num_rejected = 0
    batch: list[tuple[ItemT, JsonLine]] = []
    with progress_bar(shown=progress, counted=counted) as bar:
        task = bar.add_task("", total=None)

        def settle() -> None:
            nonlocal num_rejected
            refused = _send(batch, send) if batch else []
            rejected.write(refused)
            num_rejected += len(refused)
            bar.advance(task, len(batch))
            batch.clear()

        for item in items:
            if isinstance(item, Rejection):
                rejected.write([item])
                num_rejected += 1
                continue
            batch.append(item)
            if len(batch) == batch_size:
                settle()
        settle()
    rejected.close()
    return num_rejected


def _send(batch: list[tuple[ItemT, JsonLine]], send: Callable[[list[ItemT]], None]) -> list[Rejection]:
    """Sends a batch; when it is refused, each item alone, so that one bad item does not stop its neighbours."""
    try:
        send([item for item, _ in batch])
    except (InvalidArgumentError, NotFoundError) as error:
        if not any(name in error.details for name in ("papers[", "authors[", "paper")) or error.reason == "":
            raise
        if len(batch) == 1:
            line = batch[0][1]
            name = line.fields.get("id") or line.fields.get("name")
            return [
                Rejection(line.line, line.end, "refused", error.details, id=str(name or "")[:512], excerpt=line.excerpt)
            ]
        return [refusal for item in batch for refusal in _send([item], send)]
    return []
