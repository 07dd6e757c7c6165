"""One trained model of papers for all tests of the room; it costs two seconds."""

from pathlib import Path

import pytest
from toy_papers import toy_paper_model

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
