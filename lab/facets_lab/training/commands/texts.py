"""``facets-train sentences``, ``export`` and ``card``."""

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
    WordsOf,
    read_text,
)

__all__ = ["card", "export", "sentences"]


def sentences(config: ConfigFile, out: RunOut, resume: Resume = False) -> None:
    """Train a model of sentences or phrases; Ctrl-C saves a checkpoint.

    Example: facets-train sentences --config lab/configs/facets-en.toml --out runs/facets-en
    """
    from facets_lab.texts.training.config import SentenceTrainingConfig
    from facets_lab.texts.training.export import export_sentence_model
    from facets_lab.texts.training.trainer import SentenceTrainer
    from facets_lab.training.loop import train

    settings = SentenceTrainingConfig.from_toml(config)
    train(lambda: SentenceTrainer(settings), out, resume=resume)
    export_sentence_model(settings, out, out / "model")
    typer.echo(f"{settings.name}: model in {out / 'model'}", err=True)


def export(config: RunConfigFile, run: RunFolder, out: CheckpointOut, words_of: WordsOf = None) -> None:
    """Write a model from the last checkpoint of a run, finished or not.

    Example: facets-train export --config lab/configs/facets-en-k1.toml --run runs/facets-en-k1
    --out models/baselines/facets-en-k1 --words-of models/facets-en
    """
    from facets_lab.texts.training.config import SentenceTrainingConfig
    from facets_lab.texts.training.export import export_sentence_model

    export_sentence_model(SentenceTrainingConfig.from_toml(config), run, out, words_of=words_of)


def card(
    model: Annotated[Path, typer.Option(help="Checkpoint folder; its README.md is written.")],
    run: RunFolder,
    config: RunConfigFile,
    summary: Annotated[Path, typer.Option(help="Markdown file with the opening paragraphs.")],
    baseline: Annotated[list[Path] | None, typer.Option(help="Checkpoint folders to compare with.")] = None,
) -> None:
    """Write a model card: training, validation loss beside the baselines', spread, sample sentences."""
    from facets_lab.texts.training.card import write_card
    from facets_lab.texts.training.config import SentenceTrainingConfig

    settings = SentenceTrainingConfig.from_toml(config)
    write_card(settings, model, run_dir=run, summary=read_text(summary), baselines=baseline or [])
