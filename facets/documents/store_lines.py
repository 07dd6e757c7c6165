"""An encoded batch as lines of the store's tables."""

import sqlite3
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.documents.encoding import EncodedBatch
from facets.documents.facet_codes import numbered_parts, split_codes, write_codes
from facets.documents.lexical_terms import write_terms
from facets.documents.records import CollectionRecord
from facets.documents.row_checksums import document_checksum, facets_checksum, placed

__all__ = ["BatchLines"]


class BatchLines:
    """An encoded batch as lines, made before the transaction begins."""

    def __init__(self, batch: EncodedBatch) -> None:
        documents = list(zip(batch.ids, batch.payloads, batch.texts, batch.readings, strict=True))
        norms = [line.tobytes() for line in np.split(batch.norms.astype("<f4", copy=False), batch.starts[1:-1])]
        codes = write_codes(batch.codes, batch.norms, batch.starts)
        spans = [None if one is None else one.astype("<u4").tobytes() for one in batch.spans]
        self._checksums = [document_checksum(id, payload, text, reading) for id, payload, text, reading in documents]
        self._documents = [(id, payload, text, *reading) for id, payload, text, reading in documents]
        self._terms = [write_terms(counted) for counted in batch.terms]
        lines = zip(norms, codes, spans, strict=True)
        self._facets = [_facet_lines(*line) for line in lines]

    def insert(
        self, connection: sqlite3.Connection, record: CollectionRecord, revisions: Sequence[int | None]
    ) -> NDArray[np.int64]:
        """Inserts document i under ``revisions[i]``, or leaves it out where that is None; returns the new rows."""
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'documents'").fetchone()
        first = (last[0] if last else 0) + 1
        chosen = [(place, revision) for place, revision in enumerate(revisions) if revision is not None]
        rows = range(first, first + len(chosen))
        places = [(row, place) for row, (place, _) in zip(rows, chosen, strict=True)]
        located = [(row, record.number, revision) for row, (_, revision) in zip(rows, chosen, strict=True)]
        connection.executemany(
            "INSERT INTO documents (checksum, row, collection, revision, id, payload, text, num_tokens, num_read) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (placed(self._checksums[place], *where), *where, *self._documents[place])
                for where, (place, _) in zip(located, chosen, strict=True)
            ),
        )
        connection.executemany(
            "INSERT INTO facets (checksum, row, norms, units, spans) VALUES (?, ?, ?, ?, ?)",
            ((placed(self._facets[place][0][0], row), row, *self._facets[place][0][1:]) for row, place in places),
        )
        connection.executemany(
            "INSERT INTO facet_parts (part, units) VALUES (?, ?)",
            (line for row, place in places for line in numbered_parts(row, self._facets[place][1])),
        )
        connection.executemany(
            "INSERT INTO terms (row, terms) VALUES (?, ?)", ((row, self._terms[place]) for row, place in places)
        )
        return np.arange(rows.start, rows.stop)


def _facet_lines(
    norms: bytes, codes: bytes, spans: bytes | None
) -> tuple[tuple[int, bytes, bytes, bytes | None], list[bytes]]:
    """The line of a document in the table of facets, and its further parts."""
    first, parts = split_codes(codes, len(norms) + len(spans or b""))
    return (facets_checksum(norms, codes, spans), norms, first, spans), parts
