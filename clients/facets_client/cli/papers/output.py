"""What ``facets recommend`` prints of a candidate or a paper."""

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from facets_client.cli.output import clean, shortened, words
from facets_client.papers.results import CandidateEvidence, RankedCandidate, RankedPaper

TITLE_CHARS = 90


def print_item(console: Console, rank: int, item: RankedCandidate | RankedPaper, name: str) -> None:
    """Rank, score, id and name; below, why."""
    head = Text(f"{rank:>3}  ")
    head.append(f"{item.score:.4f}", style="bold")
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
