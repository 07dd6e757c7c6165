"""Training of sentence models."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.texts.data import SentenceStream, SentenceTrainingConfig
from facets_lab.texts.training import SentenceTrainer, export_sentence_model
from facets_lab.training.corpus import PackedCorpus
from facets_lab.training.loop import TrainingLoop, train
from toy_texts import make_toy_corpus, packed_corpus, toy_sentence_config

import facets
from facets.config import FacetModelConfig
from facets.errors import CheckpointError

Settings = Callable[..., SentenceTrainingConfig]


@pytest.fixture(scope="module")
def corpus_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_toy_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def settings(corpus_dir: Path) -> Settings:
    return partial(toy_sentence_config, corpus_dir)


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


@pytest.mark.parametrize(("loss", "num_facets"), [("sparse_coding", 1), ("sparse_coding", 3), ("kmeans", 3)])
def test_training_lowers_the_validation_loss(settings: Settings, tmp_path: Path, loss: str, num_facets: int) -> None:
    shape = FacetModelConfig(num_facets=num_facets, dim=32, hidden_dim=32, num_heads=2, feedforward_dim=32)
    loop = TrainingLoop(SentenceTrainer(settings(num_steps=40, loss=loss, model=shape, validate_every=40)), tmp_path)
    before = loop.validate()["loss"]
    result = loop.run()
    assert result.validation_loss is not None
    assert result.validation_loss < before - 0.1


def test_a_run_of_other_settings_is_not_resumed(settings: Settings, tmp_path: Path) -> None:
    TrainingLoop(SentenceTrainer(settings(num_steps=4)), tmp_path).run()
    with pytest.raises(CheckpointError, match="batch_size"):
        TrainingLoop(SentenceTrainer(settings(num_steps=4, batch_size=8)), tmp_path).resume()
    TrainingLoop(SentenceTrainer(settings(num_steps=4, num_threads=torch.get_num_threads())), tmp_path).resume()


def test_the_exported_model_is_the_trained_one(settings: Settings, tmp_path: Path) -> None:
    config = settings()
    trainer, result = train(lambda: SentenceTrainer(config), tmp_path)
    export_sentence_model(trainer, result, tmp_path / "model")
    model = facets.load(tmp_path / "model")
    rows = [np.array([0, 3, 5]), np.array([2])]
    with torch.inference_mode():
        trained = trainer.network.eval()(torch.tensor([[0, 3, 5], [2, 0, 0]]), torch.tensor([3, 1]))
    # Words of one byte a number, weights of two.
    np.testing.assert_allclose(model.encode_rows(rows), trained.numpy(), atol=0.05)
    assert model.name == "tiny"
    assert set(model.common_components) == {"plain", "attention"}
    assert model.config.training["presentations"] == 12 * 16


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PackedCorpus:
    folder = tmp_path_factory.mktemp("corpus")
    sentence = "The red fox number{0} quickly ate 42 ripe apples of the farmer beside an old mill ."
    documents = [f"# Title {d}\n" + " ".join(sentence.format(d) for _ in range(6)) + "\n" for d in range(40)]
    (folder / "text.txt").write_text("\n".join(documents), encoding="utf-8")
    return packed_corpus([folder / "text.txt"], folder / "packed")


def make_config(corpus: PackedCorpus, **changes: object) -> SentenceTrainingConfig:
    values = {"batch_size": 32, "validation_sentences": 64, "validation_share": 0.1} | changes
    return SentenceTrainingConfig(corpus=str(corpus.path), words="", **values)  # type: ignore[arg-type]


def test_batches_are_the_same_again_from_any_step(corpus: PackedCorpus) -> None:
    config = make_config(corpus, batch_size=8)
    first = SentenceStream(corpus, config).training_batches(0)
    batches = [next(first) for _ in range(4)]
    again = next(SentenceStream(corpus, config).training_batches(3))
    np.testing.assert_array_equal(again.rows, batches[3].rows)
    np.testing.assert_array_equal(again.targets, batches[3].targets)
    assert (batches[0].negatives != np.arange(8)).all()


def test_validation_documents_are_never_trained_on(corpus: PackedCorpus) -> None:
    stream = SentenceStream(corpus, make_config(corpus, batch_size=8))
    names = {row for row, word in enumerate(corpus.vocabulary.words) if word.startswith("number")}
    held_out = {int(row) for batch in stream.validation_batches() for row in batch.rows.flat} & names
    batches = stream.training_batches(0)
    trained = {int(row) for _ in range(30) for row in next(batches).rows.flat} & names
    assert held_out and trained and not held_out & trained
