import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from source_tree import ROOT
from tiny_encoders import tiny_encoder
from toys import toy_model

import facets
from facets.model import PassageModel

sentence_transformers = pytest.importorskip("sentence_transformers", reason="the backbone extra is not installed")
from facets.model.multi_vector import PassageFacetsModule, PassageVectorModule  # noqa: E402

MODEL = ROOT / "models" / "facets-passages-small-en"
SAMPLES = (ROOT / "samples" / "wikipedia.jsonl").read_text(encoding="utf-8").splitlines()[:12]
TEXTS = [json.loads(line)["text"] for line in SAMPLES]
WORDS = ["a man lifting weights", "the dog plays guitar", "zebra"]
QUESTION = "Which bird is the national symbol of the United States?"


@pytest.fixture(scope="module")
def model() -> PassageModel:
    return facets.load(MODEL, PassageModel)


def test_one_vector_a_text_is_the_model_s_own(model: PassageModel) -> None:
    encoder = sentence_transformers.SentenceTransformer(modules=[PassageVectorModule(MODEL)], device="cpu")
    assert encoder.get_embedding_dimension() == model.dim
    np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=5), model.embed(TEXTS), atol=2e-2)


def test_maxsim_of_queries_and_documents_is_the_score_by_facets(model: PassageModel) -> None:
    encoder = sentence_transformers.MultiVectorEncoder(modules=[PassageFacetsModule(MODEL)], device="cpu")
    queries = [QUESTION, "How fast do cheetahs run? Bees make honey. Whales live in the sea and are large animals."]
    documents = encoder.encode_document(TEXTS, batch_size=5)
    scores = np.asarray(encoder.similarity(encoder.encode_query(queries), documents))
    own = model.encode_queries(queries)
    found = model.encode_passages(TEXTS)
    for place in range(len(TEXTS)):
        facets_KD = found.document(place)[0]
        facets_KD = facets_KD[facets_KD.any(axis=1)]
        expected = ((own.facets @ facets_KD.T).max(axis=2) * own.weights).sum(axis=1)
        np.testing.assert_allclose(scores[:, place], expected, atol=3e-2)
    assert "eagle" in TEXTS[int(scores[0].argmax())]


def test_an_empty_text_does_not_stop_a_pipeline() -> None:
    encoder = sentence_transformers.MultiVectorEncoder(modules=[PassageFacetsModule(MODEL)], device="cpu")
    assert [len(facets) > 0 for facets in encoder.encode_document(["", TEXTS[0]])] == [True, True]


def test_a_checkpoint_opens_as_a_multi_vector_encoder(tmp_path: Path) -> None:
    toy_model().save(tmp_path / "toy")
    encoder = sentence_transformers.MultiVectorEncoder(str(tmp_path / "toy"), device="cpu", trust_remote_code=True)
    expected = facets.load(tmp_path / "toy").encode(WORDS)
    expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    documents = encoder.encode_document(WORDS)
    np.testing.assert_allclose(np.stack([np.asarray(d) for d in documents]), expected, atol=1e-5)
    queries = encoder.encode_query(WORDS[:1])
    scores = encoder.similarity(queries, documents)
    maxsim = (expected[0] @ expected.transpose(0, 2, 1)).max(axis=2).sum(axis=1)
    np.testing.assert_allclose(np.asarray(scores)[0], maxsim, atol=1e-4)


@pytest.mark.slow
def test_facets_of_any_encoder_are_saved_with_its_files(tmp_path: Path) -> None:
    folder = tiny_encoder(tmp_path / "tiny", prompts={"query": "query: "})
    module = PassageFacetsModule(f"sentence-transformers:{folder}")
    encoder = sentence_transformers.MultiVectorEncoder(modules=[module], device="cpu")
    long = " ".join(TEXTS)[:4000]
    documents = encoder.encode_document([TEXTS[0], long], convert_to_numpy=True)
    assert len(documents[1]) > module.model.num_facets
    (folder / ".cache").mkdir()
    encoder.save(str(tmp_path / "saved"), create_model_card=False)
    assert not list((tmp_path / "saved").rglob(".*"))
    (tmp_path / "saved" / "encoder" / ".DS_Store").touch()
    shutil.rmtree(folder)
    code = "import sys, numpy as np, sentence_transformers as st\n"
    code += "model = st.MultiVectorEncoder(sys.argv[1], device='cpu', trust_remote_code=True, local_files_only=True)\n"
    code += "model.save(sys.argv[1], create_model_card=False)\n"
    code += "found = [*model.encode_document(sys.argv[3:]), *model.encode_query(sys.argv[3:4])]\n"
    code += "np.savez(sys.argv[2], *[np.asarray(own.cpu()) for own in found])\n"
    arguments = [str(tmp_path / "saved"), str(tmp_path / "found.npz"), TEXTS[0], long]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    found = np.load(tmp_path / "found.npz")
    expected = [*documents, encoder.encode_query([TEXTS[0]], convert_to_numpy=True)[0]]
    for place, own in enumerate(expected):
        np.testing.assert_allclose(found[f"arr_{place}"], own, atol=2e-2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", [MODEL, "encoder"])
def test_a_pipeline_may_move_to_another_device(name: str | Path, tmp_path: Path) -> None:
    module = PassageFacetsModule(name if name == MODEL else f"sentence-transformers:{tiny_encoder(tmp_path / 'tiny')}")
    before = module.model.encode(TEXTS[:2])
    sentence_transformers.MultiVectorEncoder(modules=[module], device="cuda")
    np.testing.assert_allclose(module.model.encode(TEXTS[:2]), before, atol=5e-2)


def test_facets_of_a_checkpoint_are_saved_with_it(tmp_path: Path) -> None:
    encoder = sentence_transformers.MultiVectorEncoder(modules=[PassageFacetsModule(MODEL)], device="cpu")
    encoder.save(str(tmp_path / "saved"), create_model_card=False)
    again = sentence_transformers.MultiVectorEncoder(str(tmp_path / "saved"), device="cpu", trust_remote_code=True)
    first, second = (own.encode_document(TEXTS[:1], convert_to_numpy=True)[0] for own in (encoder, again))
    np.testing.assert_allclose(first, second, atol=2e-2)
