"""``facets-train prepare-passages``, ``passages`` and ``export-passages``."""

from pathlib import Path
from typing import Annotated

import typer

from facets_lab.training.commands.options import (
    CheckpointOut,
    ConfigFile,
    Resume,
    RunConfigFile,
    RunFolder,
    RunOut,
    read_text,
)

__all__ = ["export_passages", "passages", "passages_card", "prepare_passages"]


def prepare_passages(
    config: ConfigFile,
    out: Annotated[Path, typer.Option(help="Folder for the data; parts that it holds already are kept.")],
) -> None:
    """Read raw texts, and encode passages, sentences and questions by the teacher.

    Example: facets-train prepare-passages --config lab/configs/passages-data.toml --out runs/passages-data
    """
    from facets_lab.documents.training.config import PassageDataConfig
    from facets_lab.documents.training.preparing import prepare_passages

    data = prepare_passages(PassageDataConfig.from_toml(config), out)
    counts = ", ".join(f"{len(texts):,} {kind}s" for kind, texts in data.texts.items())
    typer.echo(f"{out}: {counts} in {data.num_groups:,} groups", err=True)


def passages(config: ConfigFile, out: RunOut, resume: Resume = False) -> None:
    """Train a model of passages, or distil its encoder; Ctrl-C saves a checkpoint.

    Example: facets-train passages --config lab/configs/facets-passages-en.toml --out runs/facets-passages-en
    """
    from facets_lab.documents.training.config import PassageTrainingConfig
    from facets_lab.documents.training.export import export_passage_model
    from facets_lab.documents.training.trainer import PassageTrainer
    from facets_lab.training.loop import train

    settings = PassageTrainingConfig.from_toml(config)
    train(lambda: PassageTrainer(settings), out, resume=resume)
    if settings.facets:
        export_passage_model(settings, out, out / "model")
        typer.echo(f"{settings.name}: model in {out / 'model'}", err=True)


def export_passages(config: RunConfigFile, run: RunFolder, out: CheckpointOut) -> None:
    """Write a model of passages from the last checkpoint of a run, finished or not."""
    from facets_lab.documents.training.config import PassageTrainingConfig
    from facets_lab.documents.training.export import export_passage_model

    export_passage_model(PassageTrainingConfig.from_toml(config), run, out)


def passages_card(
    model: Annotated[Path, typer.Option(help="Checkpoint folder of a model of passages; its README.md is written.")],
    run: RunFolder,
    summary: Annotated[Path, typer.Option(help="Markdown file with the opening paragraphs.")],
    report: Annotated[Path | None, typer.Option(help="Output of facets-eval retrieval.")] = None,
) -> None:
    """Write the model card of a model of passages."""
    from facets_lab.documents.training.card import write_passage_card

    write_passage_card(model, run_dir=run, summary=read_text(summary), report=report)
