"""``facets recommend``: authors, citations, papers, find, bulk, add-papers and add-authors."""

import csv
import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from facets_client.cli.bulk import BulkInput, BulkOptions, JsonLinesArgument, WindowOption
from facets_client.cli.options import (
    USE_CONTENT,
    USE_FILE_OPTION,
    TopKOption,
    WhereOption,
    check_is_text,
    expand_options,
    given,
    names_of_file,
    parse_where,
    text_of_file,
)
from facets_client.cli.output import clean, count_of, print_json, shortened, stdout, words
from facets_client.cli.settings import settings_of
from facets_client.client import FacetsClient
from facets_client.generated.types import (
    AddedAuthors,
    AddedPapers,
    CandidateKind,
    NewAuthor,
    Paper,
    RankedCandidate,
    RankedPaper,
)
from facets_client.load.rows import Record, Rejection
from facets_client.load.runner import BulkReport, BulkSettings, CallTask, Settled, batches
from facets_client.load.source import InputError, Source
from facets_client.load.state import StateFile, default_state_path
from facets_client.papers.bulk import BulkPaperSettings, CandidatesFile
from facets_client.papers.records import paper_of, read_authors, read_papers
from facets_client.papers.results import PaperOptions

_TITLE_CHARS = 90

app = typer.Typer(no_args_is_help=True)

PapersModelOption = Annotated[str, typer.Option(help="Name of the model.  [default: the server's for papers]")]
PapersFileOption = Annotated[
    str | None,
    typer.Option("--file", "-f", help='JSON lines file of papers: {"title", "abstract", ...}; -: standard input.'),
]
ExcludeOption = Annotated[list[str] | None, typer.Option("--exclude", "-x", help="Id to leave out; repeat for more.")]
FacetWeightOption = Annotated[
    float | None, typer.Option(help="Share of facet similarity in the score, 0 to 1; the rest is document similarity.")
]
EvidenceOption = Annotated[bool, typer.Option(help="Show the reasons: the facet, its words, the nearest papers.")]


@app.callback()
def recommend() -> None:
    """Recommend authors and citing papers for papers.

    \b
    Examples:
      facets recommend authors "Neural machine translation of rare words" --abstract @abstract.txt
      facets recommend citations --file paper.json --top-k 20
      facets recommend papers --author "Ada Lovelace" --collection submissions
    """


@dataclass(frozen=True, kw_only=True)
class CandidateOptions:
    """Arguments and options of ``authors`` and ``citations``."""

    title: Annotated[str | None, typer.Argument(help="Title of the paper.")] = None
    abstract: Annotated[str, typer.Option(help="Abstract of the paper, or @FILE to read it from a file.")] = ""
    file: PapersFileOption = None
    top_k: TopKOption = None
    exclude: ExcludeOption = None
    candidate: Annotated[list[str] | None, typer.Option(help="Consider only this candidate; repeat for more.")] = None
    where: WhereOption = None
    like: Annotated[list[str] | None, typer.Option(help="Prefer candidates like this one; repeat for more.")] = None
    unlike: Annotated[list[str] | None, typer.Option(help="Avoid candidates like this one; repeat for more.")] = None
    facet_weight: FacetWeightOption = None
    evidence: EvidenceOption = True
    diversify: Annotated[float | None, typer.Option(help="Preference for diverse candidates, 0 to 1.")] = None
    min_confidence: Annotated[float, typer.Option(help="Minimum confidence to show; --json shows all.")] = 0.1
    model: PapersModelOption = ""

    def papers(self) -> list[Paper]:
        """The paper from the command line, or the papers from the file."""
        if (self.title is None) == (self.file is None):
            raise typer.BadParameter("expected a title, or --file FILE")
        if self.file is not None:
            if self.abstract:
                raise typer.BadParameter("--abstract belongs to a title, got --file")
            return _papers_of_file(self.file)
        abstract = text_of_file(self.abstract[1:]) if self.abstract.startswith("@") else self.abstract
        title = check_is_text(self.title or "", f"{USE_FILE_OPTION}, JSONL of papers; {USE_CONTENT}")
        return [paper_of({"title": title, "abstract": abstract})]

    def paper_options(self) -> PaperOptions:
        """The options in the form that the client takes."""
        return PaperOptions(
            excluded_ids=self.exclude or (),
            candidates=self.candidate,
            where=parse_where(self.where),
            positive_ids=self.like or (),
            negative_ids=self.unlike or (),
            evidence=self.evidence,
            **given(top_k=self.top_k, facet_weight=self.facet_weight, diversify=self.diversify),
        )


