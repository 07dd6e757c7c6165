"""Writes a relation model from a training run: network, facets of the relations, the look-up of frequent patterns.

Shape suffixes: R relations, J facets of a relation, P patterns, D dimensions.
"""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.language.vectors import unit_rows
from facets.model.checkpoint import read_config
from facets.model.passage_checkpoint import PassageModelConfig, read_passage_words
from facets.relations.checkpoint import RelationModelConfig
from facets.relations.confidence import Confidence
from facets.relations.details import RelationDetails
from facets.relations.model import RelationModel
from facets.relations.tables import PatternTable, RelationTable
from facets_lab.relations.training.config import RelationTrainingConfig
from facets_lab.relations.training.factorization import factorize
from facets_lab.relations.training.title_types import read_types
from facets_lab.relations.training.trainer import RelationTrainer
from facets_lab.relations.training.type_odds import type_log_odds
from facets_lab.training.loop import TrainingLoop, TrainingResult

__all__ = ["export_relation_model", "relation_model"]

_MAX_PATTERNS_A_RELATION = 50
_PAIRS_A_RELATION = 5
_FIRST_THRESHOLD = 0.5


def export_relation_model(
    config: RelationTrainingConfig, run_dir: Path, out_dir: Path, *, max_patterns: int = 20_000
) -> None:
    """Writes a checkpoint folder from the last checkpoint of a run.

    Args:
        config: Settings of the run.
        run_dir: Folder of the run.
        out_dir: Folder to write.
        max_patterns: Patterns of the look-up table at most, beside the phrases: the ones with most entity pairs.

    Raises:
        CheckpointError: The run has no checkpoint, or one of other settings.
    """
    trainer = RelationTrainer(config, run_dir)
    loop = TrainingLoop(trainer, run_dir)
    loop.resume()
    encoder_of = os.path.relpath(config.encoder_of, out_dir)
    relation_model(trainer, loop.result, encoder_of=encoder_of, max_patterns=max_patterns).save(out_dir)


def relation_model(
    trainer: RelationTrainer, result: TrainingResult, *, encoder_of: str, max_patterns: int = 20_000
) -> RelationModel:
    """The model as it stands, thresholds not yet fitted.

    Args:
        trainer: The run.
        result: What the loop says of it.
        encoder_of: The model of passages, from where the checkpoint will be.
        max_patterns: See ``export_relation_model``.
    """
    config, matrix = trainer.config, trainer.matrix
    source = Path(config.encoder_of)
    phrases = [" ".join(pattern) for pattern in trainer.labelled.patterns]
    table, schema_rows_RD = _pattern_table(trainer, phrases, max_patterns)
    num_patterns = len(matrix.patterns)
    facets = trainer.network.relations.detach().float().cpu().numpy()
    return RelationModel(
        trainer.network.patterns,
        read_passage_words(source, read_config(source, PassageModelConfig)),
        pieces=trainer.pieces,
        config=RelationModelConfig(
            name=config.name,
            encoder_of=encoder_of,
            network=config.model,
            training={
                "seed": config.seed,
                "steps": result.step,
                "seconds": round(result.seconds, 1),
                "patterns": num_patterns,
                "phrases": len(phrases),
                "entity_pairs": matrix.num_pairs,
                "cells": int(matrix.offsets[num_patterns]),
            },
        ),
        relations=RelationTable(
            names=matrix.relations,
            num_pairs=tuple(matrix.row_sizes[num_patterns:].tolist()),
            facets=unit_rows(facets.reshape(-1, facets.shape[-1])).reshape(facets.shape),
            confidence=Confidence(thresholds=(_FIRST_THRESHOLD,) * len(matrix.relations)),
            patterns=tuple(
                tuple(table[phrases[row]] for row in np.flatnonzero(said)[:_MAX_PATTERNS_A_RELATION].tolist())
                for said in trainer.labelled.labels.T
            ),
            details=_details(trainer),
            type_log_odds=_type_log_odds(trainer),
        ),
        table=PatternTable(
            rows=table,
            patterns=schema_rows_RD[: len(table)],
            relations=schema_rows_RD[len(table) :],
            counts=_counts(trainer, list(table)),
        ),
    )


def _pattern_table(
    trainer: RelationTrainer, phrases: list[str], max_patterns: int
) -> tuple[dict[str, int], NDArray[np.float32]]:
    """Rows of the look-up by pattern, and unit vectors of these and of the relations, one after the other.

    A phrase that no text has is looked up as the relations it says.
    """
    matrix = trainer.matrix
    num_patterns = len(matrix.patterns)
    factorized, _ = factorize(matrix, trainer.config.factorization, seed=trainer.config.seed)
    vectors = unit_rows(factorized.numpy())
    places = {pattern: row for row, pattern in enumerate(matrix.patterns)}
    frequent = np.sort(np.argsort(-matrix.row_sizes[:num_patterns], kind="stable")[:max_patterns])
    chosen = dict.fromkeys([*phrases, *(matrix.patterns[row] for row in frequent.tolist())])
    relations_RD = vectors[num_patterns:]
    said_PD = unit_rows(trainer.labelled.labels.astype(np.float32) @ relations_RD)
    rows = [vectors[places[pattern]] if pattern in places else said_PD[number] for number, pattern in enumerate(chosen)]
    return {pattern: row for row, pattern in enumerate(chosen)}, np.concatenate([np.stack(rows), relations_RD])


def _counts(trainer: RelationTrainer, patterns: list[str]) -> NDArray[np.int64]:
    """Entity pairs of each pattern in the texts."""
    sizes = dict(zip(trainer.matrix.patterns, trainer.matrix.row_sizes.tolist(), strict=False))
    return np.array([sizes.get(pattern, 0) for pattern in patterns], dtype=np.int64)


def _type_log_odds(trainer: RelationTrainer) -> NDArray[np.float32]:
    """What the types of heads and of tails say of each relation, ``[2, R, T]``."""
    types = {name: kind for path in trainer.config.types for name, kind in read_types(Path(path)).items()}
    return np.stack(type_log_odds(trainer.facts, trainer.catalogue, types, relations=trainer.matrix.relations))


def _details(trainer: RelationTrainer) -> tuple[RelationDetails, ...]:
    """What the catalogue says, and the pairs that most patterns of the texts have."""
    matrix = trainer.matrix
    details = []
    for number, entry in enumerate(trainer.catalogue.relation):
        pairs = matrix.pairs_of(len(matrix.patterns) + number)
        known = pairs[np.argsort(-matrix.pair_sizes[pairs], kind="stable")][:_PAIRS_A_RELATION]
        values = entry.to_dict() | {"pairs": [matrix.names[pair].split("\t") for pair in known.tolist()]}
        details.append(RelationDetails.from_dict(values))
    return tuple(details)
