"""Trains a relation model (Chang 2022, algorithm 2, on a sentence encoder, with labelled patterns), and writes it.

A model folder has the network, the facets of the relations, and the look-up of frequent patterns: universal schema by
matrix factorization (Chang 2022, table 3.5). Log-odds of the entity types of heads and tails are added to the scores of
patterns. Shape suffixes: B patterns, or cells of the look-up, R relations, N entity pairs or negatives, K and J facets,
D dimensions, W width of the encoder, P patterns of a table, V pieces, A head and tail, T entity types in the order of
``EntityType``.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from facets.arrays import Floats, Ints
from facets.errors import ConfigError
from facets.language.vectors import unit_rows
from facets.model.checkpoint import read_config, read_table, read_weights, read_words
from facets.model.passage_checkpoint import PIECES, PassageModelConfig, read_word_pieces
from facets.model.passage_encoding import length_batches
from facets.relations.entities import EntityType
from facets.relations.model import PatternNetwork, PatternPieces, RelationModel, RelationModelConfig
from facets.relations.patterns import mirrored
from facets.relations.tables import Confidence, PatternTable, RelationDetails, RelationTable
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.files import read_texts
from facets_lab.losses import direction_loss, no_relation_loss, ranking_loss, universal_schema_loss
from facets_lab.relations.catalogue import RelationCatalogue, label_patterns, read_phrases
from facets_lab.relations.data import (
    FactorizationConfig,
    PairSample,
    RelationBatch,
    RelationMatrix,
    RelationStream,
    RelationTrainingConfig,
    Triple,
    load_matrix,
    read_triples,
)
from facets_lab.relations.entity_pairs import bare_name
from facets_lab.relations.facts import read_types, type_of_name
from facets_lab.relations.mining import mine_cells
from facets_lab.training.loop import LOSS, Resume, Trainer, TrainingResult, train

logger = logging.getLogger(__name__)

_FIRST_WORDS = ("x", "y", "z")  # initial embeddings of the placeholders
_FIRST_THRESHOLD = 0.75
_SPREAD = 0.002  # initial distance of the facets of a relation
_BATCH_TOKENS = 4096
_TYPES = list(EntityType)
_UNKNOWN = _TYPES.index(EntityType.UNKNOWN)
_PRIOR_PAIRS = 20.0  # weight of the catalogue, in pairs
_MAX_PAIRS = 200.0  # more pairs of a relation add no certainty
_UNFITTING_SHARE = 0.04  # for all types together that a relation does not accept: texts and recognizers err
_LIMIT = 4.0  # so that types alone never exclude a pattern
_MAX_PATTERNS = 20_000  # in the look-up, besides the phrases
_MAX_PATTERNS_A_RELATION = 50
_PAIRS_A_RELATION = 5
_UNFITTED_THRESHOLD = 0.5  # until it is fitted


class RelationNetwork(nn.Module):
    """The pattern network, J facets of each relation, and the score below which a pattern expresses no relation."""

    def __init__(self, patterns: PatternNetwork, num_relations: int, num_facets: int) -> None:
        super().__init__()
        self.patterns = patterns
        self.relations = nn.Parameter(torch.zeros(num_relations, num_facets, patterns.config.dim))
        self.threshold = nn.Parameter(torch.tensor(_FIRST_THRESHOLD))

    def scores(self, facets_BKD: Tensor) -> Tensor:
        """Eq. 3.10 of patterns and all relations, ``[B, R]``, differentiable."""
        relations_RJD = functional.normalize(self.relations, dim=2)
        cosines_BKRJ = torch.einsum("bkd,rjd->bkrj", facets_BKD, relations_RJD)
        return cosines_BKRJ.amax(dim=1).mean(dim=2)


class RelationTrainer(Trainer[RelationTrainingConfig, RelationBatch]):
    """A relation network with its data."""

    network: RelationNetwork

    def __init__(self, config: RelationTrainingConfig) -> None:
        super().__init__(config)
        self.catalogue = RelationCatalogue.from_toml(Path(config.catalogue))
        others = [line for line in read_texts(Path(config.none_patterns)) if line and not line.startswith("#")]
        self.labelled = label_patterns(self.catalogue, read_phrases(Path(config.phrases)), others)
        self.facts = _read_facts(config, self.catalogue)
        self.matrix = load_matrix(
            [Path(path) for path in config.cells],
            self.facts,
            [entry.name for entry in self.catalogue.relation],
            max_patterns_per_pair=config.max_patterns_per_pair,
            max_pairs_per_pattern=config.max_pairs_per_pattern,
        )
        self._stream = RelationStream(self.matrix, self.labelled, config)
        torch.manual_seed(config.seed)
        patterns = self._pattern_network(Path(config.encoder_of))
        self.network = RelationNetwork(patterns, len(self.catalogue.relation), config.num_relation_facets)
        self.network.to(self.device)
        self._rows = self.pieces.rows([pattern.split() for pattern in self.matrix.patterns])
        labels = self.labelled.labels.astype(np.float32)
        self._labels_PR = torch.from_numpy(labels).to(self.device)
        self._directed_R = self.tensor(np.array([not entry.symmetric for entry in self.catalogue.relation]))
        self._first_vectors, pairs_ND = self._start()
        self.pair_vectors = pairs_ND.requires_grad_()
        firsts_RD = functional.normalize(self.network.relations.detach().mean(dim=1), dim=1)
        self._similar_RR = (firsts_RD @ firsts_RD.mT > config.similar_relations).fill_diagonal_(False)
        self._num_used_pairs = 0  # in the current step

    def _pattern_network(self, folder: Path) -> PatternNetwork:
        passages = read_config(folder, PassageModelConfig)
        if passages.encoder != self.config.model.encoder:
            raise ConfigError(
                f"model.encoder must match the encoder of {folder}: {passages.encoder.to_dict()}, "
                f"got {self.config.model.encoder.to_dict()}"
            )
        pieces = read_word_pieces(folder, passages.encoder)
        self.pieces = PatternPieces(pieces, self.config.model.max_tokens)
        table = read_table(folder, PIECES)
        network = PatternNetwork(self.config.model, table)
        weights = {name: tensor for name, tensor in read_weights(folder).items() if not name.startswith("pieces.")}
        network.encoder.load_state_dict(weights, strict=False)
        with torch.no_grad():
            firsts = [int(pieces.ids([word])[0][0]) for word in _FIRST_WORDS]
            network.embedding.placeholders.copy_(table(torch.tensor(firsts)))
        return network

    @torch.no_grad()
    def _start(self) -> tuple[Tensor, Tensor]:
        """Initial sentence vectors of the mined patterns, and entity pairs as means of their patterns.

        Sets the facets of each relation to the mean of its phrases.
        """
        phrases_PD = self._encode(self.pieces.rows(self.labelled.patterns))[1]
        means_RD = functional.normalize(self._labels_PR.mT @ phrases_PD, dim=1)
        noise = torch.randn(self.network.relations.shape).to(self.device) * _SPREAD
        self.network.relations.copy_(means_RD[:, None] + noise)
        vectors_PW, facets_PD = self._encode(self._rows)
        matrix = self.matrix
        num_cells = int(matrix.offsets[len(matrix.patterns)])
        row_of = torch.from_numpy(np.repeat(np.arange(len(matrix.patterns)), matrix.row_sizes[: len(matrix.patterns)]))
        pair_of = torch.from_numpy(matrix.pairs[:num_cells].astype(np.int64)).to(self.device)
        pairs_ND = facets_PD.new_zeros(len(matrix.names), facets_PD.shape[1])
        pairs_ND.index_add_(0, pair_of, facets_PD[row_of])
        return vectors_PW, functional.normalize(pairs_ND, dim=1)

    @torch.no_grad()
    def _encode(self, rows: Sequence[Ints]) -> tuple[Tensor, Tensor]:
        """Sentence vectors ``[P, W]`` and mean facets ``[P, D]``, unit length, of the current network."""
        config = self.config.model
        vectors = torch.empty(len(rows), config.encoder.width, device=self.device)
        facets = torch.empty(len(rows), config.dim, device=self.device)
        for batch in length_batches([len(row) for row in rows], max_tokens=_BATCH_TOKENS):
            with self.autocast():
                states = self.network.patterns.states([rows[row] for row in batch])
                facets_BKD = self.network.patterns.facets(states)
            vectors[batch] = functional.normalize(states.mean.float(), dim=1)
            facets[batch] = functional.normalize(facets_BKD.mean(dim=1), dim=1)
        return vectors, facets

    def batches(self, start_step: int) -> Iterator[RelationBatch]:
        """See ``Trainer``."""
        return self._stream.training_batches(start_step)

    def step(self, batch: RelationBatch, number: int) -> dict[str, Tensor]:
        """See ``Trainer``."""
        config = self.config
        labelled = self.pieces.rows([*batch.phrases, *map(mirrored, batch.phrases), *batch.others])
        with self.autocast():
            states = self.network.patterns.states([*labelled, *(self._rows[row] for row in batch.mined.tolist())])
            facets_BKD = self.network.patterns.facets(states)
        scores_BR = self.network.scores(facets_BKD[: len(labelled)])
        sizes = [len(batch.phrases), len(batch.phrases), len(batch.others)]
        given_BR, mirrored_BR, others_BR = torch.split(scores_BR, sizes)
        labels_BR = self._labels_PR[batch.phrase_rows]
        threshold = self.network.threshold
        ranking = ranking_loss(given_BR, labels_BR, self._similar_RR, threshold, slope=config.slope)
        direction = direction_loss(given_BR, mirrored_BR, labels_BR * self._directed_R, slope=config.direction_slope)
        none = no_relation_loss(others_BR, threshold, slope=config.slope) if batch.others else ranking.new_zeros(())
        relations_BKD = functional.normalize(self.network.relations[batch.relations], dim=2)
        mined_loss = self._pair_loss(facets_BKD[len(labelled) :], batch.mined_pairs)
        relation_loss = self._pair_loss(relations_BKD, batch.relation_pairs)
        counts = [int((sample.weights > 0).sum()) for sample in (batch.mined_pairs, batch.relation_pairs)]
        schema = (mined_loss * counts[0] + relation_loss * counts[1]) / max(1, sum(counts))
        means_BW = functional.normalize(states.mean[len(labelled) :].float(), dim=1)
        moved = 1 - (means_BW * self._first_vectors[batch.mined]).sum(dim=1).mean()
        loss = ranking + direction + none + config.schema_weight * schema + config.encoder_weight * moved
        self._num_used_pairs = sum(counts)
        return {LOSS: loss, "ranking": ranking, "direction": direction, "none": none, "schema": schema, "moved": moved}

    @torch.no_grad()
    def after_step(self, learning_rate_factor: float) -> None:
        """Moves the entity pairs of the batch; the loss is a batch mean, but each pair moves as if alone."""
        rate = learning_rate_factor * self.config.pair_learning_rate * self._num_used_pairs
        gradient, self.pair_vectors.grad = self.pair_vectors.grad, None
        if gradient is not None and rate > 0:
            self.pair_vectors.add_(gradient, alpha=-rate)
            rows = gradient.coalesce().indices()[0]
            self.pair_vectors[rows] = functional.normalize(self.pair_vectors[rows], dim=1)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The encoder and the relations have separate learning rates."""
        network, config = self.network, self.config
        encoder = list(network.patterns.encoder.parameters())
        grouped = {id(weights) for weights in [*encoder, network.relations]}
        others = [weights for weights in network.parameters() if id(weights) not in grouped]
        return [
            {"params": others},
            {"params": encoder, "lr": config.encoder_learning_rate},
            {"params": [network.relations], "lr": config.relation_learning_rate},
        ]

    def state(self) -> dict[str, Any]:
        """See ``Trainer``; pairs in full precision, so that resuming is exact."""
        return super().state() | {"pairs": self.pair_vectors.detach()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """See ``Trainer``."""
        super().load_state(state)
        self.pair_vectors = state["pairs"].requires_grad_()

    def _pair_loss(self, facets_BKD: Tensor, sample: PairSample) -> Tensor:
        size = sample.pairs.shape[1]
        pairs_BN = self.tensor(np.concatenate([sample.pairs, sample.negatives], axis=1))
        vectors_BND = functional.embedding(pairs_BN, self.pair_vectors, sparse=True)
        return universal_schema_loss(
            facets_BKD,
            vectors_BND[:, :size],
            vectors_BND[:, size:],
            positive_weights_BN=self.tensor(sample.weights),
            negative_weights_BN=self.tensor(sample.negative_weights),
        )


def _read_facts(config: RelationTrainingConfig, catalogue: RelationCatalogue) -> list[Triple]:
    """Distinct facts under canonical names; unknown names are kept."""
    meanings, facts = catalogue.meanings(), list[Triple]()
    for path in config.facts:
        for head, tail, name in read_triples(Path(path)):
            relation, is_inverse = meanings.get(name, (name, False))
            facts.append((tail, head, relation) if is_inverse else (head, tail, relation))
    return list(dict.fromkeys(facts))


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
) -> Floats:
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
            confidence=Confidence(thresholds=(_UNFITTED_THRESHOLD,) * len(matrix.relations)),
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


def _pattern_rows(trainer: RelationTrainer, phrases: list[str]) -> tuple[dict[str, int], Floats]:
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
