"""A folder of encoded documents (extra ``parquet``): parts that ``write_parquet`` writes, and ``encoding.json``.

``encoding.json`` names the model and the fields that it read. It is written once all parts exist.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from facets_client.adapters.parquet import read_parquet, write_parquet
from facets_client.core.extras import require_extra
from facets_client.documents.encoding import EncodedBy
from facets_client.documents.messages import DocumentMessage
from facets_client.generated.types import Document
from facets_client.load.formats import InputFile
from facets_client.load.outputs import whole_file
from facets_client.load.rows import Record
from facets_client.load.runner import Settled
from facets_client.load.source import InputError

require_extra("parquet", "pyarrow")
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

_MANIFEST = "encoding.json"
_PARTS = "part-*"
_FAULTS = "faults"  # in the footer of a part: position of a document in its batch -> what is wrong with it
_HALF_PRECISION_BYTES = 16 * 2**20  # larger facets are sent in half precision, as a server keeps them


class EncodedFolder:
    """Writer of the folder, one part per batch; InputError when the folder holds something else.

    A part is named by its documents and the model, and appears when it is complete: one that exists is not encoded
    again.
    """

    def __init__(self, path: Path, encoded_by: EncodedBy) -> None:
        self._path = path
        self._encoded_by = encoded_by
        self._parts: list[str] = []
        if path.exists() and any(file.name != _MANIFEST and not file.match(_PARTS) for file in path.iterdir()):
            raise InputError(f"{path}: is not empty and holds no encoded documents: expected a folder of its own")
        path.mkdir(parents=True, exist_ok=True)
        (path / _MANIFEST).unlink(missing_ok=True)

    def write(
        self, documents: Sequence[DocumentMessage], encode: Callable[[Sequence[DocumentMessage]], list[Document | str]]
    ) -> Path:
        """Writes a part, unless it exists; its footer lists what is wrong with the documents that are left out."""
        digest = hashlib.sha256(json.dumps(asdict(self._encoded_by)).encode())
        for document in documents:
            digest.update(document.SerializeToString(deterministic=True))
        path = self._path / f"part-{digest.hexdigest()[:32]}.parquet"
        if not path.exists():
            encoded = encode(documents)
            faults = {number: fault for number, fault in enumerate(encoded) if isinstance(fault, str)}
            whole = (document for document in encoded if isinstance(document, Document))
            write_parquet(path, whole, metadata={_FAULTS: json.dumps(faults)})
        return path

    def take(self, records: Sequence[Record[DocumentMessage]], part: Path) -> Settled:
        """Adds a part to the folder, and rejects the documents that it leaves out."""
        self._parts.append(part.name)
        faults = json.loads(pq.read_metadata(part).metadata[_FAULTS.encode()])
        return Settled([records[int(number)].rejected("unreadable_text", fault) for number, fault in faults.items()])

    def finish(self) -> None:
        """Marks the folder as complete and deletes the parts of another input."""
        for path in self._path.glob(_PARTS):
            if path.name not in self._parts:
                path.unlink()
        manifest = {"made_by": asdict(self._encoded_by), "parts": self._parts}
        with whole_file(self._path / _MANIFEST) as partial:
            partial.write_text(json.dumps(manifest, indent=1))


class EncodedDocuments(AbstractContextManager["EncodedDocuments"]):
    """A complete folder as an input of the bulk runner (a ``BulkSource``); InputError if it is none."""

    files: tuple[InputFile, ...] = ()

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        try:
            manifest = json.loads((path / _MANIFEST).read_bytes())
        except (OSError, ValueError) as error:
            if any(path.glob(_PARTS)):
                raise InputError(f"{path}: encoding is not complete: run facets encode again to continue") from error
            raise InputError(f"{path}: expected a folder that facets encode has written: {error}") from error
        self.encoded_by = EncodedBy(**manifest["made_by"])
        self._parts = [path / name for name in manifest["parts"]]
        missing = [part.name for part in self._parts if not part.is_file()]
        if missing:
            raise InputError(f"{path}: {missing[0]} is missing: run facets encode again")
        self.size: int | None = sum(part.stat().st_size for part in self._parts)
        self.position = 0

    def check(self) -> None:
        """Does nothing: columns were chosen when the documents were encoded."""

    def read(self) -> Iterator[Record[Document]]:
        """The documents, in order."""
        for part in self._parts:
            for line, document in enumerate(_read_part(part), start=1):
                yield Record(document, document.id, line, file=part.name)
            self.position += part.stat().st_size

    def __exit__(self, *exc_info: object) -> None:
        """Does nothing: no file stays open."""


def _read_part(part: Path) -> Iterator[Document]:
    try:
        for document in read_parquet(part):
            facets = document.facet_embeddings
            if facets is not None and facets.nbytes > _HALF_PRECISION_BYTES:
                document = replace(document, facet_embeddings=facets.astype(np.float16))
            yield document
    except (ValueError, OSError, pa.ArrowException) as error:
        raise InputError(f"{part}: cannot be read: {error}", hint="run facets encode again") from error
