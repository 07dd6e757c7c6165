"""A tiny, seeded corpus of papers on three subjects, and a model trained on it in a second or two."""

import json
import shutil
from pathlib import Path

import numpy as np
from facets_lab.papers.data import PaperTrainingConfig
from facets_lab.papers.training import add_sentences, train_papers
from toys import toy_passage_model

from facets.papers.model import PaperModel

SUBJECTS = {
    "parsing": "parsing grammar treebank syntax dependency tree parser constituent phrase chart rule head".split(),
    "vision": "image pixel camera segmentation object detection scene depth video frame texture contour".split(),
    "speech": "speech audio acoustic phoneme speaker recognition voice signal microphone prosody tone waveform".split(),
}
NUM_PAPERS = 72
SHARE = 0.5  # of the sentences


def toy_records() -> list[dict[str, object]]:
    """72 papers; authors ``NAME A`` .. ``NAME D`` of each subject, cited by six papers of the same subject."""
    rng = np.random.default_rng(0)
    records = []
    for number in range(NUM_PAPERS):
        subject = list(SUBJECTS)[number % 3]
        words = SUBJECTS[subject]
        authors = [f"{subject} {letter}" for letter in rng.choice(list("ABCD"), 2, replace=False)]
        citing = [f"{subject}-citing-{i}" for i in rng.choice(6, 3, replace=False)]
        records.append(
            {
                "id": f"P{number % 3}{number // 3:02d}" if number else "P06-1057",
                "title": " ".join(rng.choice(words, 4, replace=False)),
                "abstract": " ".join(rng.choice(words, 14)) if number % 2 else "",
                "authors": authors,
                "cited_by": citing,
                "year": 2000 + number % 10,
            }
        )
    return records


def toy_paper_config(data: Path, **settings: object) -> PaperTrainingConfig:
    """Settings of a second's training."""
    values: dict[str, object] = {
        "data": str(data),
        "name": "toy-papers",
        "word_dim": 32,
        "min_word_count": 1,
        "min_cited_papers": 2,
        "num_steps": 4,
        "batch_size": 16,
        "validation_papers": 8,
        "validate_every": 2,
        "checkpoint_every": 2,
        "precision": "float32",
        "device": "cpu",
        "model": {"num_facets": 3, "dim": 32, "hidden_dim": 32, "num_heads": 2, "feedforward_dim": 48},
        **settings,
    }
    return PaperTrainingConfig(**values)


def write_toy_papers(path: Path) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in toy_records()), encoding="utf-8")
    return path


def toy_paper_model(folder: Path) -> PaperModel:
    """Trains the model in ``folder``; the checkpoint is ``folder / "run" / "model"``."""
    data = write_toy_papers(folder / "papers.jsonl")
    config = toy_paper_config(
        data,
        num_steps=40,
        validate_every=20,
        word_learning_rate=0.03,
        optimizer={"learning_rate": 3e-3, "warmup_steps": 5},
    )
    return train_papers(config, folder / "run", folder / "run" / "model")


def add_toy_sentences(model: Path, data: Path, folder: Path) -> Path:
    """A copy of a toy model with sentence vectors, ``folder / "papers"``; their encoder lies beside it."""
    shutil.copytree(model, folder / "papers")
    toy_passage_model().save(folder / "passages")
    add_sentences(folder / "papers", data, encoder=str(folder / "passages"))
    return folder / "papers"
