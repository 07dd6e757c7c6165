"""Documents with facets and payload as a Parquet file, and back (extra ``parquet``).

Example:
    >>> from facets_client import FacetsClient
    >>> from facets_client.adapters.parquet import read_parquet, write_parquet
    >>> client = FacetsClient()
    >>> write_parquet("wiki.parquet", client.list_documents("wiki", include_facets=True))  # doctest: +SKIP
    >>> acks = list(client.upsert_stream("copy", read_parquet("wiki.parquet")))  # doctest: +SKIP
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets_client.core.extras import require_extra
from facets_client.generated.types import Document, Span, TokenStats
from facets_client.load.outputs import whole_file

require_extra("parquet", "pyarrow")
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

# Facets are lists, not vectors of a fixed width, so that documents without facets fit in.
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("payload", pa.string(), nullable=False),  # JSON
        pa.field("facets", pa.list_(pa.list_(pa.float32()))),  # [K][D]; null: without facets
        pa.field("spans", pa.list_(pa.list_(pa.int32())), nullable=False),  # [start, end] of each facet, or []
        pa.field("part_facets", pa.list_(pa.int32()), nullable=False),  # facets of each part; empty: one part
        pa.field("source", pa.string(), nullable=False),
        pa.field("tokens", pa.list_(pa.int64())),  # token counts: read, unknown, in the text; null: not counted
    ]
)
_ROWS_PER_GROUP = 256  # documents held in memory


def write_parquet(path: str | Path, documents: Iterable[Document], *, metadata: Mapping[str, str] | None = None) -> int:
    """Writes documents, with or without facets, with the schema ``SCHEMA`` and returns their number.

    The file appears when it is complete and replaces an existing one. ``metadata`` is stored in its footer.
    """
    remaining = iter(documents)
    num_documents = 0
    with whole_file(path) as partial, pq.ParquetWriter(partial, SCHEMA, compression="zstd") as writer:
        while batch := list(islice(remaining, _ROWS_PER_GROUP)):
            writer.write_table(pa.Table.from_pylist(list(map(_to_row, batch)), SCHEMA))
            num_documents += len(batch)
        writer.add_key_value_metadata(dict(metadata or {}))
    return num_documents


def read_parquet(path: str | Path) -> Iterator[Document]:
    """Yields the documents of a file that ``write_parquet`` wrote, bit for bit; ValueError if it lacks a column."""
    with pq.ParquetFile(path) as file:
        missing = [name for name in SCHEMA.names if name not in file.schema_arrow.names]
        if missing:
            raise ValueError(f"{path} has no column {', '.join(missing)}, expected {', '.join(SCHEMA.names)}")
        for batch in file.iter_batches(batch_size=_ROWS_PER_GROUP, columns=SCHEMA.names):
            facets = batch.column("facets")
            yield from map(_to_document, batch.drop_columns(["facets"]).to_pylist(), map(_to_array, facets))


def _to_array(facets: pa.ListScalar) -> NDArray[np.float32] | None:
    if not facets.is_valid:
        return None
    numbers = facets.values.flatten().to_numpy()
    return numbers.reshape(len(facets.values), -1) if len(numbers) else np.empty((0, 0), np.float32)


def _to_row(document: Document) -> dict[str, object]:
    facets, stats = document.facet_embeddings, document.token_stats
    return {
        "id": document.id,
        "text": document.text,
        # Sorted, so that equal payloads give equal files.
        "payload": json.dumps(dict(document.payload), ensure_ascii=False, separators=(",", ":"), sort_keys=True),
        "facets": None if facets is None else list(facets.astype(np.float32)),
        "spans": [[span.start, span.end] if span else [] for span in document.facet_spans],
        "part_facets": list(document.part_facets),
        "source": document.source,
        "tokens": None if stats is None else [stats.num_tokens, stats.num_unknown_tokens, stats.num_tokens_in_text],
    }


def _to_document(row: dict[str, Any], facets: NDArray[np.float32] | None) -> Document:
    stats = None
    if row["tokens"] is not None:
        num_read, num_unknown, num_in_text = row["tokens"]
        stats = TokenStats(num_read, num_unknown, num_read < num_in_text, num_in_text)
    return Document(
        id=row["id"],
        text=row["text"],
        payload=json.loads(row["payload"]),
        facet_embeddings=facets,
        facet_spans=tuple(Span(span[0], span[1]) if span else None for span in row["spans"]),
        part_facets=tuple(row["part_facets"]),
        token_stats=stats,
        source=row["source"],
    )
