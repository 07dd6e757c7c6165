"""The own clients of OpenAI, Cohere and Hugging Face against the HTTP gateway, and its OpenAPI before a validator."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from integration.guide_pages import Step, difference, steps
from integration.server_process import ROOT, ServerProcess, free_port

pytest.importorskip("starlette")

MODEL = "facets-passages-small-en"
TEXTS = ["A dog barks at the moon.", "The bank raised its rates."]
CAMELS = ["Camels live in deserts.", "A camel reaches 65 km/h at full speed."]
PAGE = (ROOT / "docs" / "use" / "http.md").read_text(encoding="utf-8")
EXAMPLES = [step for step in steps(PAGE) if step.language == "python"]
SPEED = "how fast can a camel run"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, folder = free_port(), tmp_path_factory.mktemp("http") / "data"
    # Beside a model of sentences, which is not the default for vectors; names of other vendors are taken.
    arguments = ("--model", str(ROOT / "models" / "facets-en"), "--http-port", str(port))
    vendors = {"FACETS_SERVER_HTTP_VENDOR_MODELS": "true"}
    with ServerProcess(folder, ROOT / "models" / MODEL, arguments=arguments, environment=vendors):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def openai(url: str) -> Iterator[Any]:
    package = pytest.importorskip("openai")
    with package.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_openai_vectors_have_unit_length_and_are_the_same_in_both_encodings(openai) -> None:
    as_base64 = openai.embeddings.create(model=MODEL, input=TEXTS)
    as_numbers = openai.embeddings.create(model=MODEL, input=TEXTS, encoding_format="float", dimensions=384)
    found = np.array([entry.embedding for entry in as_base64.data])
    np.testing.assert_allclose(found, np.array([entry.embedding for entry in as_numbers.data]), atol=2e-2)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-3)
    assert as_base64.usage.prompt_tokens > len(TEXTS)
    default = openai.embeddings.create(model="text-embedding-3-small", input=TEXTS[0])
    assert default.model == MODEL and len(default.data[0].embedding) == 384


def test_openai_facets_come_in_a_field_of_our_own(openai) -> None:
    reply = openai.embeddings.create(model=MODEL, input=TEXTS, encoding_format="float", extra_body={"facets": True})
    assert len(reply.data[0].facets[0]) == len(reply.data[0].embedding)
    assert reply.data[0].facet_spans


def test_openai_models_are_listed_the_default_first(openai) -> None:
    assert [model.id for model in openai.models.list()] == [MODEL, "facets-en"]


def test_openai_mistakes_raise_the_errors_that_users_of_the_client_know(openai) -> None:
    import openai as errors

    with pytest.raises(errors.NotFoundError, match="gpt"):
        openai.embeddings.create(model="gpt", input=TEXTS)
    with pytest.raises(errors.BadRequestError, match=r"input\[1\]"):
        openai.embeddings.create(model=MODEL, input=["a", ""])
    with pytest.raises(errors.BadRequestError, match="dimensions"):
        openai.embeddings.create(model=MODEL, input=TEXTS, dimensions=7)
    with pytest.raises(errors.BadRequestError, match="token ids"):
        openai.embeddings.create(model=MODEL, input=[[1, 2, 3]])


@pytest.mark.parametrize(("version", "model"), [("Client", "rerank-english-v3.0"), ("ClientV2", "rerank-v3.5")])
def test_cohere_reranks_by_both_versions(url: str, version: str, model: str) -> None:
    cohere = pytest.importorskip("cohere")
    client = getattr(cohere, version)(api_key="none", base_url=url)
    found = client.rerank(model=model, query=SPEED, documents=CAMELS, top_n=1)
    (best,) = found.results
    assert best.index == 1 and 0.1 < best.relevance_score <= 1
    with pytest.raises(cohere.BadRequestError, match=r"documents\[1\]"):
        client.rerank(model=model, query=SPEED, documents=["a", ""])
    with pytest.raises(cohere.NotFoundError, match="gpt"):
        client.rerank(model="gpt", query=SPEED, documents=CAMELS)


def test_jina_reranks(url: str) -> None:
    """Jina has no client for reranking: its API is called as its documentation shows."""
    body = {"model": "jina-reranker-v2-base-multilingual", "query": SPEED, "top_n": 2, "documents": CAMELS}
    body["return_documents"] = True
    reply = httpx.post(f"{url}/v1/rerank", json=body, headers={"Authorization": "Bearer none"}, trust_env=False).json()
    assert [result["document"]["text"] for result in reply["results"]] == CAMELS[::-1]
    assert reply["usage"]["total_tokens"] > 0


@pytest.mark.parametrize("path", ["", "/embed"])
def test_hugging_face_embeds(url: str, path: str) -> None:
    hub = pytest.importorskip("huggingface_hub")
    client = hub.InferenceClient(model=url + path)
    vectors = client.feature_extraction(TEXTS, normalize=True, truncate=True)
    assert vectors.shape == (2, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    with pytest.raises(hub.errors.HfHubHTTPError, match=r"inputs\[1\]"):
        client.feature_extraction(["a", ""])


@pytest.mark.parametrize("example", EXAMPLES, ids=["openai", "cohere", "hugging-face"])
def test_examples_print_what_the_page_shows(url: str, example: Step) -> None:
    pytest.importorskip(example.code.split()[1])
    code = example.code.replace("http://127.0.0.1:8080", url)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert difference(example.output, done.stdout) is None, done.stderr


def test_the_description_is_valid_openapi(url: str) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(httpx.get(f"{url}/openapi.json", trust_env=False).json())
