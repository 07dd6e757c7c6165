"""Writes a relation model from a training run: network, facets of the relations, and the look-up of frequent patterns.

The look-up is universal schema by matrix factorization (Chang 2022, table 3.5). Log-odds of the entity types of heads
and tails are added to the scores of patterns. Shape suffixes: B cells, N negatives, A head and tail, R relations, T
entity types in the order of ``EntityType``, P patterns, D dimensions.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from facets.errors import ConfigError
from facets.language.vectors import unit_rows
from facets.model.checkpoint import read_config, read_words
from facets.model.passage_checkpoint import PassageModelConfig
from facets.relations.entities import EntityType
from facets.relations.model import RelationModel, RelationModelConfig
from facets.relations.tables import Confidence, PatternTable, RelationDetails, RelationTable
from facets_lab.evaluation.comparison import Report
from facets_lab.relations.catalogue import RelationCatalogue
from facets_lab.relations.data import FactorizationConfig, RelationMatrix, RelationTrainingConfig
from facets_lab.relations.entity_pairs import bare_name
from facets_lab.relations.facts import read_types, type_of_name
from facets_lab.relations.mining import mine_cells
from facets_lab.relations.training import RelationTrainer
from facets_lab.training.loop import Resume, TrainingResult, train

logger = logging.getLogger(__name__)

_TYPES = list(EntityType)
_UNKNOWN = _TYPES.index(EntityType.UNKNOWN)
_PRIOR_PAIRS = 20.0  # weight of the catalogue, in pairs
_MAX_PAIRS = 200.0  # more pairs of a relation add no certainty
_UNFITTING_SHARE = 0.04  # for all types together that a relation does not accept: texts and recognizers err
_LIMIT = 4.0  # so that types alone never exclude a pattern
_MAX_PATTERNS = 20_000  # in the look-up, besides the phrases
_MAX_PATTERNS_A_RELATION = 50
_PAIRS_A_RELATION = 5
_FIRST_THRESHOLD = 0.5  # until it is fitted


def factorize(matrix: RelationMatrix, config: FactorizationConfig, *, seed: int) -> tuple[Tensor, Tensor]:
    """Embeddings of rows ``[P + R, D]`` and of entity pairs ``[N, D]`` that minimise ``-log sigmoid(r.e+ - r.e-)``."""
    dim = config.dim
    generator = torch.Generator().manual_seed(seed)
    sizes = len(matrix.offsets) - 1, len(matrix.names)
    rows_D, pairs_D = (nn.Parameter(torch.randn(size, dim, generator=generator) * dim**-0.5) for size in sizes)
    optimizer = torch.optim.Adagrad([rows_D, pairs_D], lr=config.learning_rate * dim**-0.5)
    row_of = torch.from_numpy(np.repeat(np.arange(sizes[0]), matrix.row_sizes))
    pair_of = torch.from_numpy(matrix.pairs.astype(np.int64))
    num_cells = len(pair_of)
    for epoch in tqdm(range(config.num_epochs), disable=None, desc="factorization"):
        total = 0.0
        for batch in torch.split(torch.randperm(num_cells, generator=generator), config.batch_size):
            # Drawn from the cells, so that a pair is a negative as often as it is a positive.
            others_BN = pair_of[torch.randint(num_cells, (len(batch), config.num_negatives), generator=generator)]
            rows_BD, own_BD = rows_D[row_of[batch]], pairs_D[pair_of[batch]]
            margins_BN = torch.einsum("bd,bnd->bn", rows_BD, own_BD.unsqueeze(1) - pairs_D[others_BN])
            loss = -functional.logsigmoid(margins_BN).mean(dim=1).sum()
            total += float(loss.detach())
            loss = loss + config.l2_weight / 2 * (rows_BD.square().sum() + own_BD.square().sum())
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        logger.info("factorization epoch %d: BPR loss %.4f", epoch + 1, total / num_cells)
    return rows_D.detach(), pairs_D.detach()


def type_log_odds(
    triples: Iterable[tuple[str, str, str]], catalogue: RelationCatalogue, types: Mapping[str, EntityType]
) -> NDArray[np.float32]:
    """Log-odds of the types of heads and tails of each relation against the average relation, ``[2, R, T]``.

    Natural logarithms in ``[-4, 4]``; 0 for ``UNKNOWN``. Relations with few triples (head, tail, relation) follow the
    catalogue.
    """
    row_of = {entry.name: row for row, entry in enumerate(catalogue.relation)}
    counts_ART = np.zeros((2, len(row_of), len(_TYPES)))
    for head, tail, relation in dict.fromkeys(triples):
        if relation in row_of:
            for argument, name in enumerate((head, tail)):
                counts_ART[argument, row_of[relation], _TYPES.index(type_of_name(bare_name(name), types))] += 1
    counts_ART[:, :, _UNKNOWN] = 0
    counts_ART *= np.minimum(1.0, _MAX_PAIRS / np.maximum(counts_ART.sum(axis=2, keepdims=True), 1.0))
    prior_ART = np.full_like(counts_ART, _UNFITTING_SHARE / (len(_TYPES) - 1))
    prior_ART[:, :, _UNKNOWN] = 0
    for row, entry in enumerate(catalogue.relation):
        for argument, kinds in enumerate((entry.head, entry.tail)):
            for kind in kinds:
                prior_ART[argument, row, _TYPES.index(kind)] += (1 - _UNFITTING_SHARE) / len(kinds)
    shares_ART = counts_ART + _PRIOR_PAIRS * prior_ART
    shares_ART /= shares_ART.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds_ART = np.log(shares_ART) - np.log(shares_ART.mean(axis=1, keepdims=True))
    odds_ART[:, :, _UNKNOWN] = 0
    return np.clip(np.nan_to_num(odds_ART, nan=0.0), -_LIMIT, _LIMIT).astype(np.float32)


def relations(
    out: Annotated[Path, typer.Option(help="Folder of the run, or of the mined matrix.")],
    config: Annotated[Path | None, typer.Option(help="TOML file with the settings; see lab/configs/.")] = None,
    resume: Resume = False,
    mine: Annotated[
        list[str] | None, typer.Option(help="Corpus files to mine, instead of training; repeatable.")
    ] = None,
    triples: Annotated[
        Path | None, typer.Option(help="Matrix file; names in its kb: rows are mined, their pairs kept.")
    ] = None,
    recognizer: Annotated[str, typer.Option(help="Installed spaCy pipeline that finds more names.")] = "",
    phrases: Annotated[
        Path | None, typer.Option(help="File of relation<TAB>pattern; cells of these patterns are kept.")
    ] = None,
) -> Report | None:
    """Train a relation model, or mine the matrix of patterns and entity pairs it is trained on.

    To continue an interrupted mining, run the same command again.

    Examples: facets-train relations --mine 'corpus/*.txt.xz' --triples triples.tsv --out runs/relations-mined

    facets-train relations --config lab/configs/facets-relations-en.toml --out runs/facets-relations-en
    """
    if mine:
        return mine_cells(mine, out, triples=triples, phrases=phrases, recognizer=recognizer)
    if config is None:
        raise ConfigError("relations needs --config FILE to train, or --mine FILES to mine a matrix")
    settings, folder = RelationTrainingConfig.from_toml(config), out / "model"
    relation_model(*train(lambda: RelationTrainer(settings), out, resume=resume), folder).save(folder)
    typer.echo(f"{settings.name}: model in {folder}", err=True)
    return None


def relation_model(trainer: RelationTrainer, result: TrainingResult, folder: Path) -> RelationModel:
    """The current model, with thresholds not yet fitted, for saving in ``folder``."""
    config, matrix = trainer.config, trainer.matrix
    source = Path(config.encoder_of)
    phrases = [" ".join(pattern) for pattern in trainer.labelled.patterns]
    row_of, schema_rows_RD = _pattern_rows(trainer, phrases)
    num_patterns = len(matrix.patterns)
    facets = trainer.network.relations.detach().float().cpu().numpy()
    sizes = dict(zip(matrix.patterns, matrix.row_sizes.tolist(), strict=False))
    return RelationModel(
        trainer.network.patterns,
        read_words(source, read_config(source, PassageModelConfig).encoder.width),
        pieces=trainer.pieces,
        config=RelationModelConfig(
            name=config.name,
            encoder_of=os.path.relpath(source, folder),
            network=config.model,
            training={
                "seed": config.seed,
                "steps": result.step,
                "seconds": round(result.seconds, 1),
                "patterns": num_patterns,
                "phrases": len(phrases),
                "entity_pairs": len(matrix.names),
                "cells": int(matrix.offsets[num_patterns]),
            },
        ),
        relations=RelationTable(
            names=matrix.relations,
            num_pairs=tuple(matrix.row_sizes[num_patterns:].tolist()),
            facets=unit_rows(facets.reshape(-1, facets.shape[-1])).reshape(facets.shape),
            confidence=Confidence(thresholds=(_FIRST_THRESHOLD,) * len(matrix.relations)),
            patterns=tuple(
                tuple(row_of[phrases[row]] for row in np.flatnonzero(labels)[:_MAX_PATTERNS_A_RELATION].tolist())
                for labels in trainer.labelled.labels.T
            ),
            details=_details(trainer),
            type_log_odds=type_log_odds(trainer.facts, trainer.catalogue, read_types(map(Path, config.types))),
        ),
        table=PatternTable(
            rows=row_of,
            patterns=schema_rows_RD[: len(row_of)],
            relations=schema_rows_RD[len(row_of) :],
            counts=np.array([sizes.get(pattern, 0) for pattern in row_of], dtype=np.int64),
        ),
    )


def _pattern_rows(trainer: RelationTrainer, phrases: list[str]) -> tuple[dict[str, int], NDArray[np.float32]]:
    """Rows of the look-up by pattern, and the unit vectors of these rows and then of the relations.

    A phrase that occurs in no text gets the vector of its relations.
    """
    matrix = trainer.matrix
    num_patterns = len(matrix.patterns)
    factorized, _ = factorize(matrix, trainer.config.factorization, seed=trainer.config.seed)
    vectors = unit_rows(factorized.numpy())
    mined_row = {pattern: row for row, pattern in enumerate(matrix.patterns)}
    frequent = np.sort(np.argsort(-matrix.row_sizes[:num_patterns], kind="stable")[:_MAX_PATTERNS])
    chosen = dict.fromkeys([*phrases, *(matrix.patterns[row] for row in frequent.tolist())])
    relations_RD = vectors[num_patterns:]
    phrases_PD = unit_rows(trainer.labelled.labels.astype(np.float32) @ relations_RD)
    rows = [vectors[mined_row[p]] if p in mined_row else phrases_PD[number] for number, p in enumerate(chosen)]
    return {pattern: row for row, pattern in enumerate(chosen)}, np.concatenate([np.stack(rows), relations_RD])


def _details(trainer: RelationTrainer) -> tuple[RelationDetails, ...]:
    """Entries of the catalogue, with the pairs that occur with the most patterns."""
    matrix = trainer.matrix
    details = []
    for number, entry in enumerate(trainer.catalogue.relation):
        pairs = matrix.pairs_of(len(matrix.patterns) + number)
        best = pairs[np.argsort(-matrix.pair_sizes[pairs], kind="stable")][:_PAIRS_A_RELATION]
        values = entry.to_dict() | {"pairs": [matrix.names[pair].split("\t") for pair in best.tolist()]}
        details.append(RelationDetails.from_dict(values))
    return tuple(details)
