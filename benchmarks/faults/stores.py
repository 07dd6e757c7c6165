"""Every kind of store in one data directory, and all that they say."""

import hashlib
import logging
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from facets_server.documents.stream_store import StreamStore
from numpy.typing import NDArray

from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest
from facets.errors import DamagedError, NotFoundError
from facets.papers.store import AdditionStore
from facets.relations.additions import AddedRelationStore

NUM_FACETS, DIM = 2, 32
_SEARCHED = 8  # documents of a collection that are searched for by their own facets and words

# By kind of thing; a collection is "documents/NAME". Id -> what is known of it.
Content = dict[str, dict[str, object]]


def facets_of(text: str) -> NDArray[np.float32]:
    """The facets of a text, ``[K, D]``: always the same ones."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal((NUM_FACETS, DIM)).astype(np.float32)


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


class Stores:
    """The stores of a data directory, open; folds and saves its indexes after few documents.

    Attributes:
        warnings: What was logged since it was opened.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._handler = _Warnings()
        for name in ("facets", "facets_server"):
            logger = logging.getLogger(name)
            logger.handlers[:] = [self._handler]
            logger.propagate = False
        config = EngineConfig(exact_max_facets=60, snapshot_every_writes=20)
        with ExitStack() as stack:
            self.engine = stack.enter_context(CollectionEngine.open(directory, config))
            self.papers = AdditionStore(directory / "papers" / "toy", "toy")
            stack.callback(self.papers.close)
            self.relations = AddedRelationStore(directory / "relations" / "toy", "toy")
            stack.callback(self.relations.close)
            self.streams = StreamStore(directory / "ingest-streams.sqlite3")
            stack.callback(self.streams.close)
            self._closing = stack.pop_all()

    @property
    def warnings(self) -> list[str]:
        """What was logged since the stores were opened."""
        return self._handler.messages

    def close(self) -> None:
        """Closes all of them."""
        self._closing.close()

    def content(self, tokens: list[str]) -> tuple[Content, set[str]]:
        """Everything they hold, and what of it cannot be read and says so, as ``KIND/ID``.

        Raises:
            AssertionError: Two ways to the same thing disagree.
        """
        content: Content = {
            "papers": {id: paper.title for id, paper in self.papers.content().papers.items()},
            "relations": {relation.name: list(relation.examples) for relation in self.relations.read()},
            "streams": {},
        }
        for token in tokens:
            try:
                found = self.streams.resume(token, collection="a", collection_created="then")
            except NotFoundError:
                continue
            content["streams"][token] = found.last_sequence
        damaged: set[str] = set()
        for info in self.engine.list_collections():
            kind = f"documents/{info.name}"
            content[kind] = self._documents(info.name, kind, damaged)
        return content, damaged

    def _documents(self, name: str, kind: str, damaged: set[str]) -> dict[str, object]:
        found: dict[str, object] = {}
        for id in self._ids(name, kind, damaged):
            if f"{kind}/{id}" in damaged:
                continue
            try:
                [document] = self.engine.get(name, [id], include_facets=True).documents
            except DamagedError:
                damaged.add(f"{kind}/{id}")
                continue
            facets = document.facet_embeddings
            assert facets is not None and np.allclose(facets, facets_of(document.text), atol=0.1), f"facets of {id}"
            found[id] = document.text
        for id in list(found)[:: max(1, len(found) // _SEARCHED)]:
            self._search(name, id, str(found[id]), found)
        return found

    def _ids(self, name: str, kind: str, damaged: set[str]) -> list[str]:
        """Ids by listing, page by page of one, so that a damaged one costs no other."""
        try:
            return [document.id for document in self._pages(name)]
        except DamagedError:
            pool = [f"d{number}" for number in range(200)]
            return [id for id in pool if self._is_there(name, id, lambda id: damaged.add(f"{kind}/{id}"))]

    def _pages(self, name: str) -> list[Document]:
        documents, token = list[Document](), ""
        while True:
            page = self.engine.list_documents(name, page_size=100, page_token=token)
            documents += page.documents
            token = page.next_page_token
            if not token:
                return documents

    def _is_there(self, name: str, id: str, tell: Callable[[str], None]) -> bool:
        try:
            return not self.engine.get(name, [id]).missing_ids
        except DamagedError:
            tell(id)
            return True

    def _search(self, name: str, id: str, text: str, found: dict[str, object]) -> None:
        hits = self.engine.search(name, SearchRequest(facets=facets_of(text)[None], top_k=1, exact=True)).hits[0]
        assert hits and found.get(hits[0].id, text) == text, f"facets of {id} find {hits}"
        hits = self.engine.search(name, SearchRequest(texts=[text.split()[-1]], mode="lexical", top_k=1)).hits[0]
        assert hits and found.get(hits[0].id, text) == text, f"words of {id} find {hits}"
