"""``facets-train relations`` and ``export-relations``."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from facets.errors import ConfigError
from facets.training.commands.options import CheckpointOut, Resume, RunConfigFile, RunFolder, WordsOf

__all__ = ["export_relations", "relations"]


def relations(
    out: Annotated[Path, typer.Option(help="Folder of the run, or of the mined matrix.")],
    config: Annotated[Path | None, typer.Option(help="TOML file of the settings, see configs/.")] = None,
    resume: Resume = False,
    mine: Annotated[
        list[str] | None,
        typer.Option(help="Instead of training: corpus files to mine ('# Title', one paragraph a line); repeatable."),
    ] = None,
    gazetteer: Annotated[
        Path | None, typer.Option(help="Entity names to mine, one a line; the titles of the corpus when not given.")
    ] = None,
    triples: Annotated[
        Path | None, typer.Option(help="Matrix file whose kb: rows name more entities, and pairs to keep.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that mine; all cores when not given.")] = None,
) -> None:
    """Train a relation model, or mine the matrix of patterns and entity pairs it is trained on.

    Examples: facets-train relations --mine 'corpus/*.txt.xz' --triples triples.tsv --out runs/relations-mined

    facets-train relations --config configs/facets-relations-en.toml --out runs/facets-relations-en
    """
    if mine:
        _mine(mine, out, gazetteer, triples, workers)
        return
    if config is None:
        raise ConfigError("relations needs --config FILE to train, or --mine FILES to mine a matrix")
    from facets.relations.training.config import RelationTrainingConfig
    from facets.relations.training.export import export_relation_model
    from facets.relations.training.trainer import RelationTrainer
    from facets.training.loop import train

    settings = RelationTrainingConfig.from_toml(config)
    train(lambda: RelationTrainer(settings, out), out, resume=resume)
    export_relation_model(settings, out, out / "model")
    typer.echo(f"{settings.name}: model in {out / 'model'}", err=True)


def export_relations(
    config: RunConfigFile,
    run: RunFolder,
    out: CheckpointOut,
    words_of: WordsOf = None,
    max_patterns: Annotated[int, typer.Option(help="Patterns of the look-up table at most.")] = 20_000,
) -> None:
    """Write a relation model from the last checkpoint of a run; fit it with facets-eval fit-confidence."""
    from facets.relations.training.config import RelationTrainingConfig
    from facets.relations.training.export import export_relation_model

    export_relation_model(
        RelationTrainingConfig.from_toml(config), run, out, words_of=words_of, max_patterns=max_patterns
    )


def _mine(files: list[str], out: Path, gazetteer: Path | None, triples: Path | None, workers: int | None) -> None:
    from facets.relations.training.data import KB_PREFIX, read_cells
    from facets.relations.training.mining import mine_cells
    from facets.text.files import read_lines
    from facets.training.corpus import expand_files

    rows = [] if triples is None else list(read_cells(triples))
    facts = [(head, tail) for head, tail, name, _ in rows if name.startswith(KB_PREFIX)]
    report = mine_cells(
        expand_files(files),
        out,
        names=None if gazetteer is None else list(filter(None, read_lines(gazetteer))),
        extra_names={name for pair in facts for name in pair},
        keep_pairs=facts,
        num_workers=workers,
    )
    typer.echo(json.dumps(asdict(report), indent=2))
