from pathlib import Path

import numpy as np
import pytest
from toys import toy_model

import facets

sentence_transformers = pytest.importorskip("sentence_transformers", reason="the backbone extra is not installed")

TEXTS = ["a man lifting weights", "the dog plays guitar", "zebra"]


def test_a_checkpoint_opens_as_a_multi_vector_encoder(tmp_path: Path) -> None:
    toy_model().save(tmp_path / "toy")
    encoder = sentence_transformers.MultiVectorEncoder(str(tmp_path / "toy"), device="cpu", trust_remote_code=True)
    expected = facets.load(tmp_path / "toy").encode(TEXTS)
    expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    documents = encoder.encode_document(TEXTS)
    np.testing.assert_allclose(np.stack([np.asarray(d) for d in documents]), expected, atol=1e-5)
    queries = encoder.encode_query(TEXTS[:1])
    scores = encoder.similarity(queries, documents)
    maxsim = (expected[0] @ expected.transpose(0, 2, 1)).max(axis=2).sum(axis=1)
    np.testing.assert_allclose(np.asarray(scores)[0], maxsim, atol=1e-4)


def test_it_saves_a_checkpoint_that_loads_again(tmp_path: Path) -> None:
    toy_model().save(tmp_path / "toy")
    encoder = sentence_transformers.MultiVectorEncoder(str(tmp_path / "toy"), device="cpu", trust_remote_code=True)
    encoder.save(str(tmp_path / "copy"))
    np.testing.assert_allclose(
        facets.load(tmp_path / "copy").encode(TEXTS), facets.load(tmp_path / "toy").encode(TEXTS), atol=1e-3
    )
