"""Collections of late-interaction encoders in every layout, against sentence-transformers itself."""

from pathlib import Path

import numpy as np
import pytest
from facets_lab.documents.collection import indexed

import facets
from facets.model import PassageModel

sentence_transformers = pytest.importorskip("sentence_transformers", reason="the backbone extra is not installed")
from tiny_encoders import LATE_LAYOUTS, tiny_late_interaction  # noqa: E402

TEXTS = [
    "A man is lifting weights in a garage.",
    "The quick brown fox jumps over the lazy dog!",
    "Taxes are due in April, 2026.",
    "Pack my box with jugs.",
]


@pytest.mark.parametrize("layout", LATE_LAYOUTS)
def test_a_search_finds_what_the_model_itself_finds(layout: str, tmp_path: Path) -> None:
    folder = tiny_late_interaction(tmp_path / "late", layout=layout)
    peer = sentence_transformers.MultiVectorEncoder(str(folder), device="cpu", local_files_only=True)
    theirs = np.asarray(peer.similarity(peer.encode_query(TEXTS), peer.encode_document(TEXTS))) / 16
    model = facets.load(f"sentence-transformers:{folder}", PassageModel)
    with indexed(model, {str(row): text for row, text in enumerate(TEXTS)}) as collection:
        found = collection.search(TEXTS, ["facets"], top_k=4)["facets"]
    scores = np.array([[{hit.id: hit.score for hit in hits}[str(row)] for row in range(4)] for hits in found])
    assert [hits[0].id for hits in found] == [str(best) for best in theirs.argmax(axis=1)] == ["0", "1", "2", "3"]
    assert np.corrcoef(scores.ravel(), theirs.ravel())[0, 1] > 0.9
    assert (scores < theirs + 0.02).all()  # means of two vectors are at most as near
