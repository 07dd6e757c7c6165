"""Documents with facets and payload as a Vespa feed (JSON lines), and back; needs nothing but the client.

``vespa feed wiki.jsonl`` takes the file; ``schema`` gives the schema that belongs to it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import numpy as np

from facets_client.adapters.exported import (
    facets_of,
    from_json,
    from_spans,
    join_norms,
    split_norms,
    to_json,
    to_spans,
    whole,
)
from facets_client.documents.types import Document

_SCHEMA = """\
schema %(name)s {
    document %(name)s {
        field id type string { indexing: summary | attribute }
        field text type string { indexing: summary | index  index: enable-bm25 }
        field payload type string { indexing: summary }
        field norms type array<float> { indexing: summary }
        field spans type string { indexing: summary }
        field facets type tensor<float>(facet{}, x[%(dim)d]) { indexing: attribute | summary }
    }
    rank-profile facets {
        inputs { query(q) tensor<float>(facet_q{}, x[%(dim)d]) }
        first-phase {
            expression: sum(reduce(sum(query(q) * attribute(facets), x), max, facet), facet_q)
        }
    }
}
"""


def schema(name: str, dim: int) -> str:
    """A schema for what ``write_vespa`` writes, with a rank profile ``facets``: MaxSim over unit vectors.

    Args:
        name: Document type.
        dim: D, numbers of one facet.
    """
    return _SCHEMA % {"name": name, "dim": dim}


def write_vespa(
    path: str | Path, documents: Iterable[Document], *, document_type: str, namespace: str = "facets"
) -> int:
    """Writes documents as feed operations, one JSON object a line; the file is whole or not there.

    Args:
        path: The file; an existing one is replaced.
        documents: With facets: ``client.list_documents(name, include_facets=True)``.
        document_type: Name of the schema.
        namespace: Of the documents' ids.

    Returns:
        How many.

    Raises:
        ValueError: A document has no facets.
    """
    num_documents = 0
    with whole(path) as partial, partial.open("w", encoding="utf-8") as file:
        for document in documents:
            put = f"id:{namespace}:{document_type}::{quote(document.id, safe='')}"
            file.write(f"{to_json({'put': put, 'fields': _to_fields(document)})}\n")
            num_documents += 1
    return num_documents


def read_vespa(path: str | Path) -> Iterator[Document]:
    """The documents of a file that ``write_vespa`` wrote, facets as precise as float32.

    Raises:
        ValueError: A line is none of those.
    """
    with Path(path).open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield _to_document(json.loads(line)["fields"])
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path}, line {number}: expected a document that write_vespa wrote") from error


def _to_fields(document: Document) -> dict[str, object]:
    units, norms = split_norms(facets_of(document))
    return {
        "id": document.id,
        "text": document.text,
        "payload": to_json(dict(document.payload)),
        "norms": norms.tolist(),
        "spans": to_json(from_spans(document.facet_spans)),
        "facets": {"blocks": {str(place): unit.tolist() for place, unit in enumerate(units)}},
    }


def _to_document(fields: Mapping[str, object]) -> Document:
    blocks = fields["facets"]["blocks"]  # type: ignore[index]
    units = np.array([blocks[str(place)] for place in range(len(blocks))], dtype=np.float32)
    return Document(
        id=str(fields["id"]),
        text=str(fields["text"]),
        payload=from_json(str(fields["payload"])),
        facet_embeddings=join_norms(units, np.array(fields["norms"], dtype=np.float32)),
        facet_spans=to_spans(json.loads(str(fields["spans"]))),
    )
