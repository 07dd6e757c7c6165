"""The encoder without padding against BERT of the transformers library."""

import numpy as np
import pytest
import torch
from torch import Tensor

from facets.config import SentenceEncoderConfig
from facets.errors import ConfigError
from facets.model.sentence_encoder import RaggedBatch, SentenceEncoder, average_states, from_bert

CONFIG = SentenceEncoderConfig(
    num_layers=2, width=32, num_heads=4, feedforward_dim=48, vocabulary_size=50, max_tokens=16
)
ROWS = [np.array(row) for row in ([7, 3, 9], [1], [4, 4, 8, 2, 49, 0], [5, 6, 7])]


def _encoder() -> SentenceEncoder:
    torch.manual_seed(1)
    return SentenceEncoder(CONFIG).eval()


def test_states_are_those_of_bert() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    bert = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=50,
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=48,
            max_position_embeddings=16,
        )
    ).eval()
    encoder = _encoder()
    encoder.load_state_dict(from_bert(bert.state_dict(), layers=[0, 2]))
    bert.encoder.layer = torch.nn.ModuleList([bert.encoder.layer[0], bert.encoder.layer[2]])
    states = encoder(RaggedBatch.of(ROWS)).split([len(row) for row in ROWS])
    for row, found in zip(ROWS, states, strict=True):
        expected = bert(input_ids=torch.from_numpy(row)[None]).last_hidden_state[0]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_a_text_has_the_same_states_alone_and_in_a_batch() -> None:
    encoder = _encoder()
    together = encoder(RaggedBatch.of(ROWS)).split([len(row) for row in ROWS])
    for row, found in zip(ROWS, together, strict=True):
        torch.testing.assert_close(found, encoder(RaggedBatch.of([row])), atol=1e-5, rtol=1e-4)


def test_texts_of_one_length_take_the_way_without_padding() -> None:
    encoder, rows = _encoder(), [ROWS[0], ROWS[3]]
    together = encoder(RaggedBatch.of(rows)).split([3, 3])
    for row, found in zip(rows, together, strict=True):
        torch.testing.assert_close(found, encoder(RaggedBatch.of([row])), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("num_texts", "num_rows"), [(1, 16), (2, 16), (3, 32), (16, 128), (17, 192)])
def test_a_single_query_is_not_padded_to_the_rows_of_a_batch(num_texts: int, num_rows: int) -> None:
    encoder, seen = _encoder(), []
    encoder.layers[0].register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    assert len(encoder(RaggedBatch.of([np.arange(8)] * num_texts))) == 8 * num_texts
    assert seen == [num_rows]


def test_padding_and_flattening_undo_each_other() -> None:
    batch = RaggedBatch.of(ROWS)
    values: Tensor = torch.randn(13, 5)
    padded = batch.pad(values)
    assert padded.shape == (4, 6, 5)
    assert torch.equal(batch.flatten(padded), values)
    assert padded[~batch.mask].abs().sum() == 0


def test_the_vector_of_a_text_is_the_mean_of_its_states_at_unit_length() -> None:
    batch, states = RaggedBatch.of(ROWS), torch.randn(13, 32)
    vectors = average_states(states, batch)
    for part, vector in zip(states.split([len(row) for row in ROWS]), vectors, strict=True):
        torch.testing.assert_close(vector, part.mean(dim=0) / part.mean(dim=0).norm())


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ConfigError, match="num_heads"):
        SentenceEncoderConfig(width=32, num_heads=5)
