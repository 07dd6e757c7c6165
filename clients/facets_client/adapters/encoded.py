"""A folder of encoded documents (extra ``parquet``): parts that ``write_parquet`` writes, and ``encoding.json``.

``encoding.json`` names the model and the fields that it read. It is written once all parts exist.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
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
from facets_client.load.rows import EXCERPT_CHARS, Record
from facets_client.load.runner import Settled
from facets_client.load.source import InputError
from facets_client.load.state import Place, whole_file

require_extra("parquet", "pyarrow")
import pyarrow as pa  # noqa: E402

_MANIFEST = "encoding.json"
_STATE = "encoding.state.json"
_HALF_PRECISION_BYTES = 16 * 2**20  # larger facets are sent in half precision, as a server keeps them


class EncodedFolder:
    """Writer of the folder, one part per batch; InputError when the folder holds something else."""

    def __init__(self, path: Path, encoded_by: EncodedBy) -> None:
        self.state_path = path / _STATE
        self._path = path
        self._encoded_by = encoded_by
        self._num_parts = 0
        is_ours = (path / _MANIFEST).exists() or self.state_path.exists()
        if path.exists() and not is_ours and any(path.iterdir()):
            raise InputError(f"{path}: is not empty and holds no encoded documents: expected a folder of its own")
        path.mkdir(parents=True, exist_ok=True)
        (path / _MANIFEST).unlink(missing_ok=True)

    def begin(self, place: Place) -> None:
        """Continues after the parts of a saved position."""
        self._num_parts = place.totals.get("num_parts", 0)

    def write(self, records: Sequence[Record[DocumentMessage]], encoded: Sequence[Document | str]) -> Settled:
        """Writes a part; documents that could not be read are rejected."""
        self._num_parts += 1
        rejections = [
            record.rejected("unreadable_text", rule)
            for record, rule in zip(records, encoded, strict=True)
            if isinstance(rule, str)
        ]
        documents = [document for document in encoded if isinstance(document, Document)]
        write_parquet(_part(self._path, self._num_parts), documents)
        return Settled(rejections, {"num_parts": 1})

    def finish(self) -> None:
        """Marks the folder as complete and deletes the parts of an earlier, longer input."""
        last_part = _part(self._path, self._num_parts)
        for path in self._path.glob("part-*.parquet"):
            if path > last_part:
                path.unlink()
        manifest = {"made_by": asdict(self._encoded_by), "num_parts": self._num_parts}
        with whole_file(self._path / _MANIFEST) as partial:
            partial.write_text(json.dumps(manifest, indent=1))


class EncodedDocuments(AbstractContextManager["EncodedDocuments"]):
    """A complete folder as an input of the bulk runner (a ``BulkSource``); InputError if it is none."""

    files: tuple[InputFile, ...] = ()

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        if (path / _STATE).exists():
            raise InputError(f"{path}: encoding is not complete: run facets encode again to continue")
        try:
            manifest = json.loads((path / _MANIFEST).read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: expected a folder that facets encode has written: {error}") from error
        self.encoded_by = EncodedBy(**manifest["made_by"])
        self._parts = [_part(path, number) for number in range(1, manifest["num_parts"] + 1)]
        missing = [part.name for part in self._parts if not part.is_file()]
        if missing:
            raise InputError(f"{path}: {missing[0]} is missing: run facets encode again")
        stats = [part.stat() for part in self._parts]
        self._ends = np.cumsum([stat.st_size for stat in stats]).tolist()
        self.size: int | None = self._ends[-1] if self._ends else 0
        self.position = 0
        identity = [manifest, [(stat.st_size, stat.st_mtime_ns) for stat in stats]]
        self.digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()

    def check(self) -> None:
        """Does nothing: columns were chosen when the documents were encoded."""

    def read(self, place: Place) -> Iterator[Record[Document]]:
        """The documents after a position, in order."""
        for index, part in enumerate(self._parts):
            after = place.line if index == place.file else 0
            if index >= place.file:
                for line, document in enumerate(_read_part(part), start=1):
                    if line > after:
                        excerpt = document.text[:EXCERPT_CHARS]
                        yield Record(document, document.id, line, excerpt, file=index, name=part.name)
            self.position = self._ends[index]

    def __exit__(self, *exc_info: object) -> None:
        """Does nothing: no file stays open."""


def _part(path: Path, number: int) -> Path:
    return path / f"part-{number:08d}.parquet"


def _read_part(part: Path) -> Iterator[Document]:
    try:
        for document in read_parquet(part):
            facets = document.facet_embeddings
            if facets is not None and facets.nbytes > _HALF_PRECISION_BYTES:
                document = replace(document, facet_embeddings=facets.astype(np.float16))
            yield document
    except (ValueError, OSError, pa.ArrowException) as error:
        raise InputError(f"{part}: cannot be read: {error}", hint="run facets encode again") from error
