"""Parts of documents as they stand in the tables, checked against their checksums, and whole documents made of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from facets.documents.codes import document_checksum, part_checksum, placed
from facets.documents.fields import SearchedText, searched_text
from facets.documents.types import DocumentPart, JsonValue, StoredDocument

PASSAGE_COLUMNS = (
    "wanted.value, documents.row, collection, revision, documents.checksum, num_tokens, num_read, num_parts, "
    "CAST(documents.id AS BLOB), CAST(payload AS BLOB), CAST(documents.text AS BLOB), "
    "document_parts.checksum, start, page, CAST(headings AS BLOB), CAST(document_parts.text AS BLOB)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A part of a document with what belongs to the whole; of a document of one part its text."""

    document: int  # row of the document
    number: int  # which part it is, from 1
    num_parts: int  # of the document
    part: DocumentPart  # where it stands; `text` is what stands there
    # The others: see `StoredDocument`.
    id: str
    text: str
    payload: dict[str, JsonValue]
    revision: int
    num_tokens: int | None
    num_read: int | None

    def said(self, fields: Mapping[str, float]) -> SearchedText:
        """Its text and the fields that are searched."""
        return searched_text(self.text, self.payload, fields, part=self.part if self.num_parts > 1 else None)


class PassageLine(NamedTuple):
    """A part and its document as they stand in the tables, whatever became of them; see ``PASSAGE_COLUMNS``."""

    row: int
    document: int
    collection: int
    revision: int
    checksum: int
    num_tokens: int | None
    num_read: int | None
    num_parts: int
    id: bytes | str
    payload: bytes | str
    whole: bytes
    part_checksum: int | None
    start: int | None
    page: int | None
    headings: bytes | str | None
    own: bytes | None

    def is_whole_document(self) -> bool:
        """Whether the document is what was written, where it was written."""
        id, payload, text = map(stored_text, (self.id, self.payload, self.whole))
        said = document_checksum(
            text, id=id, payload=payload, reading=(self.num_tokens, self.num_read), num_parts=self.num_parts
        )
        return self.checksum == placed(said, self.document, self.collection, self.revision)

    def is_whole_part(self) -> bool:
        """Whether the part is."""
        if self.num_parts == 1:
            return True
        said = part_checksum(
            stored_text(self.own), start=self.start or 0, headings=stored_text(self.headings), page=self.page or 0
        )
        return self.part_checksum == placed(said, self.row, self.document)

    def passage(self) -> Passage:
        """The part."""
        text, start = stored_text(self.whole if self.num_parts == 1 else self.own), self.start or 0
        headings = tuple(json.loads(self.headings)) if self.headings else ()
        return Passage(
            document=self.document,
            number=self.row - self.document + 1,
            num_parts=self.num_parts,
            part=DocumentPart(start=start, end=start + len(text), headings=headings, page=self.page or 0),
            id=stored_text(self.id),
            text=text,
            payload=json.loads(self.payload),
            revision=self.revision,
            num_tokens=self.num_tokens,
            num_read=self.num_read,
        )


def whole_document(parts: Sequence[Passage]) -> StoredDocument:
    """A document of its parts, in their order."""
    first = parts[0]
    return StoredDocument(
        id=first.id,
        text=first.text if len(parts) == 1 else "".join(part.text for part in parts),
        payload=first.payload,
        revision=first.revision,
        num_tokens=first.num_tokens,
        num_read=first.num_read,
        parts=tuple(passage.part for passage in parts) if len(parts) > 1 else (),
    )


def stored_text(stored: bytes | str | None) -> str:
    """Text as stored; SQLite gives bytes because damaged text may be none, which its checksum shall tell."""
    return stored if isinstance(stored, str) else (stored or b"").decode("utf-8", "replace")
