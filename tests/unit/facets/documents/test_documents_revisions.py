"""Collections keep to themselves: counts, revisions, filters and retries of one know nothing of another's writes."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from facets.documents import CollectionEngine, Document, Equals, SearchRequest
from facets.documents.view import StoreView
from facets.index.live import LiveIndex

MakeDocuments = Callable[..., list[Document]]
QUERY: NDArray[np.float32] = np.ones((1, 2, 32), dtype=np.float32)


@pytest.fixture
def two(engine: CollectionEngine, make_documents: MakeDocuments) -> CollectionEngine:
    """An engine with 20 documents in ``docs`` and an empty ``other``."""
    engine.create_collection("other", model="toy", model_revision="1", num_facets=2, dim=32)
    engine.upsert("docs", make_documents(20))
    return engine


def test_writes_to_another_collection_leave_remembered_filters(
    two: CollectionEngine, make_documents: MakeDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated = []
    rows = StoreView.rows
    monkeypatch.setattr(StoreView, "rows", lambda *args: evaluated.append(args) or rows(*args))
    for number in range(3):
        assert len(two.search("docs", SearchRequest(facets=QUERY, top_k=20, where=Equals("even", True))).hits[0]) == 10
        two.upsert("other", make_documents(1, prefix=f"o{number}"))
    assert len(evaluated) == 1
    two.upsert("docs", make_documents(22))
    assert len(two.search("docs", SearchRequest(facets=QUERY, top_k=20, where=Equals("even", True))).hits[0]) == 11
    assert len(evaluated) == 2


@pytest.mark.parametrize(("written", "tries"), [("other", 1), ("docs", 3)])
def test_only_writes_to_the_same_collection_make_a_search_try_again(
    two: CollectionEngine,
    make_documents: MakeDocuments,
    monkeypatch: pytest.MonkeyPatch,
    written: str,
    tries: int,
) -> None:
    searches = []
    search = LiveIndex.search

    def search_after_a_write(live: LiveIndex, *args: object, **options: object) -> object:
        searches.append(live)
        if len(searches) < 3:
            two.upsert(written, make_documents(4))
        return search(live, *args, **options)  # type: ignore[arg-type]  # passed through

    monkeypatch.setattr(LiveIndex, "search", search_after_a_write)
    found = two.search("docs", SearchRequest(facets=QUERY, top_k=30, where=Equals("even", True)))
    assert len(found.hits[0]) == 10
    assert len(searches) == tries
