"""The encoder without padding. BERT of the transformers library is compared in test_model_backbone."""

import numpy as np
import pytest
import torch

from facets.config import SentenceEncoderConfig
from facets.model.passage_network import RaggedBatch, SentenceEncoder

CONFIG = SentenceEncoderConfig(
    num_layers=2, width=32, num_heads=4, feedforward_dim=48, vocabulary_size=50, max_tokens=16
)


@pytest.mark.parametrize(("num_texts", "num_rows"), [(1, 16), (2, 16), (3, 32), (16, 128), (17, 192)])
def test_a_single_query_is_not_padded_to_the_rows_of_a_batch(num_texts: int, num_rows: int) -> None:
    torch.manual_seed(1)
    encoder, seen = SentenceEncoder(CONFIG).eval(), []
    encoder.layers[0].register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    assert len(encoder(RaggedBatch.of([np.arange(8)] * num_texts))) == 8 * num_texts
    assert seen == [num_rows]
