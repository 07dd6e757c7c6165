"""``facets recommend``: authors, citations, papers, find."""

from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from facets_client.cli.options import AS_FILE, AS_TEXT, WhereOption, no_file, parse_where, text_of_file
from facets_client.cli.output import clean, count_of, print_json, shortened, stdout, words
from facets_client.cli.papers.load import ADD_HELP, PapersModelOption, bulk
from facets_client.cli.settings import settings_of
from facets_client.generated.types import (
    CandidateEvidence,
    CandidateKind,
    Paper,
    PaperRankings,
    RankedCandidate,
    RankedPaper,
)
from facets_client.load.records import Rejection
from facets_client.load.source import InputError, RecordSource
from facets_client.papers.records import paper_of, read_papers
from facets_client.papers.results import PaperOptions

TITLE_CHARS = 90


def print_item(console: Console, rank: int, item: RankedCandidate | RankedPaper, name: str) -> None:
    """Rank, score, id and name; below, why."""
    head = Text(f"{rank:>3}  ")
    head.append(f"{item.score:.4f}", style="bold")
    if isinstance(item, RankedCandidate) and item.confidence is not None:
        head.append(f"  confidence {item.confidence:.2f}", style="green")
    head.append(f"  {clean(item.id)}", style="cyan")
    if name and name != item.id:
        head.append(f"  {shortened(name, TITLE_CHARS)}")
    console.print(head)
    if item.evidence is not None:
        _print_evidence(console, item.evidence, item)


def _print_evidence(console: Console, evidence: CandidateEvidence, item: RankedCandidate | RankedPaper) -> None:
    line = Text(style="dim")
    line.append(clean(f"facet {evidence.facet} ({words(evidence.nearest_words)})"))
    line.append(f", facets {item.facet_score:.3f}, documents {item.document_score:.3f}")
    lines = [line]
    for paper in evidence.nearest_papers:
        line_of_paper = f"{paper.cosine:.2f}  {clean(paper.id)}  {shortened(paper.title, TITLE_CHARS)}"
        lines.append(Text(line_of_paper.rstrip(), style="dim"))
    for shown in lines:
        console.print(Padding(shown, (0, 0, 0, 5)))


app = typer.Typer(no_args_is_help=True)

TitleArgument = Annotated[str | None, typer.Argument(help="Title of the paper.", show_default=False)]
AbstractOption = Annotated[str, typer.Option(help="Its abstract, or @FILE to read it from a file.")]
FileOption = Annotated[
    str | None, typer.Option("--file", "-f", help='Papers, JSONL: {"title", "abstract", ...}; - reads standard input.')
]
TopOption = Annotated[int, typer.Option("--top-k", "-k", help="How many for each.", min=1)]
ExcludeOption = Annotated[
    list[str] | None, typer.Option("--exclude", "-x", help="Never this one; repeat for more.", show_default=False)
]
CandidateOption = Annotated[
    list[str] | None, typer.Option("--candidate", help="Only this one; repeat for more.", show_default=False)
]
LikeOption = Annotated[
    list[str] | None, typer.Option("--like", help="More like this one; repeat for more.", show_default=False)
]
UnlikeOption = Annotated[
    list[str] | None, typer.Option("--unlike", help="Less like this one; repeat for more.", show_default=False)
]
WeightOption = Annotated[
    float | None,
    typer.Option(help="Share of the facets in the score, 0 to 1; the rest is document similarity.", min=0, max=1),
]
DiversifyOption = Annotated[
    float, typer.Option(help="How much they shall differ, 0 to 1: people of one group come apart.", min=0, max=1)
]
ConfidenceOption = Annotated[
    float, typer.Option(help="Show only those that it is this sure of; --json shows all.", min=0, max=1)
]
EvidenceOption = Annotated[bool, typer.Option(help="Show why: the facet, its words, the nearest papers.")]


@app.callback()
def recommend() -> None:
    """Predict from title and abstract who would write and who would cite a paper.

    \b
    Examples:
      facets recommend authors "Neural machine translation of rare words" --abstract @abstract.txt
      facets recommend citations --file paper.json --top-k 20
      facets recommend papers --author "Ada Lovelace" --collection submissions
      facets recommend bulk submissions.jsonl --candidates reviewers.txt --out scores.csv
    """


