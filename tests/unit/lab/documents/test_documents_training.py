"""Preparing data and training on it, with a tiny teacher."""

from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.documents.data import (
    Passage,
    PassageDataConfig,
    PassageTrainingConfig,
    PreparedPassages,
    SourceConfig,
    Teacher,
    prepare,
    read_groups,
    vectors_of,
)
from facets_lab.documents.training import PassageTrainer, export_passage_model
from facets_lab.training.loop import TrainingLoop, TrainingResult, train

from facets.config import SentenceEncoderConfig
from facets.errors import ConfigError, InvalidInputError
from facets.model import load
from facets.model.passage_model import PassageModel
from facets.model.passage_network import RaggedBatch, average_states

ENCODER = SentenceEncoderConfig(
    num_layers=1, width=32, num_heads=4, feedforward_dim=48, vocabulary_size=27, max_tokens=64
)


def _data_config(raw_texts: Path, teacher: Path, **settings: int) -> PassageDataConfig:
    sources = [
        SourceConfig(kind="wikipedia", files=[str(raw_texts / "wiki.txt")]),
        SourceConfig(kind="questions", files=[str(raw_texts / "questions.jsonl")]),
        SourceConfig(kind="papers", files=[str(raw_texts / "papers.jsonl")]),
    ]
    return PassageDataConfig(sources=sources, teacher=str(teacher), max_tokens=48, **settings)  # type: ignore[arg-type]


def _training_config(data: Path, teacher: Path, **settings: object) -> PassageTrainingConfig:
    values: dict[str, object] = {
        "data": str(data),
        "words": str(data.parent / "words.tsv"),
        "teacher": str(teacher),
        "layers": [0],
        "window_tokens": 48,
        "num_steps": 4,
        "batch_size": 4,
        "validation_groups": 2,
        "model": ENCODER,
        "device": "cpu",
        "precision": "float32",
    }
    return PassageTrainingConfig(**values | settings)


@pytest.fixture
def data(raw_texts: Path, teacher_folder: Path) -> Path:
    prepare(_data_config(raw_texts, teacher_folder), raw_texts / "data")
    return raw_texts / "data"


def test_prepared_texts_know_their_owners_and_the_teachers_vectors(
    data: Path, raw_texts: Path, teacher_folder: Path
) -> None:
    texts, teacher = PreparedPassages(data), Teacher(str(teacher_folder))
    passages = np.flatnonzero(texts.is_passage).tolist()
    assert len(passages) == 8 * 2 + 6 + 6
    assert sorted(int(texts.is_passage[texts.of(group)].sum()) for group in range(10)) == [2] * 8 + [6] * 2
    for number in passages:
        sentence = texts.row(number + 1)[1:-1].tolist()
        assert sentence == texts.row(number)[1 : 1 + len(sentence)].tolist()
    found = vectors_of(teacher.encoder(), [texts.row(3)])[0]
    np.testing.assert_allclose(found.astype(np.float32), texts.vectors[3].astype(np.float32), atol=2e-2)
    assert max(len(texts.row(number)) for number in range(len(texts))) <= 48


def _run(config: PassageTrainingConfig, out: Path, *, resume: bool = False) -> tuple[PassageTrainer, TrainingResult]:
    return train(lambda: PassageTrainer(config), out, resume=resume)


def test_a_run_becomes_a_model_that_loads(data: Path, teacher_folder: Path, tmp_path: Path) -> None:
    config = _training_config(data, teacher_folder, num_words=2)
    (data.parent / "words.tsv").write_text("the\t9\ncat\t5\nriver\t1\n")
    trainer, result = _run(config, tmp_path / "run")
    export_passage_model(trainer, result, tmp_path / "model")
    model = load(tmp_path / "model", PassageModel)
    text = "The cat sat on the old mat."
    batch = RaggedBatch.of(Teacher(str(teacher_folder)).ids([text], 48))
    expected = average_states(trainer.network(batch), batch).detach().numpy()
    np.testing.assert_allclose(model.embed([text]), expected, atol=2e-2)
    assert model.space == teacher_folder.name
    assert [word for word, _ in model.words.nearest(model.embed(["cat"]), top_k=1)[0]] == ["cat"]
    (data.parent / "words.tsv").write_text("the\t9\ncat\n")
    with pytest.raises(InvalidInputError, match=r"words\.tsv, line 2"):
        export_passage_model(trainer, result, tmp_path / "model")


def test_a_distilled_encoder_comes_closer_to_its_teacher(data: Path, teacher_folder: Path, tmp_path: Path) -> None:
    config = _training_config(data, teacher_folder, num_steps=20)
    trainer = PassageTrainer(config)
    torch.manual_seed(2)
    with torch.no_grad():
        for weights in trainer.network.layers.parameters():
            weights.add_(0.3 * torch.randn_like(weights))
    loop = TrainingLoop(trainer, tmp_path / "run")
    before = loop.validate()["distance"]
    loop.run()
    assert loop.validate()["distance"] < before


def test_settings_that_cannot_be_are_refused(data: Path, teacher_folder: Path) -> None:
    with pytest.raises(ConfigError, match="as many as"):
        _training_config(data, teacher_folder, layers=[0, 1])
    with pytest.raises(ConfigError, match="must match"):
        PassageTrainer(_training_config(data, teacher_folder, model=ENCODER.replaced(width=64)))
    with pytest.raises(ConfigError, match="validation_groups"):
        PassageTrainer(_training_config(data, teacher_folder, validation_groups=10))


def _groups(source: SourceConfig, **settings: int) -> list[list[Passage]]:
    return read_groups(PassageDataConfig(sources=[source], **settings))  # type: ignore[arg-type]


def test_neighbours_stand_together_and_a_title_is_asked_or_read(raw_texts: Path) -> None:
    groups = _groups(SourceConfig(kind="wikipedia", files=[str(raw_texts / "wiki.txt")], with_title=0.0))
    assert len(groups) == 8
    for group in groups:  # short paragraphs are left out
        assert [passage.text[-5:] for passage in group] in [[f"ing {n}", "river"] for n in range(8)]
    (group,) = _groups(SourceConfig(kind="questions", files=[str(raw_texts / "questions.jsonl")]))
    assert [len(passage.questions) for passage in group] == [2] * 6
    (group,) = _groups(SourceConfig(kind="papers", files=[str(raw_texts / "papers.jsonl")], with_title=0.5))
    assert len(group) == 6  # one has no abstract
    assert {bool(passage.questions) for passage in group} == {True, False}
    assert all(bool(passage.questions) != passage.text.startswith("Bread") for passage in group)
