"""Tiny, seeded things that tests of several rooms share."""

import functools

import numpy as np
import tokenizers
import torch
from tokenizers import models, normalizers, pre_tokenizers

from facets.config import FacetModelConfig, SentenceEncoderConfig
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary
from facets.model import FacetModel, PassageModel
from facets.model.checkpoint import CheckpointConfig
from facets.model.network import FacetNetwork, WordTable
from facets.model.passage_network import NetworkEncoder, SentenceEncoder
from facets.model.word_pieces import WordPieces

WORDS = ["the", "a", "man", "garage", "lifting", "weights", "dog", "plays", "guitar", "music"]


def toy_word_vectors(dim: int = 32) -> WordVectors:
    vocabulary = Vocabulary(WORDS, np.arange(len(WORDS), 0, -1))
    return WordVectors(vocabulary, np.random.default_rng(0).standard_normal((len(WORDS), dim)).astype(np.float32))


def toy_model(words: WordVectors | None = None, **settings: int | bool) -> FacetModel:
    """An untrained model of three facets that encodes in a millisecond."""
    shape = {"num_facets": 3, "dim": 32, "hidden_dim": 32, "num_heads": 2, "feedforward_dim": 48, **settings}
    config = CheckpointConfig(name="toy", task="sentences", model=FacetModelConfig(**shape))
    return untrained_model(config, words or toy_word_vectors(), seed=7)


def untrained_model(config: CheckpointConfig, words: WordVectors, *, seed: int) -> FacetModel:
    torch.manual_seed(seed)
    return FacetModel(FacetNetwork(config.model, WordTable.of(words)), words, config=config)


def toy_word_pieces() -> WordPieces:
    """Pieces of the ten words, of all ASCII letters, digits and stops, and of continuing letters."""
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *dict.fromkeys([*WORDS, *letters])]
    names += [f"##{letter}" for letter in letters if letter.isalnum()]
    tokenizer = tokenizers.Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return WordPieces(tokenizer)


TOY_ENCODER = SentenceEncoderConfig(
    num_layers=2, width=32, num_heads=2, feedforward_dim=48, vocabulary_size=len(toy_word_pieces()), max_tokens=32
)
TOY_READER_ENCODER = TOY_ENCODER.replaced(max_tokens=256)


def toy_passage_model(*, window_tokens: int = 16, **settings: int | str) -> PassageModel:
    """An untrained model of passages: at most four facets of width 32, windows of 16 tokens."""
    torch.manual_seed(7)
    encoder = NetworkEncoder(SentenceEncoder(TOY_ENCODER), toy_word_pieces(), window_tokens=window_tokens, device="cpu")
    named = {"name": "toy-passages", "space": "toy", "num_facets": 4, **settings}
    return PassageModel(encoder, toy_word_vectors(), **named)  # type: ignore[arg-type]


# One model for all tests that leave it as it is: its networks are recorded once, with its first use.
shared_passage_model = functools.cache(toy_passage_model)
