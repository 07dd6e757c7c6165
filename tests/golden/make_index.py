"""Writes the golden data directory of a format version; run once per version, never to mend a test.

python tests/golden/make_index.py index_v1
"""

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest

HERE = Path(__file__).resolve().parent


def main(version: str) -> None:
    """Writes ``directory/`` and ``expected.json`` into the folder of the version, which must be new."""
    folder = HERE / version
    folder.mkdir()
    rng = np.random.default_rng(1)
    facets = rng.standard_normal((60, 2, 32)).astype(np.float32)
    queries = rng.standard_normal((3, 2, 32)).astype(np.float32)
    documents = [
        Document(
            id=f"d{number:02}",
            text=f"Text {number}: na\u00efve caf\u00e9",
            facet_embeddings=facets[number],
            payload={"number": number, "tags": ["even" if number % 2 == 0 else "odd"], "nothing": None},
            facet_spans=np.array([[0, 4], [5, 7]]),
            num_tokens=number + 4,
            num_read=number + 3,
        )
        for number in range(60)
    ]
    config = EngineConfig(background=False, exact_max_facets=0)
    with CollectionEngine.open(folder / "directory", config) as engine:
        engine.create_collection("golden", model="toy", model_revision="1", num_facets=2, dim=32, space="toys")
        engine.upsert("golden", documents[:50])
        engine.maintain()
        engine.delete("golden", ids=["d07"])
        engine.upsert("golden", [*documents[50:], documents[3]])
        found = [best_pairs(engine, query) for query in queries]
        expected = {
            "revision": engine.revision,
            "queries": queries.tolist(),
            "hits": found,
            "d05": {"text": documents[5].text, "payload": documents[5].payload, "facets": facets[5].tolist()},
        }
    (folder / "directory" / "lock").unlink()
    (folder / "expected.json").write_text(json.dumps(expected) + "\n", encoding="utf-8")


def best_pairs(engine: CollectionEngine, query: NDArray[np.float32]) -> list[list[object]]:
    """The five best documents by the closest pair of facets: id, cosine, facet of the query, of the document."""
    found = engine.search("golden", SearchRequest(facets=query[:, None, :], top_k=5, exact=True))
    lines = {}
    for facet, hits in enumerate(found.hits):
        for hit in hits:
            line = [hit.id, hit.score, facet, hit.evidence[0].second_facet]
            if hit.id not in lines or hit.score > lines[hit.id][1]:
                lines[hit.id] = line
    return sorted(lines.values(), key=lambda line: -line[1])[:5]


if __name__ == "__main__":
    main(sys.argv[1])
