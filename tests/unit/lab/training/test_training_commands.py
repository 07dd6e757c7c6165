"""``facets-train`` from settings to a model folder, for every kind of model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from facets_lab.documents.data import PassageDataConfig, PassageTrainingConfig
from facets_lab.documents.reader import ReaderTrainingConfig
from facets_lab.documents.reader_data import ReaderDataConfig
from facets_lab.papers.data import PaperTrainingConfig
from facets_lab.relations.catalogue import RelationCatalogue
from facets_lab.relations.data import RelationTrainingConfig
from facets_lab.texts.data import SentenceTrainingConfig
from facets_lab.texts.inference import PairTrainingConfig
from facets_lab.training.__main__ import main
from facets_lab.training.loop import TrainingConfig
from relation_toys import toy_relation_config
from toy_papers import toy_paper_config, write_toy_papers
from toy_texts import make_toy_corpus, toy_sentence_config

import facets
from facets.config import Settings
from facets.errors import ConfigError
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary


def config_of(kind: str, folder: Path) -> Settings:
    if kind == "sentences":
        return toy_sentence_config(make_toy_corpus(folder), num_steps=4)
    if kind == "relations":
        return toy_relation_config(folder, num_steps=4)
    return toy_paper_config(write_toy_papers(folder / "papers.jsonl"))


def write_toml(path: Path, config: Settings) -> Path:
    """Values of TOML are written as those of JSON."""
    path.write_text("\n".join(_lines(config.to_dict())), encoding="utf-8")
    return path


def _lines(values: dict[str, Any], section: str = "") -> Iterator[str]:
    for name, value in values.items():
        if not isinstance(value, dict):
            yield f"{name} = {json.dumps(value)}"
    for name, value in values.items():
        if isinstance(value, dict):
            yield f"[{section}{name}]"
            yield from _lines(value, f"{section}{name}.")


@pytest.mark.parametrize("kind", ["sentences", "relations", "papers"])
def test_a_run_gives_a_model_and_is_not_overwritten(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [kind, "--config", str(write_toml(tmp_path / "toy.toml", config_of(kind, tmp_path)))]
    arguments += ["--out", str(tmp_path / "run")]
    assert main([*arguments, "--resume"]) == 1
    assert "error: nothing to resume" in capsys.readouterr().err
    assert main(arguments) == 0
    assert facets.load(tmp_path / "run" / "model").task == kind
    capsys.readouterr()
    assert main(arguments) == 1
    assert "already holds a run: use --resume, or another --out" in capsys.readouterr().err
    assert main([*arguments, "--resume"]) == 0


def test_a_corpus_packed_with_the_words_of_vectors_can_be_trained_on(tmp_path: Path) -> None:
    folder = make_toy_corpus(tmp_path)
    words = WordVectors.load(folder / "words")
    pieces = [*words.vocabulary.words, "to##", "##pic"]
    counts = np.append(words.vocabulary.counts, [1, 1])
    vectors = np.concatenate([words.vectors, np.ones((2, words.dim), dtype=np.float32)])
    WordVectors(Vocabulary(pieces, counts), vectors).save(folder / "with-pieces")
    packed = folder / "packed-again"
    main(["pack", str(folder / "corpus.txt"), "--words", str(folder / "with-pieces"), "--out", str(packed)])
    config = toy_sentence_config(folder, num_steps=4, corpus=str(packed), words=str(folder / "with-pieces"))
    path = write_toml(tmp_path / "config.toml", config)
    main(["sentences", "--config", str(path), "--out", str(tmp_path / "run")])
    assert facets.load(tmp_path / "run" / "model").encode(["Topic0word1."]).shape == (1, 3, 32)


ROOT = Path(__file__).parents[4]


SENTENCES = 'corpus = "c"\nwords = "w"\n'


def loaded(tmp_path: Path, text: str) -> SentenceTrainingConfig:
    path = tmp_path / "x.toml"
    path.write_text(SENTENCES + text, encoding="utf-8")
    return SentenceTrainingConfig.from_toml(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[model]\ncross_attention = "no"', 'model.cross_attention must be a valid boolean, got "no"'),
        ("[model]\nhidden_dim = 36", r"model.hidden_dim must be a multiple of 2 x num_heads \(8\), got 36"),
        ("[model]\nfacets = 3", "model.facets is no setting: did you mean num_facets"),
        ("num_step = 3", "num_step is no setting: did you mean num_steps"),
        ("input_tokens = 200", r"input_tokens must be <= model.max_tokens \(128\), got 200"),
        ('precision = "float16"', "precision must be 'auto', 'float32' or 'bfloat16'"),
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
        "pairs": PairTrainingConfig,
    }
    kind = next((kind for word, kind in kinds.items() if word in path.stem), SentenceTrainingConfig)
    assert kind.from_toml(path).name in path.stem
