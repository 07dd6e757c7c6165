"""``facets-train papers``, ``paper-sentences`` and ``papers-card``."""

from pathlib import Path
from typing import Annotated

import typer

from facets_lab.training.commands.options import ConfigFile, Resume, RunFolder, RunOut, read_text

__all__ = ["paper_sentences", "papers", "papers_card"]


def papers(
    config: ConfigFile,
    out: RunOut,
    resume: Resume = False,
    words_of: Annotated[
        Path | None, typer.Option(help="Share words and papers with this checkpoint of the same papers.")
    ] = None,
) -> None:
    """Train a model of papers with its author and citing-paper tables; Ctrl-C saves a checkpoint.

    Example: facets-train papers --config lab/configs/facets-papers-en.toml --out runs/facets-papers-en
    """
    from facets_lab.papers.training.config import PaperTrainingConfig
    from facets_lab.papers.training.export import train_papers

    model = train_papers(PaperTrainingConfig.from_toml(config), out, resume=resume, words_of=words_of)
    typer.echo(f"{model.name}: model in {out / 'model'}", err=True)


def paper_sentences(
    model: Annotated[Path, typer.Option(help="Checkpoint folder of a model of papers; sentence vectors are written.")],
    data: Annotated[Path, typer.Option(help="The papers it was trained on, with their texts.")],
    run: Annotated[Path, typer.Option(help="Folder of the encoder's vectors; parts that it holds already are kept.")],
    encoder: Annotated[str, typer.Option(help="Model of passages, by name or folder.")] = "facets-passages-small-en",
    components: Annotated[int, typer.Option(help="Numbers of a vector.")] = 128,
    abstract_chars: Annotated[int, typer.Option(help="Characters of an abstract that are read for it.")] = 300,
    share: Annotated[
        float, typer.Option(help="Weight of sentences beside words, until facets-eval recommendation --tune.")
    ] = 0.5,
) -> None:
    """Give a model of papers sentence vectors beside its word averages; may be interrupted and run again.

    Example: facets-train paper-sentences --model models/facets-papers-en --data train.jsonl.xz --run runs/sentences
    """
    from facets_lab.papers.training.sentences import add_sentences

    add_sentences(
        model, data, run, encoder=encoder, num_components=components, abstract_chars=abstract_chars, share=share
    )


def papers_card(
    model: Annotated[Path, typer.Option(help="Checkpoint folder of a model of papers; its README.md is written.")],
    run: RunFolder,
    summary: Annotated[Path, typer.Option(help="Markdown file with the opening paragraphs.")],
    report: Annotated[Path | None, typer.Option(help="Output of facets-eval recommendation.")] = None,
) -> None:
    """Write the model card of a model of papers."""
    from facets_lab.papers.training.card import write_paper_card

    write_paper_card(model, run_dir=run, summary=read_text(summary), report=report)
