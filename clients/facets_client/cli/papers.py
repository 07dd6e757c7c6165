"""``facets recommend``: authors, citations, papers, find, bulk, assign, add-papers and add-authors."""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import floor
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import typer
from typer import Argument, Option

from facets_client.cli.bulk import (
    DEFAULTS,
    BatchSizeOption,
    BulkInput,
    JsonLinesArgument,
    MaxWaitOption,
    RejectedOption,
    WindowOption,
)
from facets_client.cli.failures import need_command
from facets_client.cli.options import (
    TopKOption,
    WhereOption,
    check_is_text,
    lines_of_file,
    names_of_file,
    parse_where,
    text_of_file,
)
from facets_client.cli.output import print_json, stdout
from facets_client.cli.settings import Settings, ask, call_with, settings_of
from facets_client.client import FacetsClient
from facets_client.core.blocking import batched
from facets_client.core.drawing import count_of, line, progress_bar, shortened
from facets_client.core.extras import require_extra
from facets_client.generated.types import CandidateKind, CandidateRankings, Paper, PaperOptions, PaperRankings
from facets_client.load.outputs import whole_file
from facets_client.load.rows import Record, Rejection
from facets_client.load.runner import BulkSettings, CallTask, Settled, batches
from facets_client.load.source import InputError, Source
from facets_client.papers.assignment import assign as best_assignment
from facets_client.papers.assignment import check_loads, conflicts_of
from facets_client.papers.messages import BulkCandidates, paper_of, read_authors, read_papers

_TITLE_CHARS = 90
_ASKED_CANDIDATES = 1_000  # most candidates of one request
_PAPERS_AT_A_TIME, _REVIEWERS_AT_A_TIME = 64, 16

ItemT = TypeVar("ItemT")

app = typer.Typer(invoke_without_command=True, add_completion=False)

PapersModelOption = Annotated[str, Option(help="Name of the model.  [default: the server's for papers]")]
PapersFileOption = Annotated[
    str | None, Option("--file", "-f", help='JSON lines file of papers: {"title", "abstract", ...}; -: standard input.')
]
ExcludeOption = Annotated[list[str] | None, Option("--exclude", "-x", help="Id to leave out; repeat for more.")]
EvidenceOption = Annotated[bool, Option(help="Show the reasons: the facet, its words, the nearest papers.")]
FromYearOption = Annotated[int | None, Option(help="Earliest year of the papers.")]
ToYearOption = Annotated[int | None, Option(help="Latest year of the papers.")]


@app.callback()
def recommend(context: typer.Context) -> None:
    """Recommend authors and citing papers for papers.

    \b
    Examples:
      facets recommend authors "Neural machine translation of rare words" --abstract @abstract.txt
      facets recommend citations --file paper.json --top-k 20
    """
    need_command(context)


def _asking_help(command: str, summary: str, whose_years: str) -> str:
    return f"""{summary}

    With --json: one object per line for each paper, {{"paper", "candidates"}}. Years are those of {whose_years}.

    \b
    Examples:
      facets recommend {command} "Neural machine translation of rare words" --abstract @abstract.txt
      facets recommend {command} --file papers.jsonl --top-k 20 --from-year 2018
    """


@app.command(
    "authors", help=_asking_help("authors", "Find authors for papers (reviewers, experts).", "an author's papers")
)
@app.command(
    "citations", help=_asking_help("citations", "Find papers that would cite the given ones.", "the citing papers")
)
def authors_or_citations(
    context: typer.Context,
    title: Annotated[str | None, Argument(help="Title of the paper.")] = None,
    abstract: Annotated[str, Option(help="Abstract of the paper, or @FILE to read it from a file.")] = "",
    file: PapersFileOption = None,
    top_k: TopKOption = None,
    exclude: ExcludeOption = None,
    candidate: Annotated[list[str] | None, Option(help="Consider only this candidate; repeat for more.")] = None,
    from_year: FromYearOption = None,
    to_year: ToYearOption = None,
    evidence: EvidenceOption = True,
    diversify: Annotated[float | None, Option(help="Preference for diverse candidates, 0 to 1.")] = None,
    min_confidence: Annotated[float, Option(help="Minimum confidence to show; --json shows all.")] = 0.1,
    model: PapersModelOption = "",
) -> None:
    """``facets recommend authors`` and ``citations``."""
    options = call_with(PaperOptions, locals(), excluded_ids=exclude or (), candidates=candidate)
    asked = _asked_papers(title, abstract, file)

    def show(found: CandidateRankings) -> None:
        sure = [
            tuple(item for item in ranking if item.confidence is None or item.confidence >= min_confidence)
            for ranking in found.results
        ]
        stdout().print(replace(found, results=tuple(sure)))
        for paper, ranking, kept in zip(asked, found.results, sure, strict=True):
            if ranking and not kept:
                surest = f"the surest has confidence {floor(100 * (ranking[0].confidence or 0.0)) / 100:.2f}"
                problem = f"nothing relevant: {surest} (--min-confidence 0 shows it)"
                stdout().print(line(f"{shortened(paper.title, _TITLE_CHARS)}: {problem}", "yellow"))
        stdout().print(line(f"{found.model.name}, {found.timings.total_ms:.0f} ms"))

    ask(
        context,
        lambda client: getattr(client, f"recommend_{context.info_name}")(asked, options, model=model),
        show,
        lambda found: [
            {"paper": {"id": paper.id, "title": paper.title}, "candidates": candidates, "model": found.model}
            for paper, candidates in zip(asked, found.results, strict=True)
        ],
    )


