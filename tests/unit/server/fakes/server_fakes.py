"""A fake model: hash of tokens -> fixed vectors."""

import threading
from collections.abc import Sequence
from functools import cache
from typing import ClassVar

import numpy as np
from facets_server.runtime.config import BatcherConfig, LimitsConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.texts.served import ServedPassages
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary

WORDS = (
    "the a of and in to is cat dog kitten puppy animal car truck engine wheel road river sea water boat ship "
    "music song guitar piano bread cheese wine table chair house city king queen war peace sun moon star . ,"
).split()
NUM_FACETS, DIM, MAX_TOKENS = 3, 32, 16


def limited(**fixed: int) -> LimitsConfig:
    """Limits of which those that are no settings have other values."""
    return type("Limited", (LimitsConfig,), {"__annotations__": dict.fromkeys(fixed, ClassVar[int]), **fixed})()


def served_passages(model=None, **settings: object) -> ServedPassages:
    """A served toy model of passages."""
    from toys import shared_passage_model

    metrics = BatchMetrics(CollectorRegistry())
    return ServedPassages(model or shared_passage_model(), BatcherConfig(), metrics, **settings)


@cache
def _tokenizer() -> Tokenizer:
    return Tokenizer()


class FakeModel:
    """Facets are fixed random vectors chosen by the tokens of the text.

    Attributes:
        batches: Number of texts of each forward pass so far.
        gate: Forward passes wait while it is cleared.
        poison: Word that makes a forward pass fail.
    """

    task = "sentences"
    num_facets = NUM_FACETS
    dim = DIM
    max_tokens = MAX_TOKENS
    vocabulary_size = len(WORDS)

    def __init__(self, name: str = "fake", revision: str = "r1") -> None:
        self.name = name
        self.revision = revision
        self.space = f"{name}@{revision}"
        random = np.random.default_rng(7)
        vectors = random.normal(size=(len(WORDS), DIM)).astype(np.float32)
        counts = np.arange(len(WORDS), 0, -1) * 10
        self.words = WordVectors(Vocabulary(WORDS, counts), vectors)
        self.tokenizer = _tokenizer()
        component = vectors.mean(axis=0) / np.linalg.norm(vectors.mean(axis=0))
        self.common_components = {"plain": component, "attention": component}
        self.score_curves: dict[str, NDArray[np.float64]] = {}
        self.batches: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()
        self.poison = ""

    def hold(self) -> None:
        """Work waits for the gate from now on; ``started`` tells when some has come so far."""
        self.started.clear()
        self.gate.clear()

    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        return [
            self.words.vocabulary.rows(words[:MAX_TOKENS]) for words in self.tokenizer.words(texts, most=MAX_TOKENS)
        ]

    def encode_rows(self, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        self.batches.append(len(rows))
        self.started.set()
        assert self.gate.wait(30), "the test forgot to open the gate"
        if self.poison and any(self.words.vocabulary.rows([self.poison])[0] in row for row in rows):
            raise RuntimeError(f"cannot read {self.poison}")
        return np.stack([self._facets(row) for row in rows])

    def _facets(self, row: NDArray[np.int64]) -> NDArray[np.float32]:
        random = np.random.default_rng([int(number) for number in row])
        return random.normal(size=(NUM_FACETS, DIM)).astype(np.float32)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The sums of the facets."""
        return self.encode(texts).sum(axis=1)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.encode_rows(self.tokenize(texts))
