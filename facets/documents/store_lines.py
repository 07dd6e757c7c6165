"""An encoded batch as lines of the store's tables."""

import sqlite3
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.documents.encoding import EncodedBatch, document_checksum, facets_checksum
from facets.documents.facet_codes import numbered_parts, split_codes, write_codes
from facets.documents.lexical_terms import write_terms
from facets.documents.records import CollectionRecord

__all__ = ["BatchLines"]


class BatchLines:
    """An encoded batch as lines, made before the transaction begins."""

    def __init__(self, batch: EncodedBatch) -> None:
        documents = list(zip(batch.ids, batch.payloads, batch.texts, batch.readings, strict=True))
        norms = [line.tobytes() for line in batch.norms.astype("<f4", copy=False)]
        codes = write_codes(batch.codes, batch.norms)
        spans = [None if one is None else one.astype("<u4").tobytes() for one in batch.spans]
        self._documents = [
            (id, document_checksum(id, payload, text, reading), payload, text, *reading)
            for id, payload, text, reading in documents
        ]
        self._terms = [write_terms(counted) for counted in batch.terms]
        lines = zip(norms, codes, spans, strict=True)
        self._facets = [_facet_lines(*line) for line in lines]

    def insert(
        self, connection: sqlite3.Connection, record: CollectionRecord, revisions: Sequence[int | None]
    ) -> NDArray[np.int64]:
        """Inserts document i under ``revisions[i]``, or leaves it out where that is None; returns the new rows."""
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'documents'").fetchone()
        first = (last[0] if last else 0) + 1
        chosen = [place for place, revision in enumerate(revisions) if revision is not None]
        rows = range(first, first + len(chosen))
        connection.executemany(
            "INSERT INTO documents (row, collection, revision, id, checksum, payload, text, num_tokens, num_read) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (row, record.number, revisions[place], *self._documents[place])
                for row, place in zip(rows, chosen, strict=True)
            ),
        )
        connection.executemany(
            "INSERT INTO facets (row, checksum, norms, units, spans) VALUES (?, ?, ?, ?, ?)",
            ((row, *self._facets[place][0]) for row, place in zip(rows, chosen, strict=True)),
        )
        connection.executemany(
            "INSERT INTO facet_parts (part, units) VALUES (?, ?)",
            (
                line
                for row, place in zip(rows, chosen, strict=True)
                for line in numbered_parts(row, self._facets[place][1])
            ),
        )
        connection.executemany(
            "INSERT INTO terms (row, terms) VALUES (?, ?)",
            ((row, self._terms[place]) for row, place in zip(rows, chosen, strict=True)),
        )
        return np.arange(rows.start, rows.stop)


def _facet_lines(
    norms: bytes, codes: bytes, spans: bytes | None
) -> tuple[tuple[int, bytes, bytes, bytes | None], list[bytes]]:
    """The line of a document in the table of facets, and its further parts."""
    first, parts = split_codes(codes, len(norms) + len(spans or b""))
    return (facets_checksum(norms, codes, spans), norms, first, spans), parts
