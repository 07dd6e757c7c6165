"""A real server with the small model of passages, and a collection of the samples."""

import json
from collections.abc import Iterator

import pytest
from facets_client import Document, FacetsClient
from integration.server_process import ROOT, ServerProcess

MODEL = ROOT / "models" / "facets-passages-small-en"
NUM_DOCUMENTS = 24


@pytest.fixture(scope="session")
def documents() -> list[Document]:
    lines = (ROOT / "samples" / "wikipedia.jsonl").read_text(encoding="utf-8").splitlines()[:NUM_DOCUMENTS]
    records = [json.loads(line) for line in lines]
    return [Document(record.pop("id"), record.pop("text"), record) for record in records]


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ServerProcess(tmp_path_factory.mktemp("adapters") / "data", MODEL) as server:
        yield server.target


@pytest.fixture(scope="session")
def client(target: str, documents: list[Document]) -> Iterator[FacetsClient]:
    """Of a server that has the collection ``wiki``."""
    with FacetsClient(target) as client:
        client.create_collection("wiki")
        client.add(documents, collection="wiki")
        yield client
