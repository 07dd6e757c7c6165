"""``facets-train papers`` and ``papers-card``."""

from pathlib import Path
from typing import Annotated

import typer

from facets.training.commands.options import ConfigFile, Resume, RunFolder, RunOut, read_text

__all__ = ["papers", "papers_card"]


def papers(
    config: ConfigFile,
    out: RunOut,
    resume: Resume = False,
    words_of: Annotated[
        Path | None, typer.Option(help="Share words and papers with this checkpoint of the same papers.")
    ] = None,
) -> None:
    """Train a model of papers with its author and citing-paper tables; Ctrl-C saves a checkpoint.

    Example: facets-train papers --config configs/facets-papers-en.toml --out runs/facets-papers-en
    """
    from facets.papers.training.config import PaperTrainingConfig
    from facets.papers.training.export import train_papers

    model = train_papers(PaperTrainingConfig.from_toml(config), out, resume=resume, words_of=words_of)
    typer.echo(f"{model.name}: model in {out / 'model'}", err=True)


def papers_card(
    model: Annotated[Path, typer.Option(help="Checkpoint folder of a model of papers; its README.md is written.")],
    run: RunFolder,
    summary: Annotated[Path, typer.Option(help="Markdown file with the opening paragraphs.")],
    report: Annotated[Path | None, typer.Option(help="Output of facets-eval recommendation.")] = None,
) -> None:
    """Write the model card of a model of papers."""
    from facets.papers.training.card import write_paper_card

    write_paper_card(model, run_dir=run, summary=read_text(summary), report=report)
