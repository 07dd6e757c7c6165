"""One trained model of relations for all tests of the room."""

from pathlib import Path

import pytest
from relation_toys import make_toy_relation_checkpoint

from facets.relations.engine import RelationEngine


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint; tests that change it work on a copy."""
    return make_toy_relation_checkpoint(tmp_path_factory.mktemp("relations") / "toy")


@pytest.fixture(scope="session")
def engine(folder: Path) -> RelationEngine:
    return RelationEngine.load(folder)
