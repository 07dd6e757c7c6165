"""One trained model of papers for all tests of the rooms of papers; it costs two seconds."""

import shutil
from pathlib import Path

import pytest
from toy_papers import add_toy_sentences, toy_paper_model

from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.trained import change_settings


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint; tests that change it work on a copy."""
    folder = tmp_path_factory.mktemp("papers")
    toy_paper_model(folder)
    return folder / "run" / "model"


@pytest.fixture(scope="session")
def model(folder: Path) -> PaperModel:
    return load(folder, PaperModel)


@pytest.fixture(scope="session")
def engine(model: PaperModel) -> PaperEngine:
    return PaperEngine(model)


@pytest.fixture(scope="session")
def with_sentences(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint with sentence vectors; tests that change it work on a copy."""
    return add_toy_sentences(folder, folder.parents[1] / "papers.jsonl", tmp_path_factory.mktemp("sentences"))


@pytest.fixture(scope="session")
def sentence_model(with_sentences: Path) -> PaperModel:
    return load(with_sentences, PaperModel)


@pytest.fixture(scope="session")
def with_additions(with_sentences: Path) -> Path:
    """The same with an encoder for papers of added authors; tests that change it work on a copy beside it."""
    folder = with_sentences.parent / "additions"
    shutil.copytree(with_sentences, folder)
    space = load(with_sentences.parent / "passages", PassageModel).space
    settings = {"encoder": "../passages", "space": space, "words_share": 0.6, "scale": 0.5, "offset": 0.25}
    change_settings(folder, {"additions": settings})
    return folder


@pytest.fixture(scope="session")
def passages(with_additions: Path) -> PaperModel:
    return load(with_additions, PaperModel)