def _asked_papers(title: str | None, abstract: str, file: str | None) -> list[Paper]:
    if (title is None) == (file is None):
        raise typer.BadParameter("expected a title, or --file FILE")
    if file is not None:
        if abstract:
            raise typer.BadParameter("--abstract belongs to a title, got --file")
        return _papers_of_file(file)
    abstract = text_of_file(abstract[1:]) if abstract.startswith("@") else abstract
    return [paper_of({"title": check_is_text(title or ""), "abstract": abstract})]


def _papers_of_file(file: str, *, need_id: bool = False) -> list[Paper]:
    return _items_of_file(file, partial(read_papers, need_id=need_id), "paper")


def _items_of_file(file: str, read: Callable[[Source], Iterable[Record[ItemT] | Rejection]], kind: str) -> list[ItemT]:
    items = []
    with Source(file) as source:
        for record in read(source):
            if isinstance(record, Rejection):
                raise InputError(f"{file}, line {record.line}: {record.message}")
            items.append(record.item)
    if not items:
        raise InputError(f"{file}: expected at least one {kind}, got none")
    return items


@app.command()
def papers(
    context: typer.Context,
    author: Annotated[list[str] | None, Option("--author", "-a", help="Rank for this author; repeat for more.")] = None,
    citing: Annotated[list[str] | None, Option(help="Rank for this citing paper (id); repeat for more.")] = None,
    collection: Annotated[str, Option("--collection", "-c", help="Rank the papers of this collection.")] = "",
    file: PapersFileOption = None,
    top_k: TopKOption = None,
    where: WhereOption = None,
    from_year: FromYearOption = None,
    to_year: ToYearOption = None,
    exclude: ExcludeOption = None,
    evidence: EvidenceOption = True,
    model: PapersModelOption = "",
) -> None:
    """Rank the papers of a collection, or of a file, for an author or a citing paper.

    A document's payload has "title", "abstract" and "year"; without a title, the first line of its text is the title.
    --where filters a collection by the payload.

    \b
    Examples:
      facets recommend papers --author "Ada Lovelace" --collection submissions
      facets recommend papers --citing P06-1057 --file candidates.jsonl --top-k 5
    """
    if bool(author) == bool(citing):
        raise typer.BadParameter("expected --author or --citing")
    if bool(collection) == (file is not None):
        raise typer.BadParameter("expected --collection or --file")
    ids = author or citing or []
    options = locals() | {"where": parse_where(where), "excluded_ids": exclude or ()}
    options["papers"] = None if file is None else _papers_of_file(file)

    def show(found: PaperRankings) -> None:
        stdout().print(found)
        stdout().print(line(f"{count_of(found.num_papers, 'paper')} compared, {found.timings.total_ms:.0f} ms"))

    ask(
        context,
        lambda client: call_with(client.rank_papers, options, kind="authors" if author else "citations"),
        show,
        lambda found: [
            {"id": name, "papers": ranking, "num_papers": found.num_papers, "model": found.model}
            for name, ranking in zip(ids, found.rankings, strict=True)
        ],
    )


@app.command()
def find(
    context: typer.Context,
    text: Annotated[list[str], Argument(help="Names or ids, possibly misspelt.")],
    kind: Annotated[CandidateKind, Option(help="What to find.")] = "authors",
    top_k: TopKOption = None,
    model: PapersModelOption = "",
) -> None:
    """Find authors or citing papers by name or id.

    \b
    Examples:
      facets recommend find "A. Lovelace"
      facets recommend find --kind citations "machine translation of rare words"
    """
    ask(
        context,
        lambda client: client.find_candidates(kind, text, model=model, top_k=top_k),
        as_json=lambda found: [
            {"text": asked, "candidates": candidates, "num_candidates": found.num_candidates}
            for asked, candidates in zip(text, found.results, strict=True)
        ],
    )


