"""One trained model of papers for all tests of the rooms of papers; it costs two seconds."""

from pathlib import Path

import pytest
from toy_papers import add_toy_sentences, toy_paper_model

from facets.model.loading import load
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel


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
