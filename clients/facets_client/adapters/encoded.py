"""A folder of encoded documents: parts as Parquet, and what encoded them (extra ``parquet``).

``encoding.json`` names the model and the fields that were read, and says when all parts are there. Each part is what
``write_parquet`` writes, with the digest of the documents it was made of; it is whole or not there.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from facets_client.adapters import require
from facets_client.adapters.parquet import read_parquet, write_parquet
from facets_client.documents.encoding import EncodedBy
from facets_client.generated.types import Document
from facets_client.load.batches import Place
from facets_client.load.formats import InputFile
from facets_client.load.records import Record, Rejection
from facets_client.load.source import InputError
from facets_client.load.state import whole_file

require("parquet")
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

_VERSION = 1
_MANIFEST = "encoding.json"
_HALF_BYTES = 16 * 2**20  # facets of a longer document go out in half precision, as a server keeps those of a book


class EncodedFolder:
    """The folder while it is written.

    Args:
        path: Made where it is not there.
        made_by: What encodes.

    Raises:
        InputError: It holds what another model has made, or something else.
        OSError: It cannot be written.
    """

    def __init__(self, path: Path, made_by: EncodedBy) -> None:
        self._path = path
        self._made_by = asdict(made_by)
        if path.exists() and not (path / _MANIFEST).exists() and any(path.iterdir()):
            raise InputError(f"{path}: is not empty and holds no encoded documents: expected a folder of its own")
        path.mkdir(parents=True, exist_ok=True)
        held = _read_manifest(path)["made_by"] if (path / _MANIFEST).exists() else self._made_by
        if held != self._made_by:
            differ = ", ".join(f"{name} {held.get(name)!r}" for name in held if held[name] != self._made_by.get(name))
            raise InputError(f"{path}: holds documents encoded with {differ}: expected another folder or the same")
        for left_over in path.glob("*.partial"):
            left_over.unlink()
        self._write_manifest(0)

    def rejected_of(self, number: int, digest: str) -> list[tuple[int, str]] | None:
        """The documents without facets of a part that is there and is of these documents; None: it is not."""
        try:
            held = pq.read_metadata(self._part(number)).metadata or {}
        except (OSError, pa.ArrowException):  # not there, or damaged
            return None
        if held.get(b"digest") != digest.encode():
            return None
        return [(place, rule) for place, rule in json.loads(held[b"rejected"])]

    def write(
        self, number: int, documents: Sequence[Document], *, digest: str, rejected: list[tuple[int, str]]
    ) -> None:
        """Writes a part."""
        write_parquet(self._part(number), documents, metadata={"digest": digest, "rejected": json.dumps(rejected)})

    def finish(self, num_parts: int) -> None:
        """Says that these parts are all, and deletes those of a longer input."""
        for path in self._path.glob("part-*.parquet"):
            if path > self._part(num_parts):
                path.unlink()
        self._write_manifest(num_parts)

    def _part(self, number: int) -> Path:
        return self._path / f"part-{number:08d}.parquet"

    def _write_manifest(self, num_parts: int) -> None:
        held = {"version": _VERSION, "made_by": self._made_by, "num_parts": num_parts}
        with whole_file(self._path / _MANIFEST) as partial:
            partial.write_text(json.dumps(held, indent=1))


class EncodedDocuments:
    """The folder once it is complete: an input of the bulk runner.

    Attributes:
        name: Of the folder.
        files: None, of those that people have.
        made_by: What has encoded.
        size: Bytes of all parts.
        raw_position: Of the parts that were read.
        head_digest: Differs where folders differ.

    Raises:
        InputError: It is no such folder, or not complete.
    """

    files: tuple[InputFile, ...] = ()

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        held = _read_manifest(path)
        self.made_by = EncodedBy(**held["made_by"])
        self._parts = [path / f"part-{number:08d}.parquet" for number in range(1, held["num_parts"] + 1)]
        missing = next((part.name for part in self._parts if not part.is_file()), "")
        if missing or not held["num_parts"]:
            raise InputError(f"{path}: {missing or 'not all'} is encoded: run facets encode again, it goes on")
        sizes = [part.stat() for part in self._parts]
        self._ends = np.cumsum([0, *(stat.st_size for stat in sizes)]).tolist()
        self.size: int | None = self._ends[-1]
        self.raw_position = 0
        listed = [held, [(stat.st_size, stat.st_mtime_ns) for stat in sizes]]
        self.head_digest = hashlib.sha256(json.dumps(listed).encode()).hexdigest()

    def check(self) -> None:
        """Nothing is to be found out."""

    def read(self, place: Place, max_text_bytes: int = 0) -> Iterator[Record | Rejection]:
        """The documents after a place, in order; see ``DocumentFiles.read``."""
        for number, part in enumerate(self._parts):
            if number >= place.file:
                after = place.line if number == place.file else 0
                for line, document in enumerate(_documents_of(part), 1):
                    if line > after:
                        yield _record(document, line, file=number, name=part.name, max_text_bytes=max_text_bytes)
            self.raw_position = self._ends[number + 1]

    def __enter__(self) -> "EncodedDocuments":
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Nothing is open."""


def _documents_of(part: Path) -> Iterator[Document]:
    try:
        yield from read_parquet(part)
    except (ValueError, OSError, pa.ArrowException) as error:
        raise InputError(f"{part}: cannot be read: {error}", hint="delete it and run facets encode again") from error


def _record(document: Document, line: int, *, file: int, name: str, max_text_bytes: int) -> Record | Rejection:
    num_bytes = len(document.text.encode())
    if max_text_bytes and num_bytes > max_text_bytes:
        rule = f"text has {num_bytes} bytes, the limit is {max_text_bytes}"
        return Rejection(line, 0, "text_too_long", rule, id=document.id, file=file, name=name)
    facets = document.facet_embeddings
    if facets is not None and facets.nbytes > _HALF_BYTES:
        facets = facets.astype(np.float16)
    encoded = {"facet_embeddings": facets, **{key: getattr(document, key) for key in _ENCODED}}
    return Record(document.id, document.text, dict(document.payload), line, 0, file, name, encoded)


_ENCODED = ("facet_spans", "part_facets", "token_stats")


def _read_manifest(path: Path) -> Mapping[str, Any]:
    try:
        held: Mapping[str, Any] = json.loads((path / _MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected a folder that facets encode has written: {error}") from error
    if held.get("version") != _VERSION:
        raise InputError(f"{path}: is of version {held.get('version')}, expected {_VERSION}")
    return held
