"""From a file of papers to a checkpoint folder: vocabulary, word vectors, network, tables."""

import os
from pathlib import Path

import numpy as np

from facets.errors import ConfigError
from facets.language.singular import singular_word_vectors, word_counts
from facets.language.vectors import WordVectors, unit_rows
from facets.model.checkpoint import CheckpointConfig
from facets.papers.inputs import CandidateKind
from facets.papers.model import PaperModel
from facets.papers.records import read_papers
from facets.papers.scoring import spread_matrix
from facets.papers.tables import PaperTables, ScoringSettings, TrainedPapers
from facets_lab.papers.training.config import PaperTrainingConfig
from facets_lab.papers.training.data import PaperCorpus, build_corpus, build_vocabulary
from facets_lab.papers.training.matched_table import MatchedTable
from facets_lab.papers.training.trainer import PaperTrainer
from facets_lab.training.loop import TrainingResult, train

__all__ = ["export_paper_model", "prepare_papers", "spread_tables", "train_papers"]

_SPREAD_PAPERS = 4000


def prepare_papers(config: PaperTrainingConfig, words_of: Path | None = None) -> tuple[PaperCorpus, WordVectors]:
    """Reads the papers and makes, or takes over, their vocabulary and word vectors.

    Args:
        config: Settings.
        words_of: A checkpoint of the same papers whose vocabulary is used again, and, unless words are trained, its
            vectors; None: make new ones.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: It holds something else, or too few papers.
    """
    papers = read_papers(Path(config.data))
    if words_of is None:
        vocabulary = build_vocabulary(papers, min_count=config.min_word_count, max_words=config.max_words)
    else:
        words = WordVectors.load(words_of)
        vocabulary = words.vocabulary
        if not config.train_words:
            if words.dim != config.word_dim:
                raise ConfigError(f"word_dim must be that of {words_of}, {words.dim}, got {config.word_dim}")
            return build_corpus(papers, vocabulary, config), words
    corpus = build_corpus(papers, vocabulary, config)
    counts = word_counts(corpus.rows, corpus.offsets, len(vocabulary))
    return corpus, WordVectors(vocabulary, singular_word_vectors(counts, config.word_dim, seed=config.seed))


def train_papers(
    config: PaperTrainingConfig,
    out_dir: Path,
    *,
    resume: bool = False,
    words_of: Path | None = None,
    progress: bool = True,
) -> PaperModel:
    """Trains a model and writes it to ``out_dir / "model"``.

    Args:
        config: Settings.
        out_dir: Folder of the run.
        resume: Go on from its last checkpoint.
        words_of: A checkpoint of the same papers to share papers with, and words unless they are trained, for a
            baseline.
        progress: Show a bar.

    Raises:
        ConfigError: The run exists already, or was interrupted; the message says how to go on.
        CheckpointError: ``resume`` without a checkpoint of these settings.
    """
    trainer, result = train(
        lambda: PaperTrainer(config, *prepare_papers(config, words_of)), out_dir, resume=resume, progress=progress
    )
    return export_paper_model(trainer, result, out_dir / "model", words_of=words_of)


def export_paper_model(
    trainer: PaperTrainer, result: TrainingResult, folder: Path, *, words_of: Path | None = None
) -> PaperModel:
    """Brings the tables up to date with the finished network and writes a checkpoint folder."""
    config, corpus, words = trainer.config, trainer.corpus, trainer.words
    trainer.refresh()
    vectors = {}
    for kind in CandidateKind:
        table = trainer.tables[kind]
        assert isinstance(table, MatchedTable)
        vectors[str(kind)] = table.vectors().detach().cpu().numpy()
    shared = "." if words_of is None else os.path.relpath(words_of, folder)
    if config.train_words:
        words = WordVectors(words.vocabulary, trainer.network.word_vectors.detach().cpu().numpy())
    checkpoint = CheckpointConfig(
        name=config.name,
        task="papers",
        model=config.model,
        words="." if config.train_words else shared,
        training={
            "data": config.data,
            "papers": len(corpus),
            "presentations": result.step * config.batch_size,
            "seconds": round(result.seconds, 1),
            "seed": config.seed,
            "autoencoder_weight": config.autoencoder_weight,
        },
    )
    model = PaperModel(
        trainer.network,
        words,
        config=checkpoint,
        tables=PaperTables(vectors, {}),
        settings=ScoringSettings(
            facet_weights={str(kind): 0.5 for kind in CandidateKind},
            document_modes={str(kind): "average" for kind in CandidateKind},
        ),
        papers=_known_papers(corpus),
        papers_path=shared,
    )
    model.tables = spread_tables(model)
    model.save(folder)
    return PaperModel.from_folder(folder)


def spread_tables(model: PaperModel) -> PaperTables:
    """The model's tables after ``spread_matrix`` of its own papers, of a length at which their own papers score 1.

    1 is what eq. 3.12 asks of a positive pair; a softmax leaves the length of the vectors open.
    """
    papers = model.papers
    chosen = np.random.default_rng(0).choice(len(papers.ids), min(_SPREAD_PAPERS, len(papers.ids)), replace=False)
    encoded = model.encode_papers([papers.rows[papers.offsets[i] : papers.offsets[i + 1]] for i in chosen])
    place_I = np.full(len(papers.ids), -1)
    place_I[chosen] = np.arange(len(chosen))
    vectors, spreads = {}, {}
    for kind, magnitudes in (
        ("authors", encoded.author_magnitudes),
        ("citations", encoded.citation_magnitudes),
    ):
        facets_NKD = encoded.facets * magnitudes[:, :, None]
        spreads[kind] = spread_matrix(facets_NKD.reshape(-1, model.dim))
        vectors[kind] = unit_rows(model.tables.vectors[kind] @ spreads[kind].T)
        places_P, columns_P = place_I[papers.pairs[kind][:, 0]], papers.pairs[kind][:, 1]
        known_P = places_P >= 0
        products_PK1 = facets_NKD[places_P[known_P]] @ vectors[kind][columns_P[known_P], :, None]
        if len(products_PK1):
            vectors[kind] /= max(float(products_PK1.max(axis=1).mean()), 1e-6)
    return PaperTables(vectors, spreads)


def _known_papers(corpus: PaperCorpus) -> TrainedPapers:
    pairs = {}
    for kind, found in corpus.interactions.items():
        both = np.stack([found.papers, found.columns], axis=1)
        pairs[str(kind)] = both[np.lexsort((both[:, 0], both[:, 1]))]
    return TrainedPapers(
        ids=[paper.id for paper in corpus.papers],
        titles=[paper.title for paper in corpus.papers],
        years=np.array([paper.year or 0 for paper in corpus.papers], dtype=np.int32),
        rows=corpus.rows,
        offsets=corpus.offsets,
        column_ids={str(kind): found.ids for kind, found in corpus.interactions.items()},
        column_names={str(kind): found.names for kind, found in corpus.interactions.items()},
        pairs=pairs,
    )
