"""Passage models of tiny random late-interaction encoders, against sentence-transformers itself."""

import json
import string
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import MultiVectorEncoder
from tiny_encoders import LATE_LAYOUTS, LATE_WIDTH, tiny_encoder, tiny_late_interaction

import facets
from facets.errors import CheckpointError, InvalidInputError
from facets.language.vectors import unit_rows
from facets.model import PassageModel
from facets.model.late_interaction import LateInteractionEncoder, LateInteractionModel

SHORT = "A man is lifting weights in a garage."
DOCUMENTS = [SHORT, "The quick brown fox jumps over the lazy dog!", "Taxes are due in April, 2026.", "Pack my box."]
QUERIES = ["fox jumps", "Who is lifting weights?", "When are taxes due?"]
LONG = " ".join(DOCUMENTS) * 12


def load(folder: Path) -> PassageModel:
    return facets.load(f"sentence-transformers:{folder}", PassageModel)


def peer_of(folder: Path) -> MultiVectorEncoder:
    return MultiVectorEncoder(str(folder), device="cpu", local_files_only=True)


def scores(model: PassageModel) -> np.ndarray:
    queries, passages = model.encode_queries(QUERIES), model.encode_passages(DOCUMENTS)
    found = [passages.document(row)[0] for row in range(len(DOCUMENTS))]
    best = [(queries.facets @ own[own.any(axis=1)].T).max(axis=2) for own in found]
    return np.stack([(own * queries.weights).sum(axis=1) for own in best], axis=1)


@pytest.fixture(params=LATE_LAYOUTS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tiny_late_interaction(tmp_path / "late", layout=request.param)


def test_facets_of_single_tokens_score_as_the_model_itself(folder: Path) -> None:
    peer = peer_of(folder)
    words = load(folder).words
    encoder = LateInteractionEncoder(peer_of(folder))
    model = LateInteractionModel(encoder, words, name="a", revision="b", space="c", span=1, num_facets=64)
    queries, documents = peer.encode_query(QUERIES), peer.encode_document(DOCUMENTS)
    theirs = np.asarray(peer.similarity(queries, documents)) / len(queries[0])
    assert np.corrcoef(scores(model).ravel(), theirs.ravel())[0, 1] > 0.999
    np.testing.assert_allclose(scores(model), theirs, atol=1e-2)
    own = model.encode_queries(QUERIES)
    np.testing.assert_allclose(own.facets, np.stack([np.asarray(query) for query in queries]), atol=1e-3)
    np.testing.assert_allclose(own.weights, 1 / len(queries[0]))
    # All tokens that the model scores are among the facets, those of its skip list are not.
    vectors_TD = np.asarray(documents[1])
    facets_KD = model.encode([DOCUMENTS[1]])[0]
    facets_KD = facets_KD[facets_KD.any(axis=1)]
    assert len(facets_KD) == len(vectors_TD)
    np.testing.assert_allclose((vectors_TD @ facets_KD.T).max(axis=1), 1.0, atol=1e-3)


def test_facets_of_two_tokens_lie_within_a_sentence(folder: Path) -> None:
    model, peer = load(folder), peer_of(folder)
    assert (model.dim, model.num_facets, model.task) == (LATE_WIDTH, 32, "passages")
    text = f"{SHORT}  The fox jumps!"
    passages = model.encode_passages([text, LONG, "..."])
    used = passages.facets[0].any(axis=1)
    found = [text[start:end] for start, end in passages.spans[0][used].tolist()]
    assert list(dict.fromkeys(found)) == [SHORT, "The fox jumps!"]
    tokens_TD = peer.encode_document([text], convert_to_numpy=True)[0]
    assert 6 < used.sum() < len(tokens_TD)
    assert passages.facets[2].any()  # its special tokens
    vectors, spans = passages.document(1)
    used = vectors.any(axis=1)
    assert model.num_facets < used.sum() <= 256
    np.testing.assert_allclose(np.linalg.norm(vectors[used], axis=1), 1.0, atol=1e-5)
    assert spans[used].max() == len(LONG)
    mean = peer.encode_document([SHORT], convert_to_numpy=True)[0].mean(axis=0)
    np.testing.assert_allclose(model.embed([SHORT])[0], unit_rows(mean), atol=2e-2)
    with pytest.raises(InvalidInputError, match="has no words"):
        model.encode_queries([" "])
    assert model.encode_queries([]).facets.shape == (0, 1, LATE_WIDTH)


def test_a_query_has_a_facet_for_each_token_up_to_a_bound(tmp_path: Path) -> None:
    folder = tiny_late_interaction(tmp_path / "late", query_tokens=64, has_query_expansion=False)
    model = load(folder)
    queries = model.encode_queries(["fox", LONG])
    assert [int(used.sum()) for used in queries.weights > 0] == [4, model.max_query_facets]
    np.testing.assert_allclose(queries.weights.sum(axis=1), 1.0, atol=1e-5)
    surrogate, replacement = model.encode_queries(["fox \ud800", "fox \ufffd"]).facets
    np.testing.assert_allclose(surrogate, replacement, atol=1e-3)


def test_a_folder_of_pylate_need_not_name_its_kind(tmp_path: Path) -> None:
    folder = tiny_late_interaction(tmp_path / "late", layout="pylate", skiplist=string.punctuation)
    named = load(folder).encode([SHORT])
    settings = json.loads((folder / "config_sentence_transformers.json").read_text())
    for missing in ("model_type", "query_prefix", "skiplist_words"):
        del settings[missing]
        (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
        np.testing.assert_allclose(load(folder).encode([SHORT]), named, atol=1e-2)


def test_models_of_other_kinds_are_refused(tmp_path: Path) -> None:
    folder = tiny_encoder(tmp_path / "tiny")
    settings = json.loads((folder / "config_sentence_transformers.json").read_text())
    for kind in ("CrossEncoder", "SparseEncoder"):
        (folder / "config_sentence_transformers.json").write_text(json.dumps(settings | {"model_type": kind}))
        with pytest.raises(CheckpointError, match=f"got a {kind}"):
            load(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["ColPaliForRetrieval"]}))
    with pytest.raises(CheckpointError, match="one of images"):
        load(folder)
    broken = tiny_late_interaction(tmp_path / "broken")
    (broken / "1_Dense" / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(CheckpointError, match="expected a sentence-transformers model"):
        load(broken)
    with pytest.raises(CheckpointError, match="fast tokenizer"):
        load(tiny_late_interaction(tmp_path / "slow", tokenizer="slow", has_query_expansion=False))
