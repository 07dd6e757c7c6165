from pathlib import Path

import numpy as np
import pytest
import torch
from toys import toy_model, toy_word_vectors

from facets.config import SentenceEncoderConfig
from facets.language.vectors import WordVectors
from facets.model.network import WordTable
from facets.model.passage_network import RaggedBatch, SentenceEncoder


@pytest.mark.parametrize("cross_attention", [True, False])
def test_facets_do_not_depend_on_padding_or_neighbours(cross_attention: bool) -> None:
    model = toy_model(cross_attention=cross_attention)
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 11, size=n) for n in (1, 9, 4, 30, 2, 2)]
    together = model.encode_rows(rows)
    for position, text in enumerate(rows):
        np.testing.assert_allclose(model.encode_rows([text])[0], together[position], atol=2e-6)


def test_training_attention_equals_inference_attention() -> None:
    network = toy_model().network
    rows, lengths = torch.randint(0, 10, (4, 7)), torch.tensor([7, 2, 5, 1])
    with torch.no_grad():
        fused = network(rows, lengths)
    with torch.enable_grad():
        written_out = network(rows, lengths)
    torch.testing.assert_close(fused, written_out, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("dim", "dtype"), [(32, torch.bfloat16), (128, torch.bfloat16), (100, torch.float32)])
def test_table_of_stored_words_has_their_unit_vectors(dim: int, dtype: torch.dtype, tmp_path: Path) -> None:
    toy_word_vectors(dim).save(tmp_path)
    words = WordVectors.load(tmp_path)
    table = WordTable.of(words).to(dtype)
    np.testing.assert_allclose(table(torch.arange(len(words))), words.unit_vectors, atol=1e-6)


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
