import numpy as np
import pytest
import torch
from toys import toy_model


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
