"""Settings of training: no value is read as another type, and every message names file, section and field."""

from pathlib import Path

import pytest
from facets_lab.documents.data import PassageDataConfig, PassageTrainingConfig
from facets_lab.documents.reader import ReaderTrainingConfig
from facets_lab.documents.reader_data import ReaderDataConfig
from facets_lab.papers.data import PaperTrainingConfig
from facets_lab.relations.catalogue import RelationCatalogue
from facets_lab.relations.data import RelationTrainingConfig
from facets_lab.texts.data import SentenceTrainingConfig
from facets_lab.training.loop import TrainingConfig

from facets.errors import ConfigError

ROOT = Path(__file__).parents[4]
SENTENCES = 'corpus = "c"\nwords = "w"\n'


def loaded(tmp_path: Path, text: str) -> SentenceTrainingConfig:
    path = tmp_path / "x.toml"
    path.write_text(SENTENCES + text, encoding="utf-8")
    return SentenceTrainingConfig.from_toml(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[model]\ncross_attention = "no"', 'model.cross_attention must be a boolean, got "no"'),
        ("[model]\nnum_facets = true", "model.num_facets must be an integer, got true"),
        ("[model]\nnum_facets = 0", "model.num_facets must be >= 1, got 0"),
        ("[model]\nhidden_dim = 36", r"model.hidden_dim must be a multiple of 2 x num_heads \(8\), got 36"),
        ('[model]\nencoder = "rnn"', "model.encoder must be one of 'transformer' .*, got \"rnn\""),
        ('[model]\nbackbone = "b"', "model.backbone must be set exactly when encoder is 'backbone', got \"b\""),
        ("[model]\nfacets = 3", "model.facets is no setting; there are num_facets, dim"),
        ("[optimizer]\nlearning_rate = 0", "optimizer.learning_rate must be > 0, got 0"),
        ("num_step = 3", "num_step is no setting; there are .*num_steps"),
        ("input_tokens = 200", r"input_tokens must be <= model.max_tokens \(128\), got 200"),
        ("batch_size = 1", "batch_size must be >= 2, got 1"),
        ("model = 3", "model must be a table of settings, got 3"),
        ('precision = "float16"', "precision must be one of 'auto', 'float32' or 'bfloat16'"),
    ],
)
def test_a_bad_setting_is_named_with_its_file_and_section(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"x\.toml: {problem}"):
        loaded(tmp_path, text)


@pytest.mark.parametrize("path", sorted((ROOT / "lab" / "configs").glob("*.toml")), ids=lambda path: path.stem)
def test_our_own_configurations_load(path: Path) -> None:
    if path.stem == "passages-data":
        assert PassageDataConfig.from_toml(path).sources
        return
    if path.stem == "reader-data":
        assert ReaderDataConfig.from_toml(path).pairs
        return
    if path.stem == "relations-en":
        assert RelationCatalogue.from_toml(path).relation
        return
    kinds: dict[str, type[TrainingConfig]] = {
        "papers": PaperTrainingConfig,
        "relations": RelationTrainingConfig,
        "passages": PassageTrainingConfig,
        "reader": ReaderTrainingConfig,
    }
    kind = next((kind for word, kind in kinds.items() if word in path.stem), SentenceTrainingConfig)
    assert kind.from_toml(path).name in path.stem
