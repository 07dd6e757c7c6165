"""Tiny, seeded things that tests of several rooms share."""

import numpy as np

from facets.config import FacetModelConfig
from facets.model import CheckpointConfig, FacetModel, new_model
from facets.text.vocabulary import Vocabulary
from facets.words.vectors import WordVectors

WORDS = ["the", "a", "man", "garage", "lifting", "weights", "dog", "plays", "guitar", "music"]


def toy_word_vectors(dim: int = 32) -> WordVectors:
    """Random vectors of ten words."""
    vocabulary = Vocabulary(WORDS, np.arange(len(WORDS), 0, -1))
    return WordVectors(vocabulary, np.random.default_rng(0).standard_normal((len(WORDS), dim)).astype(np.float32))


def toy_model(
    words: WordVectors | None = None, *, encoder: str = "transformer", **settings: int | bool | str
) -> FacetModel:
    """An untrained model of three facets that encodes in a millisecond."""
    shape = {"num_facets": 3, "dim": 32, "hidden_dim": 32, "num_heads": 2, "feedforward_dim": 48, **settings}
    config = CheckpointConfig(name="toy", task="sentences", model=FacetModelConfig(**shape, encoder=encoder))
    return new_model(config, words or toy_word_vectors(), seed=7)
