"""Sentence vectors of the papers of a model, as the other half of its documents.

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
from facets.language.vectors import unit_rows
from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets.model.shipped import find_model
from facets.papers.model import PaperModel
from facets.papers.records import read_papers
from facets.papers.sentences import SentenceVectors, sentence_texts
from facets.papers.tables import SentenceSettings, change_settings, write_sentence_vectors
from facets.storage import write_atomically

__all__ = ["add_sentences", "embed_texts"]

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
