"""Data and loss of a model of papers: network and tables are trained together (Chang 2022, eq. 3.14).

Shape suffixes: P pairs of the corpus or of a batch, J authors or citing papers, U those of a batch, D dimensions, W
dimensions of word vectors, V words, B papers, K facets, I papers of the corpus.
"""

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from facets.language.vectors import WordVectors, unit_rows
from facets.model.network import WordTable
from facets.papers.network import EncodedPapers, PaperNetwork
from facets.papers.records import CandidateKind
from facets.papers.trained import TrainedPapers
from facets.scoring import probability_weights
from facets_lab.losses import paper_autoencoder_loss, softmax_loss
from facets_lab.papers.data import PaperBatch, PaperStream, PaperTrainingConfig, word_counts
from facets_lab.training.loop import LOSS, Trainer


class MatchedTable(nn.Module):
    """Sums of the matched facets of every author (citing paper): coordinate descent on eq. 3.12.

    For fixed facets, and papers spread evenly, the vector of an author that minimises eq. 3.12 points along the sum of
    the best facets of the author's papers. So the sum is updated directly instead of by gradients. An author can then
    be scored without the paper at hand; otherwise the model would learn nothing about unseen papers, because most
    authors have two or three. ``columns_P`` is the author of each pair of the corpus, ``is_used_P`` is true for pairs
    of training papers, ``facets_PD`` is the initial facet of each pair.
    """

    columns: Tensor
    matched: Tensor
    sums: Tensor
    counts: Tensor

    def __init__(self, columns_P: Tensor, is_used_P: Tensor, facets_PD: Tensor, num_columns: int) -> None:
        super().__init__()
        used = is_used_P.float()
        self.register_buffer("columns", columns_P)
        self.register_buffer("matched", (facets_PD * used.unsqueeze(1)).half())
        self.register_buffer("counts", torch.zeros(num_columns).index_add(0, columns_P, used))
        sums = torch.zeros(num_columns, facets_PD.shape[1]).index_add(0, columns_P, self.matched.float())
        self.register_buffer("sums", sums)
        self.log_scale = nn.Parameter(torch.zeros(()))  # shared by all vectors

    def count_all(self) -> None:
        """Makes every pair count; pairs that did not count must be updated next."""
        self.counts.zero_().index_add_(0, self.columns, torch.ones_like(self.columns, dtype=torch.float32))

    def vectors(self, columns_U: Tensor | None = None) -> Tensor:
        """Vectors of authors, all of the same length, ``[U, D]``; zero without a training paper."""
        sums = self.sums if columns_U is None else self.sums[columns_U]
        return self.log_scale.exp() * functional.normalize(sums, dim=-1)

    def vectors_without(self, pairs_P: Tensor) -> tuple[Tensor, Tensor]:
        """The author's vector without the paper of each pair, ``[P, D]``, and whether any paper is left."""
        columns_P = self.columns[pairs_P]
        rest_PD = self.sums[columns_P] - self.matched[pairs_P].float()
        has_rest_P = self.counts[columns_P] > 1.5
        return self.log_scale.exp() * functional.normalize(rest_PD, dim=-1), has_rest_P

    @torch.no_grad()
    def update(self, pairs_P: Tensor, facets_PKD: Tensor, own_PD: Tensor) -> None:
        """Replaces the facets of distinct pairs by the scaled facets of their papers that are best for ``own_PD``."""
        best_P = (facets_PKD @ own_PD.unsqueeze(2)).squeeze(2).argmax(dim=1)
        new_PD = facets_PKD[torch.arange(len(best_P), device=best_P.device), best_P].half()
        change_PD = new_PD.float() - self.matched[pairs_P].float()
        self.sums.index_add_(0, self.columns[pairs_P], change_PD)
        self.matched[pairs_P] = new_PD


_PAIRS_AT_A_TIME = 8192
_REFRESH_ROUNDS = 3
_WEIGHT_RATE_FACTOR = 5.0  # log word weights change by units, coordinates of unit vectors by hundredths


