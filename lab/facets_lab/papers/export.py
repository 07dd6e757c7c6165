"""From a file of papers to a checkpoint folder: vocabulary, word vectors, network, tables, sentence vectors.

Shape letters: N texts, E of the encoder.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from facets.errors import ConfigError, InvalidInputError
from facets.language.vectors import WordVectors, unit_rows
from facets.model.checkpoint import CheckpointConfig
from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets.model.shipped import find_model
from facets.papers.fitting import spread_matrix
from facets.papers.model import PaperModel
from facets.papers.reading import SentenceVectors, sentence_texts
from facets.papers.records import CandidateKind
from facets.papers.trained import (
    PaperTables,
    ScoringSettings,
    SentenceSettings,
    TrainedPapers,
    change_settings,
    write_sentence_vectors,
)
from facets.storage import write_atomically
from facets_lab.papers.data import (
    PaperCorpus,
    PaperTrainingConfig,
    build_corpus,
    build_vocabulary,
    read_papers,
    singular_word_vectors,
    word_counts,
)
from facets_lab.papers.training import MatchedTable, PaperTrainer
from facets_lab.training.loop import TrainingResult, train

_SPREAD_PAPERS = 4000


def prepare_papers(config: PaperTrainingConfig, words_of: Path | None = None) -> tuple[PaperCorpus, WordVectors]:
    """Reads the papers, makes or takes over their vocabulary, and makes the word vectors that training starts from.

    Args:
        config: Settings.
        words_of: A checkpoint of the same papers whose vocabulary is used again; None: make a new one.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: It holds something else, or too few papers.
    """
    papers = read_papers(Path(config.data))
    if words_of is None:
        vocabulary = build_vocabulary(papers, min_count=config.min_word_count, max_words=config.max_words)
    else:
        vocabulary = WordVectors.load(words_of).vocabulary
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
        words_of: A checkpoint of the same papers to share papers and vocabulary with, for a baseline.
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
    words = WordVectors(words.vocabulary, trainer.network.word_vectors.detach().cpu().numpy())
    checkpoint = CheckpointConfig(
        name=config.name,
        task="papers",
        model=config.model,
        words=".",
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
    vectors: dict[str, NDArray[np.float32]] = {}
    spreads: dict[str, NDArray[np.float32]] = {}
    for kind in CandidateKind:
        facets_NKD = encoded.scaled(kind)
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


_CONFIG = "config.json"
_PART_SIZE = 512


def add_sentences(
    folder: Path,
    data: Path,
    run_dir: Path,
    *,
    encoder: str | Path,
    num_components: int,
    abstract_chars: int,
    share: float,
    progress: bool = True,
) -> PaperModel:
    """Gives a model of papers sentence vectors of its papers.

    Args:
        folder: The model; its files of sentence vectors and of settings are written.
        data: The papers it was trained on, with their texts.
        run_dir: Where the encoder's vectors are kept, part by part: a second run goes on from there.
        encoder: Name or folder of the model of passages that reads the papers.
        num_components: Numbers of a vector.
        abstract_chars: Characters of an abstract that it reads.
        share: Weight of the sentences beside the words until it is tuned.
        progress: Show a bar.

    Raises:
        ConfigError: A file cannot be read; ``run_dir`` holds vectors of something else; a number is out of range; the
            papers are those of another model.
        CheckpointError: A model is damaged.
        NotFoundError: There is no such model.
        InvalidInputError: A paper of the model is not in the data.
    """
    model, reader = PaperModel.from_folder(folder), load(encoder, PassageModel)
    if not 1 <= num_components <= reader.dim:
        raise ConfigError(f"components must be in [1, {reader.dim}], the width of {reader.name}, got {num_components}")
    owner = json.loads((folder / "recommendation.json").read_text(encoding="utf-8"))["papers"]
    if owner != ".":
        raise ConfigError(f"{folder} shares the papers of {owner}: add sentence vectors there")
    place = os.path.relpath(find_model(encoder), folder)
    try:
        settings = SentenceSettings(share=share, encoder=place, space=reader.space, abstract_chars=abstract_chars)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    papers = {paper.id: paper for paper in read_papers(data)}
    missing = next((key for key in model.papers.ids if key not in papers), None)
    if missing is not None:
        raise InvalidInputError(f"{data} must hold the papers of the model, {missing!r} is missing")
    known = [papers[key] for key in model.papers.ids]
    texts = sentence_texts([paper.title for paper in known], [paper.abstract for paper in known], abstract_chars)
    vectors_NE = embed_texts(texts, reader, run_dir, progress=progress)
    write_sentence_vectors(folder, SentenceVectors.of(vectors_NE, num_components))
    change_settings(folder, {"sentences": asdict(settings)})
    return PaperModel.from_folder(folder)


def embed_texts(
    texts: Sequence[str], encoder: PassageModel, folder: Path, *, part_size: int = _PART_SIZE, progress: bool = True
) -> NDArray[np.float32]:
    """Unit vectors of texts, ``[N, E]``, made in parts; those that the folder holds already are kept.

    Raises:
        ConfigError: The folder holds vectors of other texts or of another encoder.
    """
    digest = hashlib.sha256("\x00".join([encoder.revision, *texts]).encode("utf-8", "surrogatepass")).hexdigest()
    settings = {"digest": digest, "encoder": encoder.name, "texts": len(texts), "part_size": part_size}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _CONFIG
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != settings:
        raise ConfigError(f"{folder} holds vectors of other texts or of another encoder: give another --run")
    with write_atomically(path, durable=False) as part:
        part.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    paths = [folder / f"part-{number:05d}.npy" for number in range(-(-len(texts) // part_size))]
    for number, path in enumerate(tqdm(paths, disable=not progress, unit="part")):
        if not path.exists():
            vectors = encoder.embed(texts[number * part_size : (number + 1) * part_size])
            with write_atomically(path, durable=False) as part, part.open("wb") as file:
                np.save(file, vectors.astype(np.float16))
    return unit_rows(np.concatenate([np.load(path) for path in paths]).astype(np.float32))
