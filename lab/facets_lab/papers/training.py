"""Trains a model of papers, its network and tables together (Chang 2022, eq. 3.14), and writes the model folder.

Shape suffixes: P pairs of the corpus or of a batch, J authors or citing papers, U those of a batch, D dimensions, W
dimensions of word vectors, V words, B papers of a batch, K facets, I papers of the corpus, N texts, E dimensions of the
encoder.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor, nn
from torch.nn import functional

from facets.arrays import Floats
from facets.errors import InvalidInputError
from facets.language.vectors import WordVectors, unit_rows
from facets.model.checkpoint import CheckpointConfig
from facets.model.loading import load
from facets.model.network import WordTable
from facets.model.passage_model import PassageModel
from facets.model.shipped import find_model
from facets.papers.model import PaperModel
from facets.papers.network import EncodedPapers, PaperNetwork
from facets.papers.reading import SentenceVectors, sentence_texts
from facets.papers.records import CandidateKind
from facets.papers.trained import (
    PapersPart,
    PaperTables,
    ScoringSettings,
    SentenceSettings,
    TrainedPapers,
    change_settings,
    write_sentence_vectors,
)
from facets.scoring import probability_weights
from facets_lab.losses import paper_autoencoder_loss, softmax_loss
from facets_lab.papers.data import (
    PaperBatch,
    PaperStream,
    PaperTrainingConfig,
    build_corpus,
    build_vocabulary,
    read_papers,
    singular_word_vectors,
    word_counts,
)
from facets_lab.training.loop import LOSS, ConfigFile, Resume, RunOut, Trainer, WordsOf, train

_PAIRS_AT_A_TIME = 8192
_REFRESH_ROUNDS = 3
_WEIGHT_RATE_FACTOR = 5.0  # log word weights change by units, coordinates of unit vectors by hundredths
_SPREAD_PAPERS = 4000
_SPREAD_POWER = 0.5
_SPREAD_FLOOR = 0.02  # share of the mean variance, for directions that facets hardly use
_LARGEST = 127  # of a component of a stored sentence vector
_NUM_COMPONENTS = 128  # most dimensions of a sentence vector
_ABSTRACT_CHARS = 300  # characters of an abstract that are encoded
_FIRST_SHARE = 0.5  # weight of sentences until it is tuned


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
            # Every pair counts from now on; those that did not are matched below.
            table.counts.copy_(torch.bincount(table.columns, minlength=len(table.counts)))
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


def _starting_point(config: PaperTrainingConfig, corpus: TrainedPapers, words: WordVectors) -> tuple[Floats, Floats]:
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


def prepare_papers(config: PaperTrainingConfig, words_of: Path | None = None) -> tuple[TrainedPapers, WordVectors]:
    """Reads the papers and makes their initial word vectors, with the vocabulary of ``words_of`` if given."""
    records = read_papers(Path(config.data))
    vocabulary = build_vocabulary(records, config) if words_of is None else WordVectors.load(words_of).vocabulary
    corpus = build_corpus(records, vocabulary, config)
    counts = word_counts(corpus.rows, corpus.offsets, len(vocabulary))
    return corpus, WordVectors(vocabulary, singular_word_vectors(counts, config.word_dim, seed=config.seed))


def papers(config: ConfigFile, out: RunOut, resume: Resume = False, words_of: WordsOf = None) -> None:
    """Train a model of papers with its author and citing-paper tables; Ctrl-C saves a checkpoint.

    With --words-of, the model has the vocabulary of another model of the same papers.

    Example: facets-train papers --config lab/configs/facets-papers-en.toml --out runs/facets-papers-en
    """
    settings, folder = PaperTrainingConfig.from_toml(config), out / "model"
    train_papers(settings, out, folder, resume=resume, words_of=words_of)
    typer.echo(f"{settings.name}: model in {folder}", err=True)


def train_papers(
    config: PaperTrainingConfig, run: Path, folder: Path, *, resume: bool = False, words_of: Path | None = None
) -> PaperModel:
    """Trains in the folder of a run, updates the tables to the finished network, and writes a model folder."""
    trainer, result = train(lambda: PaperTrainer(config, *prepare_papers(config, words_of)), run, resume=resume)
    trainer.refresh()
    vectors = {str(kind): trainer.table(kind).vectors().detach().cpu().numpy() for kind in CandidateKind}
    words = WordVectors(trainer.words.vocabulary, trainer.network.word_vectors.detach().cpu().numpy())
    checkpoint = CheckpointConfig(
        name=config.name,
        task="papers",
        model=config.model,
        words=".",
        training={
            "data": config.data,
            "papers": len(trainer.corpus.ids),
            "presentations": result.step * config.batch_size,
            "seconds": round(result.seconds, 1),
            "seed": config.seed,
            "autoencoder_weight": config.autoencoder_weight,
        },
    )
    settings = ScoringSettings(facet_weights={str(kind): 0.5 for kind in CandidateKind})
    part = PapersPart(PaperTables(vectors, {}), settings, trainer.corpus)
    model = PaperModel(trainer.network, words, config=checkpoint, part=part)
    model.tables = spread_tables(model)
    model.save(folder)
    return PaperModel.from_folder(folder)


def spread_tables(model: PaperModel) -> PaperTables:
    """The tables after ``spread_matrix`` of the model's papers, scaled so that a candidate's own papers score 1.

    1 is the target of eq. 3.12 for a positive pair; a softmax leaves the length of the vectors open.
    """
    known = model.papers
    chosen = np.random.default_rng(0).choice(len(known.ids), min(_SPREAD_PAPERS, len(known.ids)), replace=False)
    encoded = model.encode_papers([known.words_of(i) for i in chosen])
    row_I = np.full(len(known.ids), -1)
    row_I[chosen] = np.arange(len(chosen))
    vectors: dict[str, Floats] = {}
    spreads: dict[str, Floats] = {}
    for kind in CandidateKind:
        facets_NKD = encoded.scaled(kind)
        spreads[kind] = spread_matrix(facets_NKD.reshape(-1, model.dim))
        vectors[kind] = unit_rows(model.tables.vectors[kind][:] @ spreads[kind].T)
        rows_P, columns_P = row_I[known.pairs[kind][:, 0]], known.pairs[kind][:, 1]
        known_P = rows_P >= 0
        products_PK1 = facets_NKD[rows_P[known_P]] @ vectors[kind][columns_P[known_P], :, None]
        if len(products_PK1):
            vectors[kind] /= max(float(products_PK1.max(axis=1).mean()), 1e-6)
    return PaperTables(vectors, spreads)


def spread_matrix(facets_ND: Floats) -> Floats:
    """``C^(-1/2)`` of the second moment ``C`` of facets, ``[D, D]``: reduces the weight of what all papers share.

    Where facets are not spread evenly, the minimum of eq. 3.12 is ``(C + ...)^-1`` times the sum of the matched facets.
    The full inverse trusts rare directions too much: of the powers 0, 1/4, 1/2, 3/4 and 1, 1/2 did best on
    development data.
    """
    if not len(facets_ND):
        return np.eye(facets_ND.shape[1], dtype=np.float32)
    variances, axes = np.linalg.eigh(facets_ND.T @ facets_ND / len(facets_ND))
    variances = np.maximum(variances, 0.0) / max(float(variances.mean()), 1e-12) + _SPREAD_FLOOR
    return ((axes * variances**-_SPREAD_POWER) @ axes.T).astype(np.float32)


def add_sentences(
    folder: Annotated[Path, typer.Option("--model", help="Model of papers; sentence vectors are added to its folder.")],
    data: Annotated[Path, typer.Option(help="Papers the model was trained on, with their texts.")],
    encoder: Annotated[str, typer.Option(help="Model of passages, by name or folder.")] = "facets-passages-small-en",
) -> None:
    """Add sentence vectors to a model of papers.

    Example: facets-train paper-sentences --model models/facets-papers-en --data train.jsonl.xz
    """
    model, reader = PaperModel.from_folder(folder), load(encoder, PassageModel)
    encoder_path = os.path.relpath(find_model(encoder), folder)
    settings = SentenceSettings(
        share=_FIRST_SHARE, encoder=encoder_path, space=reader.space, abstract_chars=_ABSTRACT_CHARS
    )
    paper_of = {paper.id: paper for paper in read_papers(data)}
    missing = next((key for key in model.papers.ids if key not in paper_of), None)
    if missing is not None:
        raise InvalidInputError(f"{data} must hold the papers of the model, {missing!r} is missing")
    known = [paper_of[key] for key in model.papers.ids]
    texts = sentence_texts([paper.title for paper in known], [paper.abstract for paper in known], _ABSTRACT_CHARS)
    vectors_NE = unit_rows(reader.embed(texts).astype(np.float16).astype(np.float32))
    write_sentence_vectors(folder, reduced(vectors_NE))
    change_settings(folder, {"sentences": asdict(settings)})


def reduced(vectors_IE: Floats) -> SentenceVectors:
    """Unit vectors of the encoder, reduced to their principal components."""
    center_E = vectors_IE.mean(axis=0)
    centered_IE = vectors_IE - center_E
    _, axes_EE = np.linalg.eigh(centered_IE.T @ centered_IE)
    axes_EP = np.ascontiguousarray(axes_EE[:, ::-1][:, :_NUM_COMPONENTS], dtype=np.float32)
    values_IP = np.rint(unit_rows(centered_IE @ axes_EP) * _LARGEST).astype(np.int8)
    return SentenceVectors(axes_EP, center_E.astype(np.float32), values_IP)
