"""Training of sentence models."""

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.texts.data import SentenceBatch, SentenceStream, SentenceTrainingConfig
from facets_lab.texts.training import SentenceTrainer, export_sentence_model
from facets_lab.training.corpus import PackedCorpus
from facets_lab.training.loop import TrainingLoop, train
from toy_texts import make_toy_corpus, toy_sentence_config

import facets
from facets.config import FacetModelConfig
from facets.errors import CheckpointError, ConfigError
from facets.language.vectors import WordVectors

Settings = Callable[..., SentenceTrainingConfig]


@pytest.fixture(scope="module")
def corpus_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_toy_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def settings(corpus_dir: Path) -> Settings:
    return partial(toy_sentence_config, corpus_dir)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = torch.load(folder / "checkpoint.pt", weights_only=True)["trainer"]["network"]
    return state


def test_targets_are_the_non_stop_words_of_the_neighbouring_sentences(settings: Settings) -> None:
    config = settings(max_targets=100, long_input_rate=0.0)
    corpus = PackedCorpus.open(Path(config.corpus))
    batch = next(SentenceStream(corpus, config).training_batches(0))
    sentences = [tuple(corpus.sentence(i)) for i in range(corpus.num_sentences)]
    documents = np.repeat(np.arange(len(corpus.document_offsets) - 1), np.diff(corpus.document_offsets))
    for row, length, targets, mask in zip(batch.rows, batch.lengths, batch.targets, batch.target_mask, strict=True):
        possible = []
        for here in (i for i, sentence in enumerate(sentences) if sentence == tuple(row[:length])):
            beside = [i for i in (here - 1, here + 1) if 0 <= i < len(sentences) and documents[i] == documents[here]]
            words = [w for i in beside for w in sentences[i] if not corpus.vocabulary.is_stop[w]]
            possible.append(sorted(words))
        assert sorted(targets[mask]) in possible


def test_batches_of_a_later_step_need_no_replay(settings: Settings) -> None:
    corpus = PackedCorpus.open(Path(settings().corpus))
    stream = SentenceStream(corpus, settings())
    from_start = [batch for batch, _ in zip(stream.training_batches(0), range(40), strict=False)]
    for start in (1, 7, 39):
        batch = next(stream.training_batches(start))
        np.testing.assert_array_equal(batch.rows, from_start[start].rows)
        np.testing.assert_array_equal(batch.targets, from_start[start].targets)


def test_long_inputs_run_over_the_next_sentences(settings: Settings) -> None:
    config = settings(long_input_rate=1.0, long_input_tokens=40, input_tokens=4)
    stream = SentenceStream(PackedCorpus.open(Path(config.corpus)), config)
    lengths = np.concatenate([b.lengths for b, _ in zip(stream.training_batches(0), range(10), strict=False)])
    assert 20 < lengths.max() <= 40


@pytest.mark.parametrize("loss", ["sparse_coding", "kmeans"])
@pytest.mark.parametrize("num_facets", [1, 3])
def test_training_lowers_the_validation_loss(settings: Settings, tmp_path: Path, loss: str, num_facets: int) -> None:
    shape = FacetModelConfig(num_facets=num_facets, dim=32, hidden_dim=32, num_heads=2, feedforward_dim=32)
    loop = TrainingLoop(SentenceTrainer(settings(num_steps=60, loss=loss, model=shape, validate_every=60)), tmp_path)
    before = loop.validate()["loss"]
    result = loop.run(progress=False)
    assert result.finished
    assert result.validation_loss is not None
    assert result.validation_loss < before - 0.1


