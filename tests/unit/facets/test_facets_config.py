"""Settings of models: bad ones are named all at once, and shipped models say what they are."""

from pathlib import Path

import pytest

from facets.config import FacetModelConfig, Settings
from facets.errors import ConfigError
from facets.model.answer_reader import ReaderConfig
from facets.model.checkpoint import CheckpointConfig, read_config, read_settings
from facets.model.passage_checkpoint import PassageModelConfig
from facets.relations.model import RelationModelConfig

ROOT = Path(__file__).parents[3]


def test_all_bad_settings_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"^num_facets must be .*; dropout must be < 1, got 1$"):
        FacetModelConfig(num_facets=0, dropout=1)


def test_settings_do_not_change_and_copies_are_checked() -> None:
    shape = FacetModelConfig()
    with pytest.raises(ValueError, match="frozen"):
        shape.dim = 64  # type: ignore[misc]
    assert shape.replaced(dim=64) == FacetModelConfig(dim=64)
    with pytest.raises(ConfigError, match="dim must be"):
        shape.replaced(dim=65)


@pytest.mark.parametrize("path", sorted((ROOT / "models").rglob("config.json")), ids=lambda path: path.parent.name)
def test_shipped_models_say_the_same_about_themselves_as_before(path: Path) -> None:
    match read_settings(path.parent)["task"]:
        case "passages":
            assert isinstance(read_config(path.parent, PassageModelConfig).encoder, Settings)
        case "answers":
            assert isinstance(read_config(path.parent, ReaderConfig).encoder, Settings)
        case "relations":
            assert isinstance(read_config(path.parent, RelationModelConfig).network, Settings)
        case _:
            assert isinstance(read_config(path.parent, CheckpointConfig).model, Settings)
