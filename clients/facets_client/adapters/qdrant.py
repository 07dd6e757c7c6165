"""Documents with facets and payload into a Qdrant collection, and back (extra ``qdrant``).

A document becomes one point with a multi-vector, its facets of length 1, compared by MaxSim over dot products: what
Facets itself ranks by in mode ``facets``. The lengths of a query's facets are their weights; Qdrant's cosine would make
them all equal.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from facets_client.adapters import require
from facets_client.adapters.exported import batches, facets_of, from_spans, join_norms, split_norms, to_spans
from facets_client.documents.types import Document

require("qdrant")
from qdrant_client import QdrantClient, models  # noqa: E402

VECTOR = "facets"  # name of the points' vector
_POINTS = 64  # of one request


def write_qdrant(qdrant: QdrantClient, collection: str, documents: Iterable[Document]) -> int:
    """Writes documents as points, replacing those of the same id; makes the collection where it is not there.

    A point has the payload ``id``, ``text``, ``payload`` (filters name its fields ``payload.year``), ``norms`` and
    ``spans``; its own id is made of the document's.

    Args:
        qdrant: The other store.
        collection: Its collection.
        documents: With facets: ``client.list_documents(name, include_facets=True)``.

    Returns:
        How many.

    Raises:
        ValueError: A document has no facets.
    """
    num_documents = 0
    for batch in batches(documents, _POINTS):
        points = list(map(_to_point, batch))
        if not num_documents and not qdrant.collection_exists(collection):
            _make(qdrant, collection, facets_of(batch[0]).shape[1])
        qdrant.upsert(collection, points=points, wait=True)
        num_documents += len(batch)
    return num_documents


def read_qdrant(qdrant: QdrantClient, collection: str) -> Iterator[Document]:
    """The documents of a collection that ``write_qdrant`` filled, in Qdrant's order; facets as precise as float32."""
    offset = None
    while True:
        points, offset = qdrant.scroll(
            collection, limit=_POINTS, offset=offset, with_payload=True, with_vectors=[VECTOR]
        )
        for point in points:
            yield _to_document(point.payload or {}, cast("Mapping[str, object]", point.vector)[VECTOR])
        if offset is None:
            return


def _make(qdrant: QdrantClient, collection: str, dim: int) -> None:
    maximum = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    vector = models.VectorParams(size=dim, distance=models.Distance.DOT, multivector_config=maximum)
    qdrant.create_collection(collection, vectors_config={VECTOR: vector})


def _to_point(document: Document) -> models.PointStruct:
    units, norms = split_norms(facets_of(document))
    payload = {
        "id": document.id,
        "text": document.text,
        "payload": dict(document.payload),
        "norms": norms.tolist(),
        "spans": from_spans(document.facet_spans),
    }
    point_id = str(uuid.uuid5(uuid.NAMESPACE_OID, document.id))
    return models.PointStruct(id=point_id, vector={VECTOR: units.tolist()}, payload=payload)


def _to_document(payload: Mapping[str, object], vector: object) -> Document:
    norms = np.array(payload["norms"], dtype=np.float32)
    return Document(
        id=str(payload["id"]),
        text=str(payload["text"]),
        payload=cast("Mapping[str, object]", payload["payload"]),
        facet_embeddings=join_norms(np.array(vector, dtype=np.float32), norms),
        facet_spans=to_spans(cast("Sequence[Sequence[int]]", payload["spans"])),
    )