@app.command()
@expand_options
def authors(context: typer.Context, options: CandidateOptions) -> None:
    """Find authors for papers: reviewers, experts.

    With --json: one object per line for each paper, {"paper", "candidates"}. --where filters by the years of an
    author's papers.

    \b
    Examples:
      facets recommend authors "Neural machine translation of rare words" --exclude "Ada Lovelace"
      facets recommend authors --file papers.jsonl --top-k 20 --where 'year>=2018'
      facets --json recommend authors "A title" --abstract @abstract.txt --like "Ada Lovelace"
    """
    _recommend(context, "authors", options)


@app.command()
@expand_options
def citations(context: typer.Context, options: CandidateOptions) -> None:
    """Find papers that would cite papers.

    With --json: one object per line for each paper, {"paper", "candidates"}. --where filters by the year of a
    citing paper.

    \b
    Examples:
      facets recommend citations "Neural machine translation of rare words"
      facets recommend citations --file papers.jsonl --top-k 20 --where 'year<=2014'
    """
    _recommend(context, "citations", options)


def _recommend(context: typer.Context, kind: CandidateKind, options: CandidateOptions) -> None:
    settings = settings_of(context)
    asked = options.papers()
    with settings.connect() as client:
        call = client.recommend_authors if kind == "authors" else client.recommend_citations
        found = call(asked, options.paper_options(), model=options.model)
    console = stdout()
    for paper, candidates in zip(asked, found.results, strict=True):
        if settings.json:
            about = {"id": paper.id, "title": paper.title}
            print_json({"paper": about, "candidates": candidates, "model": found.model})
            continue
        if len(asked) > 1:
            console.print(Text(shortened(paper.title, _TITLE_CHARS), style="bold"))
        sure = [item for item in candidates if item.confidence is None or item.confidence >= options.min_confidence]
        for rank, item in enumerate(sure, start=1):
            _print_item(console, rank, item, item.name or _cited_title(item))
        if not candidates:
            console.print(Text("no author is left" if kind == "authors" else "no paper is left", style="dim"))
        elif not sure:
            surest = f"the surest has confidence {candidates[0].confidence or 0.0:.2f}"
            console.print(Text(f"nothing relevant: {surest} (--min-confidence 0 shows it)", style="yellow"))
    if not settings.json:
        console.print(Text(f"{found.model.name}, {found.timings.total_ms:.0f} ms", style="dim"))


def _papers_of_file(file: str) -> list[Paper]:
    papers = []
    with Source(file) as source:
        for record in read_papers(source, need_id=False):
            if isinstance(record, Rejection):
                raise InputError(f"{file}, line {record.line}: {record.message}")
            papers.append(record.item)
    if not papers:
        raise InputError(f"{file}: expected at least one paper, got none")
    return papers


def _print_item(console: Console, rank: int, item: RankedCandidate | RankedPaper, name: str) -> None:
    """Prints rank, score, id and name, and below them the evidence."""
    head = Text(f"{rank:>3}  ")
    head.append(f"{item.score:.4f}", style="bold")
    if isinstance(item, RankedCandidate) and item.confidence is not None:
        head.append(f"  confidence {item.confidence:.2f}", style="green")
    head.append(f"  {clean(item.id)}", style="cyan")
    if name and name != item.id:
        head.append(f"  {shortened(name, _TITLE_CHARS)}")
    console.print(head)
    if item.evidence is None:
        return
    scores = f"facets {item.facet_score:.3f}, documents {item.document_score:.3f}"
    lines = [f"facet {item.evidence.facet} ({words(item.evidence.nearest_words)}), {scores}"]
    for near in item.evidence.nearest_papers:
        lines.append(f"{near.cosine:.2f}  {near.id}  {shortened(near.title, _TITLE_CHARS)}")
    for line in lines:
        console.print(Padding(Text(clean(line).rstrip(), style="dim"), (0, 0, 0, 5)))


