"""Data and loss of a relation model (Chang 2022, algorithm 2, on a sentence encoder, with labelled patterns).

Shape suffixes: B patterns, R relations, N entity pairs, K and J facets, D dimensions, W width of the encoder, P
patterns of a table, V pieces.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from facets.errors import ConfigError
from facets.model.checkpoint import read_config, read_table, read_weights
from facets.model.passage_checkpoint import PIECES, PassageModelConfig, read_word_pieces
from facets.model.passage_encoding import length_batches
from facets.relations.model import PatternNetwork, PatternPieces
from facets.relations.patterns import mirrored
from facets_lab.evaluation.files import read_texts
from facets_lab.losses import direction_loss, no_relation_loss, ranking_loss, universal_schema_loss
from facets_lab.relations.catalogue import RelationCatalogue, label_patterns, read_phrases
from facets_lab.relations.data import (
    PairSample,
    RelationBatch,
    RelationStream,
    RelationTrainingConfig,
    Triple,
    load_matrix,
    read_triples,
)
from facets_lab.training.loop import LOSS, Trainer

logger = logging.getLogger(__name__)

_FIRST_WORDS = ("x", "y", "z")  # initial embeddings of the placeholders
_FIRST_THRESHOLD = 0.75
_SPREAD = 0.002  # initial distance of the facets of a relation
_BATCH_TOKENS = 4096


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
    def _encode(self, rows: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
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
