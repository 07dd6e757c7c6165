"""The tiny encoders of the tests are what they claim to be: sentence-transformers opens them."""

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_encoders as tiny
import transformers.dynamic_module_utils
from sentence_transformers import MultiVectorEncoder, SentenceTransformer

TEXTS = ["The quick brown fox jumps. " * 20, "Собака спит. 狗在睡觉。 สุนัขนอน", "a", ""]
PROMPTS = {"query": "query: ", "document": "passage: ", "passage": "passage: "}


def _open(folder: Path, **settings: bool) -> SentenceTransformer:
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True, **settings)


@pytest.mark.parametrize(
    ("settings", "width"),
    [
        *(({"tokenizer": kind}, tiny.WIDTH) for kind in tiny.TOKENIZERS),
        *(({"pooling": mode, "tokenizer": "decoder"}, tiny.WIDTH) for mode in tiny.POOLINGS),
        ({"pooling": ("cls", "mean"), "normalize": False}, 2 * tiny.WIDTH),
        ({"dense_width": 48, "layer_norm": True, "do_lower_case": True}, 48),
        ({"dense_width": 48, "truncate_dim": 8, "similarity_fn_name": "dot"}, 8),
        ({"prompts": PROMPTS, "default_prompt_name": "passage", "include_prompt": False}, tiny.WIDTH),
    ],
)
def test_encoder_gives_finite_vectors_of_its_width(tmp_path: Path, settings: dict, width: int) -> None:
    model = _open(tiny.tiny_encoder(tmp_path, **settings))
    vectors = model.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), width) and np.isfinite(vectors).all()
    assert len({row.tobytes() for row in vectors[:3]}) == 3
    assert model.max_seq_length == 32
    assert model.tokenizer.is_fast == (settings.get("tokenizer") != "slow")
    assert model.similarity_fn_name == settings.get("similarity_fn_name", "cosine")
    assert model.default_prompt_name == settings.get("default_prompt_name")


def test_prompt_changes_the_vector(tmp_path: Path) -> None:
    model = _open(tiny.tiny_encoder(tmp_path, prompts=PROMPTS))
    plain = model.encode(TEXTS[:1], prompt="")
    assert not np.allclose(model.encode_query(TEXTS[:1]), plain)
    assert not np.allclose(model.encode_document(TEXTS[:1]), model.encode_query(TEXTS[:1]))


def test_only_a_multilingual_tokenizer_knows_other_scripts(tmp_path: Path) -> None:
    for kind in ["unigram", "wordpiece"]:
        tokens = _open(tiny.tiny_encoder(tmp_path / kind, tokenizer=kind)).tokenizer
        assert (tokens.unk_token in tokens.tokenize("".join(tiny.LANGUAGES))) == (kind == "wordpiece")


@pytest.mark.parametrize("is_model2vec", [False, True])
def test_static_encoder_averages_word_pieces(tmp_path: Path, is_model2vec: bool) -> None:
    model = _open(tiny.tiny_static_encoder(tmp_path, is_model2vec=is_model2vec))
    vectors = model.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), tiny.WIDTH) and np.isfinite(vectors).all()
    assert np.allclose(np.linalg.norm(vectors[:3], axis=1), 1.0) == is_model2vec


def test_custom_code_needs_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "cache"))
    folder = tiny.tiny_encoder(tmp_path / "model", custom_code=True)
    with pytest.raises(ValueError, match="trust_remote_code"):
        _open(folder)
    assert np.allclose(np.linalg.norm(_open(folder, trust_remote_code=True).encode(TEXTS), axis=1), 2.0)


@pytest.mark.parametrize("has_query_expansion", [True, False])
def test_late_interaction_is_the_same_in_every_layout(tmp_path: Path, has_query_expansion: bool) -> None:
    found = []
    for layout in tiny.LATE_LAYOUTS[: 3 if has_query_expansion else 2]:
        folder = tiny.tiny_late_interaction(tmp_path / layout, layout=layout, has_query_expansion=has_query_expansion)
        model = MultiVectorEncoder(str(folder), device="cpu", local_files_only=True)
        query = model.encode_query("quick fox", convert_to_numpy=True)
        found.append(np.concatenate([query, model.encode_document("A fox. [x]!", convert_to_numpy=True)]))
        assert len(query) == (16 if has_query_expansion else 5)
        assert found[-1].shape[1] == tiny.LATE_WIDTH and np.allclose(np.linalg.norm(found[-1], axis=1), 1.0, atol=1e-5)
    # A ColBERT checkpoint skips all punctuation, the others the four marks of their list.
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("kind", tiny.TOKENIZERS)
def test_two_builds_are_equal(tmp_path: Path, kind: str) -> None:
    first, second = (tiny.tiny_encoder(tmp_path / name, tokenizer=kind) for name in "ab")
    for path in first.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (second / path.relative_to(first)).read_bytes(), path
    assert json.loads((first / "modules.json").read_text())[0]["path"] == ""
