"""Settings of models: bad ones are named all at once, and shipped models say what they are."""

from pathlib import Path

import pytest
import torch

from facets.config import FacetModelConfig, Settings
from facets.devices import compute_device
from facets.errors import ConfigError, InvalidInputError, path_text
from facets.model.answer_reader import ReaderConfig
from facets.model.checkpoint import CheckpointConfig, read_config, read_settings
from facets.model.pair_reader import PairReaderConfig
from facets.model.passage_checkpoint import PassageModelConfig
from facets.relations.model import RelationModelConfig

ROOT = Path(__file__).parents[3]


def test_all_bad_settings_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"^num_facets must be .*; num_heads must be .*, got 0$"):
        FacetModelConfig(num_facets=0, num_heads=0)


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
        case "pairs":
            assert isinstance(read_config(path.parent, PairReaderConfig).encoder, Settings)
        case "relations":
            assert isinstance(read_config(path.parent, RelationModelConfig).network, Settings)
        case _:
            assert isinstance(read_config(path.parent, CheckpointConfig).model, Settings)


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        ("has no words", ("papers", 3, "title"), "papers[3].title has no words"),
        ("must be >= 1, got 0", "top_k", "top_k must be >= 1, got 0"),
        ("the archive is empty", (), "the archive is empty"),
    ],
)
def test_an_error_reads_as_a_sentence_about_its_path(rule, path, text):
    error = InvalidInputError(rule, path=path)
    assert (str(error), error.field) == (text, text.removesuffix(rule).strip())
    assert str(error.at(("texts", 0))) == f"texts[0] {rule}"


def test_places_follow_each_other():
    assert path_text(("spans", 0, 2)) == "spans[0][2]"


def test_auto_is_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert compute_device("auto") == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert compute_device("auto") == "cpu"


@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0 if name == "cuda" else 1)
    with pytest.raises(ConfigError, match=name):
        compute_device(name)


@pytest.mark.parametrize("name", ["", "gpu", "meta", "cuda:x"])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="auto, cpu or cuda"):
        compute_device(name)
