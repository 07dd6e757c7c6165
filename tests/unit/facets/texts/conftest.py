"""A model whose facets are known: those of a text are the vectors of its first three known words."""

import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary

NUM_FACETS = 3
TOKENIZER = Tokenizer()  # takes a while to make
# Words of one line resemble each other; the first word of all is frequent.
TOPICS = ("the of is", "cat dog kitten puppy", "car truck road driver", "violin piano music concert", ". ,")


class FakeModel:
    """What the tasks about texts ask of a ``TextModel``; remembers what it encoded."""

    name = "fake"
    revision = "r1"
    task = "sentences"
    num_facets = NUM_FACETS
    dim = 16
    max_tokens = 12
    vocabulary_size = sum(len(topic.split()) for topic in TOPICS)

    def __init__(self) -> None:
        words = [word for topic in TOPICS for word in topic.split()]
        counts = np.full(len(words), 10)
        counts[words.index("the")] = 100_000
        vectors = [topic_vector(t) + 0.4 * word_vector(w) for t, topic in enumerate(TOPICS) for w in topic.split()]
        self.words = WordVectors(Vocabulary(words, counts, total_count=1_000_000), np.stack(vectors))
        self.tokenizer = TOKENIZER
        self.common_components: dict[str, NDArray[np.float32]] = {}
        self.score_curves: dict[str, NDArray[np.float64]] = {}
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of the first known words, the last repeated; of unknown words something random."""
        self.encoded += texts
        return np.stack([self._facets(text) for text in texts])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.encode(texts).sum(axis=1)

    def _facets(self, text: str) -> NDArray[np.float32]:
        words = self.tokenizer.words([text])[0][: self.max_tokens]
        assert words, "the tasks must refuse blank texts"
        rows = [row for row in self.words.vocabulary.rows(words) if row < len(self.words)]
        if not rows:
            return np.stack([word_vector(f"{text}{k}", self.words.dim) for k in range(NUM_FACETS)])
        return 2.0 * self.words.unit_vectors[(rows + [rows[-1]] * NUM_FACETS)[:NUM_FACETS]]


def word_vector(word: str, dim: int = 16) -> NDArray[np.float32]:
    """Random, the same for the same word, of length about 1."""
    rng = np.random.default_rng(zlib.crc32(word.encode()))
    return (rng.standard_normal(dim) / dim**0.5).astype(np.float32)


def topic_vector(topic: int, dim: int = 16) -> NDArray[np.float32]:
    """One axis a topic."""
    return np.eye(dim, dtype=np.float32)[topic]


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


class FakePassageModel(FakeModel):
    """The same as a model of passages: a facet for each known word, three at most; the others are zero."""

    task = "passages"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of the first known words."""
        facets_TKD = unit_rows(super().encode(texts).reshape(-1, self.dim)).reshape(len(texts), NUM_FACETS, self.dim)
        for facets_KD, words in zip(facets_TKD, self.tokenizer.words(texts), strict=True):
            facets_KD[len(words) :] = 0.0
        return facets_TKD


@pytest.fixture
def passage_model() -> FakePassageModel:
    return FakePassageModel()