@app.command()
def bulk(
    context: typer.Context,
    file: JsonLinesArgument,
    out: Annotated[Path, Option(help="CSV file to write: paper, candidate, score.")],
    kind: Annotated[CandidateKind, Option(help="What to recommend.")] = "authors",
    candidates: Annotated[str | None, Option(help="File of all candidates, one per line; -: standard input.")] = None,
    conflicts: Annotated[Path | None, Option(help="CSV without header: paper id, candidate to leave out.")] = None,
    top_k: Annotated[int, Option("--top-k", "-k", help="Number of candidates per paper.")] = 50,
    from_year: FromYearOption = None,
    to_year: ToYearOption = None,
    rejected: RejectedOption = None,
    batch_size: BatchSizeOption = 128,
    window: WindowOption = 2,
    max_wait_s: MaxWaitOption = DEFAULTS.max_wait_s,
    model: PapersModelOption = "",
) -> None:
    """Match a whole conference: the best candidates of every paper, as a sparse CSV file of scores.

    FILE has one paper per line: {"id", "title", "abstract", "authors", "excluded"}. A paper's own authors and those in
    "excluded" are never recommended for it. The CSV file appears when it is complete. Rejected records go to a file,
    and the exit code is 1.

    \b
    Examples:
      facets recommend bulk submissions.jsonl --candidates reviewers.txt --out scores.csv
      facets recommend bulk submissions.jsonl.xz --conflicts conflicts.csv --top-k 100 --out scores.csv
    """
    settings = settings_of(context)
    if file == candidates == "-":
        raise typer.BadParameter("papers and --candidates cannot both be standard input")
    only = None if candidates is None else names_of_file(candidates)
    asked = PaperOptions(top_k, (), only, from_year, to_year)
    excluded = {} if conflicts is None else _read_conflicts(conflicts)
    bulk_settings = BulkSettings(batch_size=batch_size, window=window, max_wait_s=max_wait_s)
    unknown: tuple[int, tuple[str, ...]] = (0, ())

    def with_exclusions(record: Record[Paper] | Rejection) -> Record[Paper] | Rejection:
        if isinstance(record, Rejection):
            return record
        others = excluded.get(record.item.id, ())
        return replace(record, item=_excluding(record.item, others, own=kind == "authors"))

    with Source(file) as source:
        bulk_input = BulkInput(settings, source, rejected)
        if out.resolve() in {Path(name).resolve() for name in (file, bulk_input.rejected_path) if name != "-"}:
            raise typer.BadParameter(f"--out must not be the input or the rejected file, got {str(out)!r}")
        with settings.connect() as client, whole_file(out) as unfinished, unfinished.open("w", newline="") as csv_file:
            _note_unknown(client, settings, conflicts, excluded, kind, model)
            writer = csv.writer(csv_file)
            writer.writerow(("paper", kind.removesuffix("s"), "score"))

            def take(records: Sequence[Record[Paper]], reply: BulkCandidates) -> Settled:
                nonlocal unknown
                unknown = reply.num_unknown_candidates, reply.unknown_candidates
                for record, results in zip(records, reply.results, strict=True):
                    writer.writerows((record.item.id, candidate, f"{score:.6g}") for candidate, score in results)
                num_empty = sum(not results for results in reply.results)
                return Settled(totals={"num_rows": sum(map(len, reply.results)), "num_empty": num_empty})

            task = CallTask(
                "papers",
                lambda: batches(map(with_exclusions, read_papers(source, need_id=True)), bulk_settings),
                lambda papers: client.recommend_bulk(kind, papers, asked, model=model),
                take,
                max_under_way=bulk_settings.window,
            )
            report = bulk_input.run(task, bulk_settings, verb="answered")
    if unknown[0]:
        first = ", ".join(map(repr, unknown[1][:3]))
        entries = count_of(unknown[0], "entry of --candidates is", "entries of --candidates are")
        settings.note(f"{entries} unknown ({first}): add-authors adds them")
    counts = {name: report.totals[name] for name in ("num_rows", "num_empty")}
    rows = f"{count_of(counts['num_rows'], 'row')} in {out}, {counts['num_empty']} without a candidate"
    fields = {"num_unknown_candidates": unknown[0], "unknown_candidates": unknown[1], "out": str(out)}
    bulk_input.end(report, "papers", rows, num_papers=report.num_done, **counts, **fields)