def _cited_title(item: RankedCandidate) -> str:
    """Text shown in place of an unknown title."""
    cited = item.evidence.nearest_papers if item.evidence else ()
    return f"(title not known) cites: {cited[0].title}" if cited else "(title not known)"


@app.command()
def papers(
    context: typer.Context,
    author: Annotated[
        list[str] | None, typer.Option("--author", "-a", help="Rank for this author; repeat for more.")
    ] = None,
    citing: Annotated[list[str] | None, typer.Option(help="Rank for this citing paper (id); repeat for more.")] = None,
    collection: Annotated[str, typer.Option("--collection", "-c", help="Rank the papers of this collection.")] = "",
    file: PapersFileOption = None,
    top_k: TopKOption = None,
    where: WhereOption = None,
    exclude: ExcludeOption = None,
    facet_weight: FacetWeightOption = None,
    evidence: EvidenceOption = True,
    min_revision: Annotated[int | None, typer.Option(help="Wait for this index revision.")] = None,
    model: PapersModelOption = "",
) -> None:
    """Rank the papers of a collection, or of a file, for an author or a citing paper.

    A document's payload has "title", "abstract" and "year"; without a title, the first line of its text is the title.
    --where filters by the payload; for papers of a file, only by year.

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
    settings = settings_of(context)
    candidates = None if file is None else _papers_of_file(file)
    with settings.connect() as client:
        found = client.rank_papers(
            "authors" if author else "citations",
            ids,
            collection=collection,
            papers=candidates,
            where=parse_where(where),
            excluded_ids=exclude or (),
            evidence=evidence,
            model=model,
            **given(top_k=top_k, facet_weight=facet_weight, min_revision=min_revision),
        )
    console = stdout()
    for name, ranking in zip(ids, found.rankings, strict=True):
        if settings.json:
            print_json({"id": name, "papers": ranking, "num_papers": found.num_papers, "model": found.model})
            continue
        console.print(Text(clean(name), style="bold"))
        for rank, item in enumerate(ranking, start=1):
            _print_item(console, rank, item, item.title)
    if not settings.json:
        note = f"{count_of(found.num_papers, 'paper')} compared, {found.timings.total_ms:.0f} ms"
        console.print(Text(note, style="dim"))


@app.command()
def find(
    context: typer.Context,
    text: Annotated[list[str], typer.Argument(help="Names or ids, possibly misspelt.")],
    kind: Annotated[CandidateKind, typer.Option(help="What to find.")] = "authors",
    top_k: TopKOption = None,
    model: PapersModelOption = "",
) -> None:
    """Find authors or citing papers by name or id.

    \b
    Examples:
      facets recommend find "A. Lovelace"
      facets recommend find --kind citations "machine translation of rare words"
    """
    settings = settings_of(context)
    with settings.connect() as client:
        found = client.find_candidates(kind, text, model=model, **given(top_k=top_k))
    for asked, candidates in zip(text, found.results, strict=True):
        if settings.json:
            print_json({"text": asked, "candidates": candidates, "num_candidates": found.num_candidates})
            continue
        for candidate in candidates:
            name = f"  {candidate.name}" if candidate.name not in ("", candidate.id) else ""
            typer.echo(clean(candidate.id + name))
        if not candidates:
            typer.echo(clean(f"nothing like {asked} among {found.num_candidates}"), err=True)


@app.command()
@expand_options
def bulk(
    context: typer.Context,
    *,
    file: JsonLinesArgument,
    out: Annotated[Path, typer.Option(help="CSV file to write: paper, candidate, score.")],
    kind: Annotated[CandidateKind, typer.Option(help="What to recommend.")] = "authors",
    candidates: Annotated[
        str | None, typer.Option(help="File of the only candidates, one name or id per line; -: standard input.")
    ] = None,
    conflicts: Annotated[
        Path | None, typer.Option(help="CSV without header: paper id, candidate never to recommend for it.")
    ] = None,
    own: Annotated[bool, typer.Option("--own/--no-own", help="Also recommend a paper's own authors.")] = False,
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="Number of candidates per paper.")] = 50,
    where: WhereOption = None,
    facet_weight: FacetWeightOption = None,
    window: WindowOption = None,
    options: BulkOptions,
    model: PapersModelOption = "",
) -> None:
    """Match a whole conference: the best candidates of every paper, as a sparse CSV file of scores.

    FILE has one paper per line: {"id", "title", "abstract", "authors", "excluded"}. A paper's own authors and those in
    "excluded" are never recommended for it. The CSV file appears when it is complete. Until then its rows are in
    OUT.part; after an interruption, run the same command again. Rejected records go to a file, and the exit code is 1.

    \b
    Examples:
      facets recommend bulk submissions.jsonl --candidates reviewers.txt --out scores.csv
      facets recommend bulk submissions.jsonl.xz --conflicts conflicts.csv --top-k 100 --out scores.csv
      facets recommend bulk papers.jsonl --kind citations --out citing.csv
    """
    settings = settings_of(context)
    if file == candidates == "-":
        raise typer.BadParameter("papers and --candidates cannot both be standard input")
    asked = BulkPaperSettings(
        kind=kind,
        options=PaperOptions(
            top_k=top_k,
            candidates=None if candidates is None else names_of_file(candidates),
            where=parse_where(where),
            facet_weight=facet_weight,
        ),
        model=model,
        own_excluded=not own,
        conflicts={} if conflicts is None else _read_conflicts(conflicts),
    )
    bulk_settings = BulkSettings(
        batch_size=options.batch_size or 128, window=window or 2, **given(max_wait_s=options.max_wait_s)
    )
    target = CandidatesFile(out, asked)
    with Source(file) as source:
        bulk_input = BulkInput(settings, source, options)
        if out.resolve() in {Path(name).resolve() for name in (file, bulk_input.rejected_path) if name != "-"}:
            raise typer.BadParameter(f"--out must not be the input or the rejected file, got {str(out)!r}")
        if not out.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(out))
        state_file = StateFile(target.state_path, bulk_input.identity(settings=asked.digest()))
        with settings.connect(watched=False) as client:
            task = target.task(client, source, bulk_settings)
            try:
                report = bulk_input.run(
                    task, bulk_settings, state_file=state_file, verb="answered", may_resume=target.holds
                )
            finally:
                target.close()
    _print_bulk_report(bulk_input, target, report)
    bulk_input.end(report.place)


def _print_bulk_report(bulk_input: BulkInput, target: CandidatesFile, report: BulkReport) -> None:
    settings, place = bulk_input.settings, report.place
    if target.num_unknown_candidates:
        first = ", ".join(repr(name) for name in target.unknown_candidates[:3])
        entries = count_of(target.num_unknown_candidates, "entry of --candidates is", "entries of --candidates are")
        settings.note(f"{entries} unknown ({first}): add-authors adds them")
    if target.unmatched_conflicts and not target.is_resumed:
        unmatched = sorted(target.unmatched_conflicts)
        ids = count_of(len(unmatched), "id of --conflicts matches", "ids of --conflicts match")
        settings.note(f"{ids} no paper of {bulk_input.source.name}, for example {unmatched[0]!r}")
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
                "num_unknown_candidates": target.num_unknown_candidates,
                "unknown_candidates": target.unknown_candidates,
                "out": str(target.path),
                "rejected_file": bulk_input.rejected_file(place),
            }
        )
    else:
        typer.echo(
            f"{count_of(place.num_done, 'paper')}: {count_of(num_rows, 'row')} in {target.path}, "
            f"{num_empty} without a candidate, {place.num_rejected} rejected, "
            f"{report.duration_s:.1f} s, {report.records_per_s:.0f} papers/s"
        )


def _read_conflicts(path: Path) -> dict[str, list[str]]:
    """Id of a paper -> candidates never recommended for it."""
    conflicts: dict[str, list[str]] = {}
    for number, row in enumerate(csv.reader(text_of_file(str(path)).splitlines()), start=1):
        if not row:
            continue
        if len(row) < 2 or not row[0].strip() or not row[1].strip():
            raise InputError(f"{path}, line {number}: expected the id of a paper and a candidate, got {row!r:.60}")
        conflicts.setdefault(row[0].strip(), []).append(row[1].strip())
    return conflicts


@app.command("add-papers")
@expand_options
def add_papers(
    context: typer.Context, file: JsonLinesArgument, options: BulkOptions, model: PapersModelOption = ""
) -> None:
    """Add papers with their authors and the papers that cite them, without training.

    FILE has one paper per line: {"id", "title", "abstract", "authors", "cited_by", "year"}; an author is a name, or
    {"name", "id"}. Each request is atomic, and durable once its records are counted. Running the command again
    replaces papers with the same id.

    \b
    Examples:
      facets recommend add-papers new-papers.jsonl
      zcat papers.jsonl.gz | facets recommend add-papers -
    """

    def add(client: FacetsClient, papers: list[Paper]) -> AddedPapers:
        return client.add_papers(papers, model=model)

    counts = {
        "num_papers": "paper",
        "num_authors": "author",
        "num_citing_papers": "citing paper",
        "num_unknown_citations": "unknown citation",
    }
    read = partial(read_papers, need_id=True)
    report = "{num_papers} added; {num_authors} and {num_citing_papers} fitted"
    _add(context, "papers", file, options, model, read=read, add=add, counts=counts, report=report)


@app.command("add-authors")
@expand_options
def add_authors(
    context: typer.Context, file: JsonLinesArgument, options: BulkOptions, model: PapersModelOption = ""
) -> None:
    """Add authors by their papers, without training; known authors get more papers.

    FILE has one author per line: {"name", "id", "papers": [{"title", "abstract"}, ...], "paper_ids": [...]}. Each
    request is atomic, and durable once its records are counted.

    \b
    Examples:
      facets recommend add-authors reviewers.jsonl
    """

    def add(client: FacetsClient, authors: list[NewAuthor]) -> AddedAuthors:
        return client.add_authors(authors, model=model)

    counts = {"num_authors": "author", "num_papers": "paper"}
    report = "{num_authors} of {num_papers} added"
    _add(context, "authors", file, options, model, read=read_authors, add=add, counts=counts, report=report)


def _add(
    context: typer.Context,
    kind: str,
    file: str,
    options: BulkOptions,
    model: str,
    *,
    read: Callable[[Source], Iterator[Record[Any] | Rejection]],
    add: Callable[[FacetsClient, list[Any]], AddedPapers | AddedAuthors],
    counts: Mapping[str, str],
    report: str,
) -> None:
    """Adds papers or authors.

    Args:
        context: Context of the command.
        kind: ``papers`` or ``authors``.
        file: The input.
        options: Options of the run.
        model: Name of the model.
        read: Function that reads the records of the input.
        add: Function that adds a batch of records.
        counts: Name of each count in the replies -> its singular.
        report: Text to print at the end, with the counts in braces.
    """
    settings = settings_of(context)
    default_batch_size = 128 if kind == "papers" else 32
    bulk_settings = BulkSettings(
        batch_size=options.batch_size or default_batch_size, window=1, **given(max_wait_s=options.max_wait_s)
    )

    def take(records: Sequence[Record[Any]], reply: AddedPapers | AddedAuthors) -> Settled:
        return Settled(totals={name: getattr(reply, name) for name in counts})

    with Source(file) as source, settings.connect(watched=False) as client:
        bulk_input = BulkInput(settings, source, options)
        task = CallTask(
            kind,
            lambda place: batches(
                (record for record in read(source) if record.line > place.line), bulk_settings, place
            ),
            partial(add, client),
            take,
        )
        state_path = default_state_path(os.environ, f"add-{kind}", client.target, model, bulk_input.full_name)
        state_file = StateFile(state_path, bulk_input.identity(name=bulk_input.full_name, model=model))
        place = bulk_input.run(task, bulk_settings, state_file=state_file, verb="added").place
    totals = {name: place.totals.get(name, 0) for name in counts}
    if settings.json:
        rejected_file = bulk_input.rejected_file(place)
        print_json({**totals, "num_rejected": place.num_rejected, "rejected_file": rejected_file})
    else:
        shown = {name: count_of(totals[name], singular) for name, singular in counts.items()}
        typer.echo(f"{report.format_map(shown)}; {place.num_rejected} rejected")
        if unknown := totals.get("num_unknown_citations"):
            entries = count_of(unknown, "entry of cited_by is", "entries of cited_by are")
            settings.note(f"{entries} unknown")
    bulk_input.end(place)


COMMANDS = {"recommend": app}
