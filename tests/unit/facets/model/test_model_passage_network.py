"""Facets that pool token states: how many, where they look, what they are.

The encoder without padding against BERT of the transformers library.
"""

import numpy as np
import pytest
import torch

from facets.config import PassageNetworkConfig, SentenceEncoderConfig
from facets.model.passage_network import (
    PassageNetwork,
    RaggedBatch,
    SentenceEncoder,
    Slots,
    average_states,
    sentence_slots,
)

ENCODER = SentenceEncoderConfig(
    num_layers=1, width=32, num_heads=4, feedforward_dim=48, vocabulary_size=50, max_tokens=64
)
CONFIG = PassageNetworkConfig(
    num_facets=4, tokens_per_facet=5, num_heads=2, feedforward_dim=32, own_vector_weight=0.0, encoder=ENCODER
)
LENGTHS = [3, 5, 6, 18, 40]


@pytest.fixture
def network() -> PassageNetwork:
    torch.manual_seed(1)
    return PassageNetwork(CONFIG).eval()


def _batch(lengths: list[int]) -> RaggedBatch:
    rng = np.random.default_rng(1)
    return RaggedBatch.of([rng.integers(0, 50, length) for length in lengths])


def _run(network: PassageNetwork, batch: RaggedBatch, slots: Slots | None = None) -> tuple[torch.Tensor, ...]:
    """Facets, their weights over tokens, and the vectors of the texts."""
    states = network.encoder(batch)
    vectors = average_states(states, batch)
    return *network.pooling(states, vectors, batch, slots=slots), vectors


@torch.no_grad()
def test_a_text_has_a_facet_for_so_many_tokens_up_to_all(network: PassageNetwork) -> None:
    facets, weights, vectors = _run(network, _batch(LENGTHS))
    assert facets.shape == (5, 4, 32) and weights.shape == (5, 4, 40) and vectors.shape == (5, 32)
    norms = facets.norm(dim=2)
    assert (norms > 0).sum(dim=1).tolist() == [1, 1, 2, 4, 4]
    torch.testing.assert_close(norms[norms > 0], torch.ones(12))
    for length, facet, weight in zip(LENGTHS, facets, weights, strict=True):
        used = facet.norm(dim=1) > 0
        torch.testing.assert_close(weight[used, :length].sum(dim=1), torch.ones(int(used.sum())))
        assert weight[:, length:].abs().sum() == 0


@torch.no_grad()
def test_the_own_vector_counts_in_every_facet_as_in_the_score() -> None:
    torch.manual_seed(1)
    alone = PassageNetwork(CONFIG).eval()
    mixed = PassageNetwork(CONFIG.replaced(own_vector_weight=0.5)).eval()
    mixed.load_state_dict(alone.state_dict())
    batch = _batch(LENGTHS)
    facets, _, vectors = _run(alone, batch)
    expected = torch.nn.functional.normalize(facets + 0.5 * vectors[:, None], dim=2)
    expected[facets.norm(dim=2) == 0] = 0
    torch.testing.assert_close(_run(mixed, batch)[0], expected)


ENCODER_ALONE = SentenceEncoderConfig(
    num_layers=2, width=32, num_heads=4, feedforward_dim=48, vocabulary_size=50, max_tokens=16
)


def _encoder() -> SentenceEncoder:
    torch.manual_seed(1)
    return SentenceEncoder(ENCODER_ALONE).eval()


@pytest.mark.parametrize(("num_texts", "num_rows"), [(1, 16), (2, 16), (3, 32), (16, 128), (17, 192)])
def test_a_single_query_is_not_padded_to_the_rows_of_a_batch(num_texts: int, num_rows: int) -> None:
    encoder, seen = _encoder(), []
    encoder.layers[0].register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    assert len(encoder(RaggedBatch.of([np.arange(8)] * num_texts))) == 8 * num_texts
    assert seen == [num_rows]


@torch.no_grad()
def test_facets_of_sentences_look_at_their_sentence_alone(network: PassageNetwork) -> None:
    sentences = np.array([[3, 15, 2], [20, 0, 0]])
    slots, of_sentence = sentence_slots(sentences, CONFIG)
    assert slots.used.tolist() == [[True] * 4, [True] * 4] and of_sentence.tolist() == [[0, 1, 1, 2], [0] * 4]
    _, weights, _ = _run(network, _batch([20, 20]), slots)
    ends = np.cumsum(sentences, axis=1)
    for text in range(2):
        for facet, sentence in enumerate(of_sentence[text]):
            inside = slice(int(ends[text, sentence] - sentences[text, sentence]), int(ends[text, sentence]))
            torch.testing.assert_close(weights[text, facet, inside].sum(), torch.tensor(1.0))