_AUTHORS_HELP = """Find authors for papers: reviewers, experts.

    With --json: one object a line for each paper, {"paper", "candidates"}. --where is about the years of an
    author's papers.

    \b
    Examples:
      facets recommend authors "Neural machine translation of rare words" --exclude "Ada Lovelace"
      facets recommend authors --file papers.jsonl --top-k 20 --where 'year>=2018'
      facets --json recommend authors "A title" --abstract @abstract.txt --like "Ada Lovelace"
    """
_CITATIONS_HELP = """Find papers that would cite papers.

    With --json: one object a line for each paper, {"paper", "candidates"}. --where is about the year of a citing
    paper.

    \b
    Examples:
      facets recommend citations "Neural machine translation of rare words"
      facets recommend citations --file papers.jsonl --top-k 20 --where 'year<=2014'
    """


def _candidates_command(kind: CandidateKind) -> Callable[..., None]:
    """``authors`` and ``citations`` have the same arguments."""

    def command(
        context: typer.Context,
        title: TitleArgument = None,
        abstract: AbstractOption = "",
        file: FileOption = None,
        top_k: TopOption = 10,
        exclude: ExcludeOption = None,
        candidate: CandidateOption = None,
        where: WhereOption = None,
        like: LikeOption = None,
        unlike: UnlikeOption = None,
        facet_weight: WeightOption = None,
        evidence: EvidenceOption = True,
        diversify: DiversifyOption = 0.0,
        min_confidence: ConfidenceOption = 0.1,
        model: PapersModelOption = "",
    ) -> None:
        options = PaperOptions(
            top_k=top_k,
            excluded_ids=exclude or (),
            candidates=candidate,
            where=parse_where(where),
            positive_ids=like or (),
            negative_ids=unlike or (),
            facet_weight=facet_weight,
            evidence=evidence,
            diversify=diversify,
        )
        asked = _papers(title, abstract, file)
        _recommend(context, kind, asked, options=options, model=model, min_confidence=min_confidence)

    return command


app.command("authors", help=_AUTHORS_HELP)(_candidates_command("authors"))
app.command("citations", help=_CITATIONS_HELP)(_candidates_command("citations"))


@app.command()
def papers(
    context: typer.Context,
    author: Annotated[
        list[str] | None, typer.Option("--author", "-a", help="For this author; repeat for more.", show_default=False)
    ] = None,
    citing: Annotated[
        list[str] | None,
        typer.Option("--citing", help="For this citing paper, by id; repeat for more.", show_default=False),
    ] = None,
    collection: Annotated[str, typer.Option("--collection", "-c", help="Papers of this collection.")] = "",
    file: FileOption = None,
    top_k: TopOption = 10,
    where: WhereOption = None,
    exclude: ExcludeOption = None,
    facet_weight: WeightOption = None,
    evidence: EvidenceOption = True,
    min_revision: Annotated[int, typer.Option(help="Wait for this index revision.", min=0)] = 0,
    model: PapersModelOption = "",
) -> None:
    """Rank the papers of a collection, or of a file, for an author or a citing paper.

    A document's payload has "title", "abstract" and "year"; without a title, the first line of its text is the title.
    --where is about the payload; for papers of a file, about their years alone.

    \b
    Examples:
      facets recommend papers --author "Ada Lovelace" --collection submissions
      facets recommend papers --citing P06-1057 --file candidates.jsonl --top-k 5
    """
    if bool(author) == bool(citing):
        raise typer.BadParameter("expected --author or --citing")
    if bool(collection) == (file is not None):
        raise typer.BadParameter("expected --collection or --file")
    kind: CandidateKind = "authors" if author else "citations"
    ids = author or citing or []
    settings = settings_of(context)
    given = None if file is None else _papers_of_file(file)
    with settings.connect() as client:
        found = client.rank_papers(
            kind,
            ids,
            collection=collection,
            papers=given,
            top_k=top_k,
            where=parse_where(where),
            excluded_ids=exclude or (),
            facet_weight=facet_weight,
            evidence=evidence,
            min_revision=min_revision,
            model=model,
        )
    _print_rankings(ids, found, as_json=settings.json)


