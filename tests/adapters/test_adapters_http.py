"""OpenAI's own client against the HTTP gateway, and the description of its routes before a validator."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from integration.server_process import ServerProcess, free_port

openai = pytest.importorskip("openai")
openapi_spec_validator = pytest.importorskip("openapi_spec_validator")
pytest.importorskip("starlette")

MODEL = "facets-passages-small-en"
TEXTS = ["A dog barks at the moon.", "The bank raised its rates."]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    models = Path(__file__).parents[2] / "models"
    folder = tmp_path_factory.mktemp("http") / "data"
    with ServerProcess(folder, models / MODEL, arguments=("--http-port", str(port))):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def client(url: str) -> Iterator[object]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_vectors_have_unit_length_and_are_the_same_in_both_encodings(client) -> None:
    as_base64 = client.embeddings.create(model=MODEL, input=TEXTS)
    as_numbers = client.embeddings.create(model=MODEL, input=TEXTS, encoding_format="float")
    found = np.array([entry.embedding for entry in as_base64.data])
    np.testing.assert_allclose(found, np.array([entry.embedding for entry in as_numbers.data]), atol=2e-2)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-3)
    assert as_base64.usage.prompt_tokens > len(TEXTS)


def test_facets_come_in_a_field_of_our_own(client) -> None:
    reply = client.embeddings.create(model=MODEL, input=TEXTS, encoding_format="float", extra_body={"facets": True})
    assert len(reply.data[0].facets[0]) == len(reply.data[0].embedding)
    assert reply.data[0].facet_spans


def test_models_are_listed(client) -> None:
    assert MODEL in [model.id for model in client.models.list()]


def test_mistakes_raise_the_errors_that_users_of_the_client_know(client) -> None:
    with pytest.raises(openai.NotFoundError, match="gpt"):
        client.embeddings.create(model="gpt", input=TEXTS)
    with pytest.raises(openai.BadRequestError, match=r"input\[1\]"):
        client.embeddings.create(model=MODEL, input=["a", ""])
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        client.embeddings.create(model=MODEL, input=TEXTS, dimensions=7)
    with pytest.raises(openai.BadRequestError, match="token ids"):
        client.embeddings.create(model=MODEL, input=[[1, 2, 3]])


def test_the_description_is_valid_openapi(url: str) -> None:
    openapi_spec_validator.validate(httpx.get(f"{url}/openapi.json", trust_env=False).json())
