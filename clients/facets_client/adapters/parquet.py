"""Documents with facets and payload as a Parquet file, and back (extra ``parquet``).

Example:
    >>> from facets_client import FacetsClient
    >>> from facets_client.adapters.parquet import read_parquet, write_parquet
    >>> client = FacetsClient()
    >>> write_parquet("wiki.parquet", client.list_documents("wiki", include_facets=True))  # doctest: +SKIP
    >>> acks = list(client.upsert_stream("copy", read_parquet("wiki.parquet")))  # doctest: +SKIP
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from facets_client.adapters import require
from facets_client.adapters.exported import batches, from_json, from_spans, to_json, to_spans, whole
from facets_client.documents.types import Document

require("parquet")
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

# A facet is a list and not a vector of fixed width, so that documents without facets fit in.
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("payload", pa.string(), nullable=False),  # JSON
        pa.field("facets", pa.list_(pa.list_(pa.float32()))),  # [K][D]; null: without
        pa.field("spans", pa.list_(pa.list_(pa.int32())), nullable=False),  # [start, end] a facet, or []
    ]
)
_ROWS = 256  # documents of one row group, which is what lies in memory


def write_parquet(path: str | Path, documents: Iterable[Document]) -> int:
    """Writes documents, as the schema ``SCHEMA`` says; the file is whole or not there.

    Args:
        path: The file; an existing one is replaced.
        documents: With or without facets: ``client.list_documents(name, include_facets=True)``.

    Returns:
        How many.
    """
    num_documents = 0
    with whole(path) as partial, pq.ParquetWriter(partial, SCHEMA, compression="zstd") as writer:
        for batch in batches(documents, _ROWS):
            writer.write_table(pa.Table.from_pylist(list(map(_to_row, batch)), schema=SCHEMA))
            num_documents += len(batch)
    return num_documents


def read_parquet(path: str | Path) -> Iterator[Document]:
    """The documents of a file that ``write_parquet`` wrote, equal bit by bit; one row group lies in memory.

    Raises:
        ValueError: The file lacks a column.
    """
    with pq.ParquetFile(path) as file:
        missing = [name for name in SCHEMA.names if name not in file.schema_arrow.names]
        if missing:
            raise ValueError(f"{path} has no column {', '.join(missing)}, expected {', '.join(SCHEMA.names)}")
        for batch in file.iter_batches(batch_size=_ROWS, columns=SCHEMA.names):
            yield from map(_to_document, batch.to_pylist())


def _to_row(document: Document) -> dict[str, object]:
    facets = document.facet_embeddings
    return {
        "id": document.id,
        "text": document.text,
        "payload": to_json(dict(document.payload)),
        "facets": None if facets is None else list(np.asarray(facets, dtype=np.float32)),
        "spans": from_spans(document.facet_spans),
    }


def _to_document(row: dict[str, object]) -> Document:
    facets, spans = row["facets"], row["spans"]
    assert isinstance(spans, Sequence)
    return Document(
        id=str(row["id"]),
        text=str(row["text"]),
        payload=from_json(str(row["payload"])),
        facet_embeddings=None if facets is None else np.array(facets, dtype=np.float32),
        facet_spans=to_spans(spans),
    )