@app.command()
def find(
    context: typer.Context,
    text: Annotated[list[str], typer.Argument(help="Names or ids, not quite right perhaps.", show_default=False)],
    kind: Annotated[CandidateKind, typer.Option(help="What to find.")] = "authors",
    top_k: TopOption = 10,
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
        found = client.find_candidates(kind, text, top_k=top_k, model=model)
    for asked, candidates in zip(text, found.results, strict=True):
        if settings.json:
            print_json({"text": asked, "candidates": candidates, "num_candidates": found.num_candidates})
            continue
        for candidate in candidates:
            named = f"  {candidate.name}" if candidate.name not in ("", candidate.id) else ""
            typer.echo(clean(candidate.id + named))
        if not candidates:
            typer.echo(clean(f"nothing like {asked} among {found.num_candidates}"), err=True)


app.command("bulk")(bulk)
for _name, (_command, _help) in ADD_HELP.items():
    app.command(_name, help=_help)(_command)


def _print_rankings(ids: list[str], found: PaperRankings, *, as_json: bool) -> None:
    console = stdout()
    for name, ranking in zip(ids, found.rankings, strict=True):
        if as_json:
            print_json({"id": name, "papers": ranking, "num_papers": found.num_papers, "model": found.model})
            continue
        console.print(Text(clean(name), style="bold"))
        for rank, item in enumerate(ranking, start=1):
            print_item(console, rank, item, item.title)
    if not as_json:
        console.print(
            Text(f"{count_of(found.num_papers, 'paper')} compared, {found.timings.total_ms:.0f} ms", style="dim")
        )


def _cites(item: RankedCandidate) -> str:
    """What stands for a title that nobody knows."""
    cited = item.evidence.nearest_papers if item.evidence else ()
    return f"(title not known) cites: {cited[0].title}" if cited else "(title not known)"


def _papers(title: str | None, abstract: str, file: str | None) -> list[Paper]:
    """The paper of the command line or the papers of a file."""
    if (title is None) == (file is None):
        raise typer.BadParameter("expected a title, or --file FILE")
    if file is not None:
        if abstract:
            raise typer.BadParameter("--abstract belongs to a title, got --file")
        return _papers_of_file(file)
    if abstract.startswith("@"):
        abstract = text_of_file(abstract[1:])
    title = no_file(title or "", f"{AS_FILE}, JSONL of papers; {AS_TEXT}")
    return [paper_of({"title": title, "abstract": abstract})]


def _papers_of_file(file: str) -> list[Paper]:
    found = []
    with RecordSource(file) as source:
        for item in read_papers(source, need_id=False):
            if isinstance(item, Rejection):
                raise InputError(f"{file}, line {item.line}: {item.message}")
            found.append(item.item)
    if not found:
        raise InputError(f"{file}: expected at least one paper, got none")
    return found


def _recommend(
    context: typer.Context,
    kind: CandidateKind,
    asked: list[Paper],
    *,
    options: PaperOptions,
    model: str,
    min_confidence: float,
) -> None:
    settings = settings_of(context)
    with settings.connect() as client:
        call = client.recommend_authors if kind == "authors" else client.recommend_citations
        found = call(asked, options, model=model)
    console = stdout()
    for paper, candidates in zip(asked, found.results, strict=True):
        if settings.json:
            asked_about = {"id": paper.id, "title": paper.title}
            print_json({"paper": asked_about, "candidates": candidates, "model": found.model})
            continue
        if len(asked) > 1:
            console.print(Text(shortened(paper.title, TITLE_CHARS), style="bold"))
        sure = [item for item in candidates if item.confidence is None or item.confidence >= min_confidence]
        for rank, item in enumerate(sure, start=1):
            print_item(console, rank, item, item.name or _cites(item))
        if not candidates:
            console.print(Text("nobody is left" if kind == "authors" else "no paper is left", style="dim"))
        elif not sure:
            surest = f"the surest has confidence {candidates[0].confidence or 0.0:.2f}"
            console.print(Text(f"nothing relevant: {surest} (--min-confidence 0 shows it)", style="yellow"))
    if not settings.json:
        console.print(Text(f"{found.model.name}, {found.timings.total_ms:.0f} ms", style="dim"))