class PaperTrainer(Trainer[PaperTrainingConfig, PaperBatch]):
    """Network and tables on a corpus of papers."""

    network: PaperNetwork

    def __init__(self, config: PaperTrainingConfig, corpus: TrainedPapers, words: WordVectors) -> None:
        super().__init__(config)
        self._stream = PaperStream(corpus, config)
        self.corpus, self.words = corpus, words
        torch.manual_seed(config.seed)
        unit_vectors = torch.from_numpy(words.unit_vectors)
        probabilities = torch.from_numpy(words.vocabulary.probabilities)
        self.network = PaperNetwork(config.model, WordTable(unit_vectors), probabilities, train_words=True)
        projection_WD, averages_IW = _starting_point(config, corpus, words)
        with torch.no_grad():
            self.network.average_maps.copy_(torch.from_numpy(projection_WD).expand_as(self.network.average_maps))
            self.network.word_map.weight.copy_(torch.from_numpy(projection_WD.T))
        self.network.to(self.device)
        is_training = np.zeros(len(corpus.ids), dtype=np.bool_)
        is_training[self._stream.training_papers] = True
        facets_ID = averages_IW @ projection_WD
        self.tables = nn.ModuleDict()
        for kind, pairs_P2 in corpus.pairs.items():
            papers_P, columns_P = pairs_P2.T.copy()
            self.tables[kind] = MatchedTable(
                torch.from_numpy(columns_P),
                torch.from_numpy(is_training[papers_P]),
                torch.from_numpy(facets_ID[papers_P]),
                len(corpus.column_ids[kind]),
            )
        self.tables.to(self.device)

    def table(self, kind: CandidateKind) -> MatchedTable:
        """The table of authors or of citing papers."""
        table = self.tables[kind]
        assert isinstance(table, MatchedTable)
        return table

    def batches(self, start_step: int) -> Iterator[PaperBatch]:
        """See ``Trainer``."""
        return self._stream.training_batches(start_step)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Words have separate learning rates; only the rest of the network has weight decay."""
        config = self.config
        words = [self.network.word_vectors, self.network.log_word_weights]
        word_ids = set(map(id, words))
        others = [parameter for parameter in self.network.parameters() if id(parameter) not in word_ids]
        rate = config.word_learning_rate
        return [
            {"params": others, "weight_decay": config.optimizer.weight_decay},
            {"params": self.tables.parameters(), "weight_decay": 0.0},
            {"params": words[:1], "weight_decay": 0.0, "lr": rate},
            {"params": words[1:], "weight_decay": 0.0, "lr": rate * _WEIGHT_RATE_FACTOR},
        ]

    def step(self, batch: PaperBatch, number: int) -> dict[str, Tensor]:
        """See ``Trainer``; in training, also updates the tables."""
        config, (encoded, averages_BW) = self.config, self._encode(batch)
        losses: dict[str, Tensor] = {}
        for kind, pairs in batch.pairs.items():
            table = self.table(kind)
            facets_BKD = encoded.scaled(kind)
            numbers_P = self.tensor(pairs.numbers)
            positives_P2 = self.tensor(pairs.pairs)
            own_PD, has_rest_P = table.vectors_without(numbers_P)
            losses[kind] = softmax_loss(
                facets_BKD,
                table.vectors(self.tensor(pairs.columns)),
                positives_P2,
                # A pair whose author has no other paper adds nothing yet.
                self.tensor(pairs.weights) * has_rest_P,
                own_PD,
                temperature=config.temperature,
            )
            if self.network.training:
                table.update(numbers_P, facets_BKD.detach()[positives_P2[:, 0]], own_PD)
        words_BD = self.network.word_map(averages_BW)
        autoencoder = paper_autoencoder_loss(encoded.facets, words_BD, self.tensor(batch.negatives))
        total = (
            config.author_weight * losses[CandidateKind.AUTHORS]
            + config.citation_weight * losses[CandidateKind.CITATIONS]
            + config.autoencoder_weight * autoencoder
        )
        return {LOSS: total, **losses, "autoencoder": autoencoder}

    @torch.no_grad()
    def after_step(self, learning_rate_factor: float) -> None:
        """Returns the words to unit length."""
        words = self.network.word_vectors
        words.div_(torch.linalg.vector_norm(words, dim=1, keepdim=True).clamp_min(1e-12))

    def validate(self) -> dict[str, float]:
        """Mean losses of the held-out papers."""
        losses = [self.step(batch, 0) for batch in self._stream.validation_batches()]
        return {name: fmean(float(own[name]) for own in losses) for name in (losses[0] if losses else ())}

    def state(self) -> dict[str, Any]:
        """See ``Trainer``."""
        return super().state() | {"tables": self.tables.state_dict()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """See ``Trainer``."""
        super().load_state(state)
        self.tables.load_state_dict(state["tables"])

    @torch.no_grad()
    def refresh(self) -> None:
        """Encodes every paper, also held-out ones, and matches until the tables fit the network: ends the training."""
        self.network.eval()
        corpus, dim = self.corpus, self.config.model.dim
        shape = (len(corpus.ids), self.config.model.num_facets)
        facets = torch.empty((*shape, dim), dtype=torch.float16)
        magnitudes = {kind: torch.empty(shape) for kind in CandidateKind}
        limit = self.config.model.max_tokens
        for papers, rows, lengths in self._stream.all_papers(limit):
            with self.autocast():
                encoded = self.network(self.tensor(rows), self.tensor(lengths))
            rows_B = torch.from_numpy(papers)
            facets[rows_B] = encoded.facets.half().cpu()
            magnitudes[CandidateKind.AUTHORS][rows_B] = encoded.author_magnitudes.float().cpu()
            magnitudes[CandidateKind.CITATIONS][rows_B] = encoded.citation_magnitudes.float().cpu()
        for kind in CandidateKind:
            table, pairs_P2 = self.table(kind), corpus.pairs[kind]
            table.count_all()
            for _ in range(_REFRESH_ROUNDS):
                for first in range(0, len(pairs_P2), _PAIRS_AT_A_TIME):
                    numbers = np.arange(first, min(first + _PAIRS_AT_A_TIME, len(pairs_P2)))
                    papers_P = torch.from_numpy(pairs_P2[numbers, 0])
                    scaled = facets[papers_P].float() * magnitudes[kind][papers_P].unsqueeze(2)
                    numbers_P = self.tensor(numbers)
                    own_PD, _ = table.vectors_without(numbers_P)
                    table.update(numbers_P, scaled.to(self.device), own_PD)

    def _encode(self, batch: PaperBatch) -> tuple[EncodedPapers, Tensor]:
        """Papers, and their word averages ``[B, W]``."""
        parts = []
        with self.autocast():
            for rows, lengths in batch.parts:
                rows_BL, lengths_B = self.tensor(rows), self.tensor(lengths)
                parts.append((*self.network(rows_BL, lengths_B), word_averages(self.network, rows_BL, lengths_B)))
        *encoded, averages_BW = (torch.cat([part.float() for part in column]) for column in zip(*parts, strict=True))
        return EncodedPapers(*encoded), averages_BW


@torch.no_grad()  # a target of the training, not a part of it
def word_averages(network: PaperNetwork, rows_BL: Tensor, lengths_B: Tensor) -> Tensor:
    """Unit weighted word averages (eq. B.4 without H), ``[B, W]``, zero without a known word."""
    vectors = network.word_vectors
    words_BL = rows_BL % (len(vectors) + 1)
    mask_BL = torch.arange(rows_BL.shape[1], device=rows_BL.device) < lengths_B[:, None]
    sums_BW = functional.embedding_bag(
        words_BL.clamp_max(len(vectors) - 1),
        vectors,
        mode="sum",
        per_sample_weights=network.word_weights[words_BL] * mask_BL,
    )
    return functional.normalize(sums_BW, dim=-1)


def _starting_point(
    config: PaperTrainingConfig, corpus: TrainedPapers, words: WordVectors
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A projection of word averages, ``[W, D]``, that spreads papers evenly, and the averages, ``[I, W]``."""
    probabilities = words.vocabulary.probabilities
    weighted_VW = words.unit_vectors * probability_weights(torch.from_numpy(probabilities)).float().numpy()[:, None]
    counts_IV = word_counts(corpus.rows, corpus.offsets, len(words))
    averages_IW = unit_rows(np.asarray(counts_IV @ weighted_VW))
    values, axes = np.linalg.eigh(averages_IW.T @ averages_IW / max(1, len(averages_IW)))
    dim = min(config.model.dim, len(values))
    scale = (np.maximum(values[::-1][:dim], 1e-6) * dim) ** -0.5
    projection_WD = np.zeros((words.dim, config.model.dim), dtype=np.float32)
    projection_WD[:, :dim] = axes[:, ::-1][:, :dim] * scale
    return projection_WD, averages_IW
