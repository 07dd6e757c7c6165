"""Documents with facets and payload as a Parquet file, and back (extra ``parquet``).

Example:
    >>> from facets_client import FacetsClient
    >>> from facets_client.adapters.parquet import read_parquet, write_parquet
    >>> client = FacetsClient()
    >>> write_parquet("wiki.parquet", client.list_documents("wiki", include_facets=True))  # doctest: +SKIP
    >>> acks = list(client.upsert_stream("copy", read_parquet("wiki.parquet")))  # doctest: +SKIP
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets_client.adapters import require
from facets_client.adapters.exported import batches, from_json, from_spans, to_json, to_spans, token_stats, whole
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
        pa.field("part_facets", pa.list_(pa.int32()), nullable=False),  # how many are each part's; none: it is one
        pa.field("tokens", pa.list_(pa.int64())),  # read, unknown, of the text; null: nobody counted
    ]
)
_OTHERS = SCHEMA.remove(SCHEMA.names.index("facets"))
_ROWS = 256  # documents of one row group, which is what lies in memory


def write_parquet(path: str | Path, documents: Iterable[Document], *, about: Mapping[str, str] | None = None) -> int:
    """Writes documents, as the schema ``SCHEMA`` says; the file is whole or not there.

    Args:
        path: The file; an existing one is replaced.
        documents: With or without facets: ``client.list_documents(name, include_facets=True)``.
        about: Kept in the file beside them.

    Returns:
        How many.
    """
    num_documents = 0
    with whole(path) as partial, pq.ParquetWriter(partial, SCHEMA, compression="zstd") as writer:
        for batch in batches(documents, _ROWS):
            writer.write_table(_to_table(batch))
            num_documents += len(batch)
        writer.add_key_value_metadata(dict(about or {}))
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
            facets = batch.column("facets")
            yield from map(_to_document, batch.drop_columns(["facets"]).to_pylist(), map(_to_array, facets))


def _to_table(documents: Sequence[Document]) -> pa.Table:
    table = pa.Table.from_pylist(list(map(_to_row, documents)), schema=_OTHERS)
    given = [None if one.facet_embeddings is None else _as_float32(one.facet_embeddings) for one in documents]
    held = [one for one in given if one is not None]
    widths = np.concatenate([[0], *([one.shape[1]] * len(one) for one in held)]).cumsum()
    numbers = np.concatenate([np.empty(0, np.float32), *(one.ravel() for one in held)])
    vectors = pa.ListArray.from_arrays(pa.array(widths, pa.int32()), pa.array(numbers))
    counts = np.cumsum([0, *(0 if one is None else len(one) for one in given)])
    missing = pa.array([one is None for one in given])
    facets = pa.ListArray.from_arrays(pa.array(counts, pa.int32()), vectors, mask=missing)
    return table.add_column(SCHEMA.names.index("facets"), SCHEMA.field("facets"), facets).cast(SCHEMA)


def _as_float32(facets: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.ascontiguousarray(facets, dtype=np.float32)


def _to_array(facets: pa.ListScalar) -> NDArray[np.float32] | None:
    if not facets.is_valid:
        return None
    numbers = facets.values.flatten().to_numpy()
    return numbers.reshape(len(facets.values), -1) if len(numbers) else np.empty((0, 0), np.float32)


def _to_row(document: Document) -> dict[str, object]:
    stats = document.token_stats
    return {
        "id": document.id,
        "text": document.text,
        "payload": to_json(dict(document.payload)),
        "spans": from_spans(document.facet_spans),
        "part_facets": list(document.part_facets),
        "tokens": None if stats is None else [stats.num_tokens, stats.num_unknown_tokens, stats.num_tokens_in_text],
    }


def _to_document(row: dict[str, Any], facets: NDArray[np.float32] | None) -> Document:
    return Document(
        id=row["id"],
        text=row["text"],
        payload=from_json(row["payload"]),
        facet_embeddings=facets,
        facet_spans=to_spans(row["spans"]),
        part_facets=tuple(row["part_facets"]),
        token_stats=None if row["tokens"] is None else token_stats(*row["tokens"]),
    )
