"""``facets-train relations``, ``relation-facts`` and ``export-relations``."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from facets.errors import ConfigError
from facets_lab.training.commands.options import CheckpointOut, Resume, RunConfigFile, RunFolder

__all__ = ["export_relations", "relation_facts", "relations"]

_CONFIGS = Path("lab/configs")


def relations(
    out: Annotated[Path, typer.Option(help="Folder of the run, or of the mined matrix.")],
    config: Annotated[Path | None, typer.Option(help="TOML file of the settings, see lab/configs/.")] = None,
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
    recognizer: Annotated[
        str, typer.Option(help="Mine more names: those with 'capitals', or of an installed spaCy pipeline.")
    ] = "",
    phrases: Annotated[
        Path | None, typer.Option(help="File of relation<TAB>pattern; mined cells of these patterns are all kept.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that mine; all cores when not given.")] = None,
) -> None:
    """Train a relation model, or mine the matrix of patterns and entity pairs it is trained on.

    A mining that was stopped goes on with the same command.

    Examples: facets-train relations --mine 'corpus/*.txt.xz' --triples triples.tsv --out runs/relations-mined

    facets-train relations --config lab/configs/facets-relations-en.toml --out runs/facets-relations-en
    """
    if mine:
        _mine(mine, out, (gazetteer, triples, phrases), recognizer=recognizer, workers=workers)
        return
    if config is None:
        raise ConfigError("relations needs --config FILE to train, or --mine FILES to mine a matrix")
    from facets_lab.relations.training.config import RelationTrainingConfig
    from facets_lab.relations.training.export import export_relation_model
    from facets_lab.relations.training.trainer import RelationTrainer
    from facets_lab.training.loop import train

    settings = RelationTrainingConfig.from_toml(config)
    train(lambda: RelationTrainer(settings, out), out, resume=resume)
    export_relation_model(settings, out, out / "model")
    typer.echo(f"{settings.name}: model in {out / 'model'}", err=True)


def export_relations(
    config: RunConfigFile,
    run: RunFolder,
    out: CheckpointOut,
    max_patterns: Annotated[int, typer.Option(help="Patterns of the look-up table at most.")] = 20_000,
) -> None:
    """Write a relation model from the last checkpoint of a run; fit it with fit-confidence, fit-entailment."""
    from facets_lab.relations.training.config import RelationTrainingConfig
    from facets_lab.relations.training.export import export_relation_model

    export_relation_model(RelationTrainingConfig.from_toml(config), run, out, max_patterns=max_patterns)


def relation_facts(
    out: Annotated[Path, typer.Option(help="File of the facts: head, tail, relation, support.")],
    cells: Annotated[list[Path], typer.Option(help="Mined matrix with types.tsv beside it; repeatable.")],
    phrases: Annotated[Path, typer.Option(help="File of relation<TAB>pattern.")] = Path(
        "lab/configs/relation-phrases.tsv"
    ),
    catalogue: Annotated[Path, typer.Option(help="Catalogue of the relations.")] = Path(
        "lab/configs/relations-en.toml"
    ),
) -> None:
    """Find facts in mined matrices: pairs that occur with a phrase of a relation and are of fitting kinds.

    Mine with --phrases, so that cells of one pair are there too.

    Example: facets-train relation-facts --cells runs/relations-mined/cells.tsv --out runs/relation-facts.tsv
    """
    from facets_lab.relations.training.bootstrapping import bootstrap_facts, write_facts
    from facets_lab.relations.training.catalogue import RelationCatalogue
    from facets_lab.relations.training.data import read_cells
    from facets_lab.relations.training.mining import TYPES_FILE
    from facets_lab.relations.training.title_types import read_types
    from facets_lab.relations.training.verbalization import phrase_patterns, read_phrases

    types = {name: kind for path in cells for name, kind in read_types(path.parent / TYPES_FILE).items()}
    facts = bootstrap_facts(
        (cell for path in cells for cell in read_cells(path)),
        phrase_patterns(read_phrases(phrases)),
        RelationCatalogue.read(catalogue),
        types,
    )
    write_facts(out, facts)
    counts = Counter(fact.relation for fact in facts)
    typer.echo(json.dumps({"num_facts": len(facts), "relations": dict(counts.most_common())}, indent=2))


def _mine(
    files: list[str],
    out: Path,
    inputs: tuple[Path | None, Path | None, Path | None],
    *,
    recognizer: str,
    workers: int | None,
) -> None:
    from facets.language.files import read_lines
    from facets_lab.relations.training.data import KB_PREFIX, read_cells
    from facets_lab.relations.training.mining import mine_cells
    from facets_lab.relations.training.verbalization import phrase_patterns, read_phrases
    from facets_lab.training.corpus import expand_files

    gazetteer, triples, phrases = inputs
    rows = [] if triples is None else list(read_cells(triples))
    facts = [(head, tail) for head, tail, name, _ in rows if name.startswith(KB_PREFIX)]
    said = {} if phrases is None else phrase_patterns(read_phrases(phrases))
    report = mine_cells(
        expand_files(files),
        out,
        names=None if gazetteer is None else list(filter(None, read_lines(gazetteer))),
        extra_names={name for pair in facts for name in pair},
        keep_pairs=facts,
        keep_patterns=said,
        recognizer=recognizer,
        num_workers=workers,
    )
    typer.echo(json.dumps(asdict(report), indent=2))
