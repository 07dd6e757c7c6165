"""What a document brings besides its facets: where they come from, how much was read, and the space they lie in."""

from collections.abc import Callable

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document
from facets.errors import InvalidInputError

OpenEngine = Callable[..., CollectionEngine]
TEXT = "Na\u00efve caf\u00e9s sell tea. Pumps fail."
SPANS = np.array([[0, 21], [22, 33]])


def document(id: str = "a", **changes: object) -> Document:
    values: dict[str, object] = {
        "facet_embeddings": np.eye(2, 32),
        "facet_spans": SPANS,
        "num_tokens": 9,
        "num_read": 7,
    }
    return Document(id=id, text=TEXT, **{**values, **changes})  # type: ignore[arg-type]  # any field


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"facet_spans": np.array([[0, 21]])}, r"documents\[1\].facet_spans"),
        ({"facet_spans": np.array([[0, 21], [22, 34]])}, r"documents\[1\].facet_spans\[1\]"),
        ({"facet_spans": np.array([[-1, 21], [0, 0]])}, r"documents\[1\].facet_spans\[0\]"),
        ({"facet_spans": np.array([[5, 4], [0, 0]])}, r"documents\[1\].facet_spans\[0\]"),
        ({"facet_spans": SPANS.astype(float)}, r"documents\[1\].facet_spans"),
        ({"num_read": 10}, r"documents\[1\].num_read"),
        ({"num_read": -1}, r"documents\[1\].num_read"),
        ({"num_tokens": None}, r"documents\[1\].num_read"),
    ],
)
def test_impossible_spans_and_counts_are_refused(
    engine: CollectionEngine, changes: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInputError, match=field):
        engine.upsert("docs", [document("fine"), document("bad", **changes)])
    assert engine.count("docs").num_documents == 0
