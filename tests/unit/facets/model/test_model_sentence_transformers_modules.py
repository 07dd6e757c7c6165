import json
from pathlib import Path

import numpy as np
import pytest
from source_tree import ROOT

import facets
from facets.model import PassageModel

sentence_transformers = pytest.importorskip("sentence_transformers", reason="the backbone extra is not installed")
from facets.model.multi_vector import PassageFacetsModule, PassageVectorModule  # noqa: E402

MODEL = ROOT / "models" / "facets-passages-small-en"
SAMPLES = (ROOT / "samples" / "wikipedia.jsonl").read_text(encoding="utf-8").splitlines()[:12]
TEXTS = [json.loads(line)["text"] for line in SAMPLES]
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


def test_what_is_saved_is_a_checkpoint(tmp_path: Path, model: PassageModel) -> None:
    PassageVectorModule(MODEL).save(str(tmp_path / "copy"))
    copy = PassageVectorModule.load(str(tmp_path / "copy"))
    np.testing.assert_allclose(copy.model.embed(TEXTS[:2]), model.embed(TEXTS[:2]), atol=2e-2)
