"""From a file of papers to a model folder: vocabulary, word vectors, network, tables, sentence vectors.

Shape suffixes: N texts, E dimensions of the encoder, I papers, P pairs, K facets, D dimensions.
"""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.language.vectors import WordVectors, unit_rows
from facets.model.checkpoint import CheckpointConfig
from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets.model.shipped import find_model
from facets.papers.model import PaperModel
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
from facets_lab.papers.data import (
    PaperTrainingConfig,
    build_corpus,
    build_vocabulary,
    read_papers,
    singular_word_vectors,
    word_counts,
)
from facets_lab.papers.training import PaperTrainer
from facets_lab.training.loop import ConfigFile, Resume, RunOut, WordsOf, train

_SPREAD_PAPERS = 4000
_SPREAD_POWER = 0.5
_SPREAD_FLOOR = 0.02  # share of the mean variance, for directions that facets hardly use
_LARGEST = 127  # of a component of a stored sentence vector
_NUM_COMPONENTS = 128  # most dimensions of a sentence vector
_ABSTRACT_CHARS = 300  # characters of an abstract that are encoded
_FIRST_SHARE = 0.5  # weight of sentences until it is tuned


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
    vectors: dict[str, NDArray[np.float32]] = {}
    spreads: dict[str, NDArray[np.float32]] = {}
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


def spread_matrix(facets_ND: NDArray[np.float32]) -> NDArray[np.float32]:
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


def reduced(vectors_IE: NDArray[np.float32]) -> SentenceVectors:
    """Unit vectors of the encoder, reduced to their principal components."""
    center_E = vectors_IE.mean(axis=0)
    centered_IE = vectors_IE - center_E
    _, axes_EE = np.linalg.eigh(centered_IE.T @ centered_IE)
    axes_EP = np.ascontiguousarray(axes_EE[:, ::-1][:, :_NUM_COMPONENTS], dtype=np.float32)
    values_IP = np.rint(unit_rows(centered_IE @ axes_EP) * _LARGEST).astype(np.int8)
    return SentenceVectors(axes_EP, center_E.astype(np.float32), values_IP)
