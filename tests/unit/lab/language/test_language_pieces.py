import numpy as np
import pytest
from facets_lab.language.pieces import add_pieces

from facets.errors import ConfigError
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary

BEGINNINGS = ["goat", "sheep", "cow", "horse", "pig", "swan", "deer", "duck"]
ENDS = ["herd", "fold", "like", "skin"]
HIDDEN = {"duckskin", "goatfold"}
PIECES = [*BEGINNINGS, *(f"##{end}" for end in ENDS), "[UNK]", "z"]


@pytest.fixture
def words() -> WordVectors:
    """Compounds lie in the middle between their parts, so pieces can be found that explain them exactly."""
    rng = np.random.default_rng(1)
    parts = dict(zip([*BEGINNINGS, *ENDS], unit_rows(rng.normal(size=(12, 32))), strict=True))
    names = [*BEGINNINGS, *(b + e for b in BEGINNINGS for e in ENDS if b + e not in HIDDEN)]
    vectors = [parts[n] if n in parts else parts[n[:-4]] + parts[n[-4:]] for n in names]
    return WordVectors(Vocabulary(names, np.arange(len(names), 0, -1)), np.stack(vectors))


def read(words: WordVectors, token: str) -> np.ndarray:
    """Unit vector of any word: its own or that of its pieces."""
    return unit_rows(words.unit_vectors[list(words.vocabulary.split(token))].sum(axis=0, keepdims=True))[0]


def test_a_word_never_seen_lands_near_where_its_parts_put_it(words: WordVectors) -> None:
    with_pieces = add_pieces(words, PIECES)
    wanted = unit_rows((words.unit_vectors[0] + words.unit_vectors[words.vocabulary.row("cowfold")])[None])[0]
    assert "goatfold" not in words.vocabulary
    goatfold, sheepfold, sheepskin = (read(with_pieces, word) for word in ("goatfold", "sheepfold", "sheepskin"))
    assert goatfold @ wanted > 0.7
    assert goatfold @ sheepfold > goatfold @ sheepskin


def test_words_keep_their_rows_and_vectors(words: WordVectors) -> None:
    with_pieces = add_pieces(words, PIECES)
    assert with_pieces.vocabulary.words[: len(words)] == words.vocabulary.words
    np.testing.assert_allclose(with_pieces.unit_vectors[: len(words)], words.unit_vectors, atol=1e-6)
    pieces = with_pieces.unit_vectors[len(words) :]
    assert len(pieces) and (np.linalg.norm(pieces, axis=1) <= 1 + 1e-6).all()


def test_pieces_are_never_nearest_words(words: WordVectors) -> None:
    with_pieces = add_pieces(words, PIECES)
    names = {name for name, _ in with_pieces.nearest(with_pieces.unit_vectors[-1:], top_k=len(with_pieces))[0]}
    assert names == set(words.vocabulary.words)


def test_added_twice_is_the_same_as_once_and_removal_gives_the_words_back(words: WordVectors) -> None:
    once = add_pieces(words, PIECES)
    twice = add_pieces(once, PIECES)
    assert twice.vocabulary.words == once.vocabulary.words
    np.testing.assert_allclose(twice.vectors, once.vectors, atol=1e-6)
    assert once.without_pieces().vocabulary.words == words.vocabulary.words
    assert once.without_pieces().vocabulary.total_count == words.vocabulary.total_count
    assert words.without_pieces() is words


def test_settings_and_pieces_are_checked(words: WordVectors) -> None:
    with pytest.raises(ConfigError):
        add_pieces(words, PIECES, ridge=0.0)
    with pytest.raises(ConfigError):
        add_pieces(words, PIECES, min_words=0)
    with pytest.raises(ConfigError):
        add_pieces(words, ["##qq", "[UNK]"])