class StoppedTrainer(SentenceTrainer):
    """Gets a signal in its seventh step."""

    def step(self, batch: SentenceBatch, number: int) -> dict[str, torch.Tensor]:
        if number == 6:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().step(batch, number)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_resuming_ends_exactly_where_an_unbroken_run_ends(settings: Settings, tmp_path: Path, dropout: float) -> None:
    shape = FacetModelConfig(num_facets=3, dim=32, hidden_dim=32, num_heads=2, feedforward_dim=32, dropout=dropout)
    config = settings(model=shape)
    TrainingLoop(SentenceTrainer(config), tmp_path / "unbroken").run(progress=False)

    result = TrainingLoop(StoppedTrainer(config), tmp_path / "broken").run(progress=False)
    assert not result.finished
    assert result.step == 7
    torch.manual_seed(99)  # Whatever ran in between must not matter.
    resumed = TrainingLoop(SentenceTrainer(config), tmp_path / "broken")
    resumed.resume()
    assert resumed.run(progress=False).finished

    expected, found = weights(tmp_path / "unbroken"), weights(tmp_path / "broken")
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    curves = [
        [json.loads(line)["validation_loss"] for line in (tmp_path / run / "curve.jsonl").read_text().splitlines()]
        for run in ("unbroken", "broken")
    ]
    assert curves[0] == curves[1]


def test_a_run_of_other_settings_is_not_resumed(settings: Settings, tmp_path: Path) -> None:
    TrainingLoop(SentenceTrainer(settings(num_steps=4)), tmp_path).run(progress=False)
    with pytest.raises(CheckpointError, match="batch_size"):
        TrainingLoop(SentenceTrainer(settings(num_steps=4, batch_size=8)), tmp_path).resume()
    TrainingLoop(SentenceTrainer(settings(num_steps=4, num_threads=torch.get_num_threads())), tmp_path).resume()


@pytest.mark.parametrize("damage", ["missing", "cut", "garbage"])
def test_a_damaged_checkpoint_is_not_resumed(settings: Settings, tmp_path: Path, damage: str) -> None:
    TrainingLoop(SentenceTrainer(settings(num_steps=4)), tmp_path).run(progress=False)
    path = tmp_path / "checkpoint.pt"
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else b"garbage" * 100)
    with pytest.raises(CheckpointError, match=r"checkpoint\.pt"):
        TrainingLoop(SentenceTrainer(settings(num_steps=4)), tmp_path).resume()


@pytest.mark.parametrize("inputs", ["sentences", "phrases"])
def test_the_exported_model_is_the_trained_one(settings: Settings, tmp_path: Path, inputs: str) -> None:
    config = settings(inputs=inputs)
    trainer, _ = train(lambda: SentenceTrainer(config), tmp_path, progress=False)
    export_sentence_model(config, tmp_path, tmp_path / "model")
    model = facets.load(tmp_path / "model")
    rows = [np.array([0, 3, 5]), np.array([2])]
    with torch.inference_mode():
        trained = trainer.network.eval()(torch.tensor([[0, 3, 5], [2, 0, 0]]), torch.tensor([3, 1]))
    # Words of one byte a number, weights of two.
    np.testing.assert_allclose(model.encode_rows(rows), trained.numpy(), atol=0.05)
    assert model.name == "tiny"
    assert set(model.common_components) == {"plain", "attention"}
    assert model.config.training["presentations"] == 12 * 16


def test_word_vectors_of_another_vocabulary_are_refused(settings: Settings, tmp_path: Path) -> None:
    words = WordVectors.load(Path(settings().words))
    vocabulary = type(words.vocabulary)([f"x{i}" for i in range(5)], np.arange(5, 0, -1))
    WordVectors(vocabulary, np.eye(5, 32, dtype=np.float32)).save(tmp_path / "words")
    with pytest.raises(ConfigError, match="vocabular"):
        SentenceTrainer(settings(words=str(tmp_path / "words")))


def test_a_corpus_smaller_than_a_batch_is_refused(settings: Settings) -> None:
    corpus = PackedCorpus.open(Path(settings().corpus))
    with pytest.raises(ConfigError, match="one batch needs 4096"):
        SentenceStream(corpus, settings(batch_size=4096))
