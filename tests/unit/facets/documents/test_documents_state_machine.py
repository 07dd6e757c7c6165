"""Random writes, searches and restarts against a dict: what one would say, the other says."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from facets.documents import CollectionEngine, Document, DocumentPart, EngineConfig, Equals, SearchRequest

DIM = 32
IDS = st.sampled_from([f"d{number}" for number in range(12)])
TEXTS = st.integers(0, 30)


def facets_of(number: int) -> np.ndarray:
    """Two facets of a text, always the same, unlike those of any other text."""
    return np.random.default_rng(number).standard_normal((2, DIM)).astype(np.float32)


def document_of(id: str, number: int) -> Document:
    """One to four parts, all of which hold the word of the number; the first one has its facets."""
    counts = 1 + number % 4
    texts = [f"word{number} part{part}. " for part in range(counts)]
    ends = np.cumsum([len(text) for text in texts]).tolist()
    facets = [facets_of(number), *(facets_of(1000 + 4 * number + part) for part in range(1, counts))]
    return Document(
        id=id,
        text="".join(texts),
        facet_embeddings=np.concatenate(facets),
        payload={"number": number},
        parts=[DocumentPart(start=end - len(text), end=end, page=end) for text, end in zip(texts, ends, strict=True)],
        part_facets=[2] * counts,
    )


class EngineMachine(RuleBasedStateMachine):
    """A collection beside a dict of ids and numbers of texts."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.documents: dict[str, int] = {}
        self.revision = 0
        self.open()
        self.engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=DIM)

    def open(self) -> None:
        # Folds after a handful of documents
        self.engine = CollectionEngine.open(
            self.folder / "data", EngineConfig(background=False, exact_max_facets=8, snapshot_every_writes=4)
        )

    @rule(documents=st.dictionaries(IDS, TEXTS, max_size=6))
    def upsert(self, documents: dict[str, int]) -> None:
        batch = [document_of(id, number) for id, number in documents.items()]
        result = self.engine.upsert("docs", batch)
        assert result.num_removed == len(documents.keys() & self.documents.keys())
        assert result.num_added - result.num_removed == len(documents.keys() - self.documents.keys())
        self.documents |= documents

    @rule(ids=st.sets(IDS, max_size=4))
    def delete(self, ids: set[str]) -> None:
        deleted = self.engine.delete("docs", ids=sorted(ids)).num_deleted
        assert deleted == len(ids & self.documents.keys())
        for id in ids:
            self.documents.pop(id, None)

    @rule(number=TEXTS)
    def delete_by_filter(self, number: int) -> None:
        self.engine.delete("docs", where=Equals("number", number))
        self.documents = {id: held for id, held in self.documents.items() if held != number}

    @rule()
    def maintain(self) -> None:
        self.engine.maintain()

    @rule()
    def restart(self) -> None:
        self.engine.close()
        self.open()

    @rule()
    def delete_and_make_again(self) -> None:
        assert self.engine.delete_collection("docs").num_deleted == len(self.documents)
        self.engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=DIM)
        self.documents = {}

    @rule(number=TEXTS, exact=st.booleans())
    def search(self, number: int, exact: bool) -> None:
        wanted = sorted(id for id, held in self.documents.items() if held == number)
        hits = self.engine.search("docs", SearchRequest(facets=facets_of(number)[None], top_k=12, exact=exact)).hits[0]
        assert [hit.id for hit in hits if hit.score > 0.99] == wanted
        found = self.engine.search("docs", SearchRequest(texts=[f"word{number}"], mode="lexical", top_k=12)).hits[0]
        assert sorted(hit.id for hit in found) == wanted
        filtered = self.engine.search(
            "docs", SearchRequest(facets=facets_of(0)[None], top_k=12, where=Equals("number", number))
        ).hits[0]
        assert sorted(hit.id for hit in filtered) == wanted

    @invariant()
    def holds_what_was_written(self) -> None:
        assert self.engine.revision >= self.revision
        self.revision = self.engine.revision
        listed = self.engine.list_documents("docs").documents
        assert {document.id: document.payload["number"] for document in listed} == self.documents
        for document in listed:
            assert document.text == document_of(document.id, self.documents[document.id]).text
        num_parts = sum(1 + number % 4 for number in self.documents.values())
        assert self.engine.get_collection("docs").num_parts == num_parts
        assert self.engine.count("docs").num_documents == len(self.documents)

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.engine.close()
            shutil.rmtree(self.folder)


TestEngine = EngineMachine.TestCase
TestEngine.settings = settings(max_examples=8, stateful_step_count=20, suppress_health_check=list(HealthCheck))