@app.command()
def assign(
    context: typer.Context,
    file: JsonLinesArgument,
    out: Annotated[Path, Option(help="CSV file to write: paper, reviewer, score.")],
    max_papers: Annotated[int, Option(help="Most papers of a reviewer.")],
    reviewers: Annotated[str | None, Option(help="JSON lines file of reviewers to add first.")] = None,
    candidates: Annotated[str | None, Option(help="File of authors that are known already, one id per line.")] = None,
    conflicts: Annotated[Path | None, Option(help="CSV without header: paper id, reviewer to leave out.")] = None,
    reviewers_per_paper: Annotated[int, Option(help="Reviewers of each paper.")] = 3,
    min_papers: Annotated[int, Option(help="Fewest papers of a reviewer.")] = 0,
    model: PapersModelOption = "",
) -> None:
    """Assign reviewers to all papers of a conference: the greatest sum of scores that loads and conflicts allow.

    FILE has one paper per line: {"id", "title", "abstract", "authors", "excluded"}. Authors of a paper, those in
    "excluded", and reviewers who wrote another paper in --reviewers with one of its authors are conflicts.

    \b
    Examples:
      facets recommend assign submissions.jsonl --reviewers reviewers.jsonl --max-papers 6 --out assigned.csv
      facets recommend assign submissions.jsonl --candidates reviewers.txt --conflicts conflicts.csv --max-papers 6
        --min-papers 2 --out assigned.csv
    """
    settings = settings_of(context)
    if reviewers is None and candidates is None:
        raise typer.BadParameter("expected --reviewers or --candidates")
    papers = _papers_of_file(file, need_id=True)
    new = [] if reviewers is None else _items_of_file(reviewers, read_authors, "reviewer")
    ids = [reviewer.author.id or reviewer.author.name for reviewer in new]
    ids = list(dict.fromkeys([*ids, *(() if candidates is None else names_of_file(candidates))]))
    check_loads(len(papers), len(ids), reviewers_per_paper, min_papers, max_papers)
    require_extra("assign", "scipy")  # before reviewers are added
    excluded = {} if conflicts is None else _read_conflicts(conflicts)
    if foreign := sorted(excluded.keys() - {paper.id for paper in papers}):
        settings.note(f"{conflicts}: {count_of(len(foreign), 'paper is', 'papers are')} not in {file}: {foreign[0]!r}")
    asked = [_excluding(paper, [*conflicts_of(paper, new), *excluded.get(paper.id, ())], own=True) for paper in papers]
    scores = np.full((len(papers), len(ids)), -np.inf)
    column = {key: number for number, key in enumerate(ids)}
    blocks = [ids[start : start + _ASKED_CANDIDATES] for start in range(0, len(ids), _ASKED_CANDIDATES)]
    with settings.connect() as client, progress_bar("records", quiet=settings.quiet) as bar:
        shown = bar.add_task("", total=len(new) + len(papers) * len(blocks))
        for some in batched(new, _REVIEWERS_AT_A_TIME):
            client.add_authors(some, model=model)
            bar.advance(shown, len(some))
        _note_unknown(client, settings, conflicts, excluded, "authors", model)
        for block in blocks:
            options = PaperOptions(len(block), (), block)
            for start in range(0, len(papers), _PAPERS_AT_A_TIME):
                found = client.recommend_bulk("authors", asked[start : start + _PAPERS_AT_A_TIME], options, model=model)
                if found.num_unknown_candidates:
                    unknown = ", ".join(map(repr, found.unknown_candidates[:3]))
                    raise InputError(f"{candidates}: the model has no author {unknown}; --reviewers adds authors")
                for row, results in enumerate(found.results, start=start):
                    for key, score in results:
                        scores[row, column[key]] = score
                bar.advance(shown, len(found.results))
    loads = {"reviewers_per_paper": reviewers_per_paper, "min_papers": min_papers, "max_papers": max_papers}
    assigned = best_assignment([paper.id for paper in papers], ids, scores, **loads)
    with whole_file(out) as unfinished, unfinished.open("w", newline="") as csv_file:
        writer = csv.writer(csv_file)
        writer.writerow(("paper", "reviewer", "score"))
        writer.writerows((pair.paper, pair.reviewer, f"{pair.score:.6g}") for pair in assigned)
    counts = Counter(pair.reviewer for pair in assigned)
    summary = {
        "num_papers": len(papers),
        "num_reviewers": len(ids),
        "least_papers": min(counts[key] for key in ids),
        "most_papers": max(counts[key] for key in ids),
        "mean_score": sum(pair.score for pair in assigned) / len(assigned),
        "out": str(out),
    }
    if settings.json:
        print_json({**summary, "assignments": assigned})
        return
    typer.echo(
        f"{count_of(len(assigned), 'place')} in {out}: {count_of(len(papers), 'paper')} x {reviewers_per_paper}, "
        f"{count_of(len(ids), 'reviewer')} with {summary['least_papers']} to {summary['most_papers']} papers; "
        f"mean score {summary['mean_score']:.3f}"
    )


