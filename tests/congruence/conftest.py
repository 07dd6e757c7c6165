"""Two engines of the same writes: the reference, and each of the combinations."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from congruence.combinations import COMBINATIONS, REFERENCE, Combination
from congruence.corpus import DIM, K, make_corpus

from facets.documents import CollectionEngine, Document, EngineConfig
from facets.index import qdrant

NAME = "docs"
Open = Callable[..., CollectionEngine]


@dataclass(frozen=True)
class Pair:
    """The same collection twice."""

    expected: CollectionEngine
    found: CollectionEngine
    approximate: bool

    def both(self, act: Callable[[CollectionEngine], object]) -> tuple[object, object]:
        """Does the same to both; returns what both say."""
        return act(self.expected), act(self.found)

    def agree(self, act: Callable[[CollectionEngine], object]) -> None:
        """Does the same to both, which must say the same."""
        expected, found = self.both(act)
        assert found == expected

    def maintain(self) -> None:
        self.found.maintain()


def open_engine(folder: Path, combination: Combination) -> CollectionEngine:
    settings = {"background": False, **combination.store(), **combination.index}
    return CollectionEngine.open(folder, EngineConfig(**settings))  # type: ignore[arg-type]  # any setting


@pytest.fixture
def url() -> str:
    return postgres_server.server().new_database()


@pytest.fixture
def open_shared(url: str, tmp_path: Path) -> Iterator[Open]:
    """Opens servers' engines by name, all on one PostgreSQL."""
    with ExitStack() as opened:

        def open_(name: str, **settings: object) -> CollectionEngine:
            config = EngineConfig(**{"store": url, "background": False, "exact_max_facets": 150, **settings})  # type: ignore[arg-type]
            return opened.enter_context(CollectionEngine.open(tmp_path / name, config))

        yield open_


@pytest.fixture(scope="session", autouse=True)
def qdrant_in_memory() -> Iterator[None]:
    """Gives the address qdrant://memory a client in local mode."""
    connect = qdrant.connect

    def connect_or_make(url: str, timeout_s: int) -> Any:
        if url != "qdrant://memory":
            return connect(url, timeout_s)
        from qdrant_client import QdrantClient

        return QdrantClient(":memory:")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(qdrant, "connect", connect_or_make)
        yield


@pytest.fixture(scope="session")
def corpus() -> list[Document]:
    return make_corpus()


@pytest.fixture(scope="module", params=COMBINATIONS)
def combination(request: pytest.FixtureRequest) -> Combination:
    return COMBINATIONS[request.param]


@pytest.fixture(scope="module")
def filled(
    combination: Combination, corpus: list[Document], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Both with the corpus, for tests that only read."""
    yield from _pair(combination, corpus, tmp_path_factory.mktemp("filled"))


@pytest.fixture
def pair(combination: Combination, corpus: list[Document], tmp_path: Path) -> Iterator[Pair]:
    """Both with the first 120 documents, for tests that write."""
    yield from _pair(combination, corpus[:120], tmp_path)


def _pair(combination: Combination, documents: list[Document], folder: Path) -> Iterator[Pair]:
    with ExitStack() as opened:
        engines = [
            opened.enter_context(open_engine(folder / name, one))
            for name, one in (("expected", REFERENCE), ("found", combination))
        ]
        pair = Pair(*engines, approximate=combination.approximate)
        pair.agree(lambda engine: _fill(engine, documents))
        pair.maintain()
        yield pair


def _fill(engine: CollectionEngine, documents: list[Document]) -> list[object]:
    """Some in the index, some in its tail, some replaced, some gone."""
    engine.create_collection(NAME, model="toy", model_revision="1", num_facets=K, dim=DIM)
    most = len(documents) * 4 // 5
    said: list[object] = [engine.upsert(NAME, documents[:most])]
    engine.maintain()
    said.append(engine.upsert(NAME, documents[most:]))
    said.append(engine.upsert(NAME, documents[10:20]))
    said.append(engine.delete(NAME, ids=[document.id for document in documents[5:8]]))
    return said
