"""Writes a relation model from a training run: network, facets of the relations, the look-up of frequent patterns."""

import os
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from facets.model.checkpoint import CheckpointConfig
from facets.relations.confidence import Confidence
from facets.relations.model import RelationModel
from facets.relations.network import pattern_network
from facets.relations.tables import PatternTable, RelationTable
from facets.relations.training.config import RelationTrainingConfig
from facets.relations.training.data import RelationMatrix
from facets.relations.training.trainer import RelationTrainer
from facets.training.loop import TrainingLoop, TrainingResult
from facets.words.vectors import unit_rows

__all__ = ["export_relation_model", "relation_model"]

_MAX_PATTERNS_A_RELATION = 50


def export_relation_model(
    config: RelationTrainingConfig,
    run_dir: Path,
    out_dir: Path,
    *,
    words_of: Path | None = None,
    max_patterns: int = 20_000,
) -> None:
    """Writes a checkpoint folder from the last checkpoint of a run.

    Args:
        config: Settings of the run.
        run_dir: Folder of the run.
        out_dir: Folder to write.
        words_of: Refer to this checkpoint's word vectors instead of storing them.
        max_patterns: Patterns of the look-up table at most, the ones with most entity pairs.

    Raises:
        CheckpointError: The run has no checkpoint, or one of other settings.
    """
    trainer = RelationTrainer(config, run_dir)
    loop = TrainingLoop(trainer, run_dir)
    loop.resume()
    words = "." if words_of is None else os.path.relpath(words_of, out_dir)
    relation_model(trainer, loop.result, max_patterns=max_patterns, words=words).save(out_dir)


def relation_model(
    trainer: RelationTrainer, result: TrainingResult, *, max_patterns: int = 20_000, words: str = "."
) -> RelationModel:
    """The model as it stands, thresholds not yet fitted."""
    config, matrix = trainer.config, trainer.matrix
    facets = _relation_facets(trainer)
    shared = _shared_patterns(matrix)
    chosen = _table_rows(matrix, shared, max_patterns)
    place = {int(row): position for position, row in enumerate(chosen)}
    num_patterns = len(matrix.patterns)
    rows = unit_rows(trainer.row_vectors.numpy())
    network = pattern_network(config.model, torch.from_numpy(trainer.words.unit_vectors))
    network.load_state_dict(trainer.network.pattern_tensors())
    return RelationModel(
        network,
        trainer.words,
        config=CheckpointConfig(
            name=config.name,
            task="relations",
            model=config.model.replaced(max_tokens=config.pattern_tokens),
            words=words,
            training={
                "seed": config.seed,
                "presentations": result.step * config.batch_size,
                "seconds": round(result.seconds, 1),
                "patterns": num_patterns,
                "entity_pairs": matrix.num_pairs,
                "cells": len(matrix.pairs),
            },
        ),
        relations=RelationTable(
            names=tuple(matrix.relations),
            num_pairs=tuple(int(size) for size in matrix.row_sizes[num_patterns:]),
            facets=facets,
            confidence=Confidence(thresholds=(0.5,) * len(matrix.relations)),
            patterns=tuple(tuple(place[row] for row in own) for own in shared),
        ),
        table=PatternTable(
            rows={matrix.patterns[row]: position for row, position in place.items()},
            patterns=rows[chosen],
            relations=rows[num_patterns:],
            counts=matrix.row_sizes[chosen],
        ),
    )


def _relation_facets(trainer: RelationTrainer) -> NDArray[np.float32]:
    trainer.network.eval()
    numbers = torch.arange(len(trainer.matrix.relations), device=trainer.device)
    with torch.no_grad():
        facets = trainer.network.relation_facets(numbers).float().cpu().numpy()
    return used_facets(facets, _facet_usage(facets, trainer))


def used_facets(facets_RJD: NDArray[np.float32], usage_RJ: NDArray[np.int64]) -> NDArray[np.float32]:
    """Unit facets in which those that no entity pair is closest to give their place to the used ones.

    An unused facet was never trained towards anything, yet counts as much as others in eq. 3.11. Its place goes
    to the facet with the most entity pairs for each place it has so far.

    Args:
        facets_RJD: ``[R, J, D]``, any lengths.
        usage_RJ: Entity pairs that are closest to each facet; a relation without any keeps its facets.
    """
    units_RJD = unit_rows(facets_RJD.reshape(-1, facets_RJD.shape[-1])).reshape(facets_RJD.shape)
    num_facets = usage_RJ.shape[1]
    places_RJ = (usage_RJ > 0).astype(np.int64)
    rows = np.arange(len(usage_RJ))
    for _ in range(num_facets):
        next_R = (usage_RJ / (places_RJ + 1)).argmax(axis=1)
        places_RJ[rows, next_R] += places_RJ.sum(axis=1) < num_facets
    places_RJ[usage_RJ.sum(axis=1) == 0] = 1
    chosen = np.repeat(np.tile(np.arange(num_facets), len(rows)), places_RJ.ravel()).reshape(-1, num_facets)
    return units_RJD[rows[:, None], chosen]


def _facet_usage(facets_RJD: NDArray[np.float32], trainer: RelationTrainer) -> NDArray[np.int64]:
    """How many entity pairs of each relation are closest to each of its facets, ``[R, J]``."""
    matrix = trainer.matrix
    units_RJD = unit_rows(facets_RJD.reshape(-1, facets_RJD.shape[-1])).reshape(facets_RJD.shape)
    num_facets: int = facets_RJD.shape[1]
    pair_vectors = trainer.pair_vectors.cpu().numpy()
    usage_RJ = np.zeros((len(units_RJD), num_facets), dtype=np.int64)
    for relation in range(len(usage_RJ)):
        row = len(matrix.patterns) + relation
        pairs = matrix.pairs[matrix.offsets[row] : matrix.offsets[row + 1]]
        closest = (pair_vectors[pairs.astype(np.int64)] @ units_RJD[relation].T).argmax(axis=1)
        usage_RJ[relation] = np.bincount(closest, minlength=num_facets)
    return usage_RJ


def _shared_patterns(matrix: RelationMatrix) -> list[list[int]]:
    """Patterns that share pairs with each relation, most shared first, ties by row."""
    num_patterns = len(matrix.patterns)
    row_of = np.repeat(np.arange(len(matrix.offsets) - 1), matrix.row_sizes)
    by_pair = np.argsort(matrix.pairs, kind="stable")
    starts = np.searchsorted(matrix.pairs[by_pair], np.arange(matrix.num_pairs + 1))
    shared = []
    for relation in range(len(matrix.relations)):
        start, end = matrix.offsets[num_patterns + relation], matrix.offsets[num_patterns + relation + 1]
        met = np.concatenate(
            [row_of[by_pair[starts[pair] : starts[pair + 1]]] for pair in matrix.pairs[start:end].tolist()]
        )
        rows, counts = np.unique(met[met < num_patterns], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:_MAX_PATTERNS_A_RELATION]
        shared.append([int(row) for row in rows[order]])
    return shared


def _table_rows(matrix: RelationMatrix, shared: list[list[int]], max_patterns: int) -> NDArray[np.int64]:
    """Patterns of the look-up table: those that share pairs with relations, then those with most pairs."""
    sizes = matrix.row_sizes[: len(matrix.patterns)].copy()
    sizes[[row for own in shared for row in own]] += matrix.num_pairs
    return np.sort(np.argsort(-sizes, kind="stable")[:max_patterns])