def _excluding(paper: Paper, candidates: Sequence[str], *, own: bool) -> Paper:
    """The paper with more excluded candidates and its ``own`` authors, without fields that only AddPapers reads."""
    own_ids = [author.id or author.name for author in paper.authors] if own else []
    return replace(paper, excluded_ids=(*paper.excluded_ids, *own_ids, *candidates), authors=(), cited_by_ids=())


def _note_unknown(
    client: FacetsClient,
    settings: Settings,
    conflicts: Path | None,
    excluded: Mapping[str, Sequence[str]],
    kind: CandidateKind,
    model: str,
) -> None:
    """Notes names of the file of conflicts that the model does not know: they may be misspelt."""
    for names in batched(sorted({name for others in excluded.values() for name in others}), _ASKED_CANDIDATES):
        found = client.recommend_bulk(kind, [Paper("Conflicts")], PaperOptions(1, (), names), model=model)
        if found.num_unknown_candidates:
            count = count_of(found.num_unknown_candidates, "name is", "names are")
            settings.note(f"{conflicts}: {count} unknown: {', '.join(map(repr, found.unknown_candidates[:3]))}")


def _read_conflicts(path: Path) -> dict[str, list[str]]:
    """Id of a paper -> candidates never recommended for it."""
    conflicts: dict[str, list[str]] = {}
    for where, pair in lines_of_file(str(path)):
        row = next(csv.reader([pair]))
        if len(row) < 2 or not row[0].strip() or not row[1].strip():
            raise InputError(f"{where}: expected the id of a paper and a candidate, got {row!r:.60}")
        conflicts.setdefault(row[0].strip(), []).append(row[1].strip())
    return conflicts


# What the replies to add-papers and add-authors count.
_ADDED = {"papers": ("paper", "author", "citing paper", "unknown citation"), "authors": ("author", "paper")}


def _adding_help(command: str, summary: str, record: str, known: str) -> str:
    return f"""{summary}, without training.

    FILE has {record}. An author of a paper is a name, or {{"name", "id"}}. Each request is atomic, and durable once its
    records are counted. {known}

    \b
    Examples:
      facets recommend {command} {command.replace("add", "new")}.jsonl
    """


_PAPER = '{"id", "title", "abstract", "authors", "cited_by", "year"}'
_AUTHOR = '{"name", "id", "papers": [paper, ...], "paper_ids": [...]}'


@app.command(
    "add-papers",
    help=_adding_help(
        "add-papers",
        "Add papers, with their authors and the papers that cite them",
        f"one paper per line: {_PAPER}",
        "Papers with the same id are replaced.",
    ),
)
@app.command(
    "add-authors",
    help=_adding_help(
        "add-authors",
        "Add authors by their papers",
        f"one author per line: {_AUTHOR}, and a paper has the fields {_PAPER}",
        "Known authors get more papers.",
    ),
)
def add(
    context: typer.Context,
    file: JsonLinesArgument,
    rejected: RejectedOption = None,
    batch_size: BatchSizeOption = 32,
    max_wait_s: MaxWaitOption = DEFAULTS.max_wait_s,
    model: PapersModelOption = "",
) -> None:
    """``facets recommend add-papers`` and ``add-authors``."""
    kind = (context.info_name or "").removeprefix("add-")
    counts = {f"num_{singular.replace(' ', '_')}s": singular for singular in _ADDED[kind]}
    read = read_authors if kind == "authors" else partial(read_papers, need_id=True)
    settings = settings_of(context)
    bulk_settings = BulkSettings(batch_size=batch_size, window=1, max_wait_s=max_wait_s)
    with Source(file) as source, settings.connect() as client:
        bulk_input = BulkInput(settings, source, rejected)
        add_all: Callable[..., Any] = client.add_papers if kind == "papers" else client.add_authors
        task: CallTask[Any, Any] = CallTask(
            kind,
            lambda: batches(read(source), bulk_settings),
            lambda items: add_all(items, model=model),
            lambda records, reply: Settled(totals={name: getattr(reply, name) for name in counts}),
        )
        report = bulk_input.run(task, bulk_settings, verb="added")
    totals = {name: report.totals[name] for name in counts}
    shown = ", ".join(count_of(totals[name], singular) for name, singular in counts.items())
    bulk_input.end(report, kind, f"added {shown}", **totals)
