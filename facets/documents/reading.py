"""Reading documents by id, page by page, or only how many there are.

Tokens that continue a listing are opaque to callers, and checked when they come back.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from facets.documents.codes import read_spans
from facets.documents.filter_warnings import FilterChecker
from facets.documents.filters import Filter, to_sql
from facets.documents.index_manager import IndexManager
from facets.documents.records import CollectionRecord, DocumentRows
from facets.documents.store import DocumentStore
from facets.documents.types import CollectionInfo, CountResult, DocumentPage, FilterWarning, GetResult, StoredDocument
from facets.documents.views import StoreView
from facets.errors import InvalidInputError
from facets.index.config import MAX_READ_BYTES

_MAC_BYTES = 12


class Reader:
    """Reads the documents of collections; each method sees one state of the store.

    Raises (every method): NotFoundError without such a collection; NotReadyError when ``min_revision`` lies in the
    future.
    """

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._checker = FilterChecker()

    def warnings(self, name: str, where: Filter | None) -> tuple[FilterWarning, ...]:
        """What is odd about a filter."""
        if where is None:
            return ()
        with self._store.view() as view:
            return self._checker.warnings(view, view.collection(name), where)

    def get(self, name: str, ids: Sequence[str], *, include_facets: bool, min_revision: int | None) -> GetResult:
        """Documents by id, each once, and the ids that no document has.

        Raises:
            InvalidInputError: Several documents have more than ``MAX_READ_BYTES`` together.
        """
        with self._store.view() as view:
            record = view.collection(name)
            revision = view.check_revision(min_revision)
            rows = view.rows_by_id(record, ids)
            num_bytes = view.num_bytes(rows, facets=include_facets, dim=record.dim)
            if len(rows) > 1 and num_bytes.sum() > MAX_READ_BYTES:
                rule = (
                    f"are documents of {num_bytes.sum()} bytes, the limit is {MAX_READ_BYTES}: ask for fewer at a time"
                )
                raise InvalidInputError(rule, path="ids")
            found = {document.id: document for document in _read(view, record, rows, include_facets)}
        asked = dict.fromkeys(ids)
        return GetResult(
            documents=tuple(found[id] for id in asked if id in found),
            missing_ids=tuple(id for id in asked if id not in found),
            index_revision=revision,
        )

    def page(
        self,
        name: str,
        *,
        page_size: int,
        page_token: str,
        where: Filter | None,
        include_facets: bool,
        min_revision: int | None,
    ) -> DocumentPage:
        """One page of the documents, in the order of ids; it ends by ``MAX_READ_BYTES``, but has one at least."""
        with self._store.view() as view:
            record = view.collection(name)
            revision = view.check_revision(min_revision)
            # When it was made: stays, unlike the number, when the collection moves to another model.
            store_id, made = self._store.store_id, record.created_us
            after = ""
            if page_token:
                after = read_page_token(page_token, store_id=store_id, collection=made, where=where)
            rows = view.page(record, after=after, limit=page_size + 1, where=where)
            ends = np.cumsum(view.num_bytes(rows[:page_size], facets=include_facets, dim=record.dim))
            num_documents = max(1, int(np.searchsorted(ends, MAX_READ_BYTES, side="right")))
            warnings = () if page_token else self._checker.warnings(view, record, where)
            documents = _read(view, record, rows[:num_documents], include_facets)
        token = ""
        if len(rows) > len(documents):
            token = write_page_token(documents[-1].id, store_id=store_id, collection=made, where=where)
        return DocumentPage(documents=documents, next_page_token=token, index_revision=revision, warnings=warnings)

    def count(self, name: str, *, where: Filter | None, min_revision: int | None) -> CountResult:
        """Number of documents; only a filter needs to look at them."""
        with self._store.view() as view:
            record = view.collection(name)
            revision = view.check_revision(min_revision)
            count = record.num_documents if where is None else view.count(record, where)
            warnings = self._checker.warnings(view, record, where)
            return CountResult(num_documents=count, index_revision=revision, warnings=warnings)


def info_of(record: CollectionRecord, indexes: IndexManager) -> CollectionInfo:
    """What anybody may want to know of a collection."""
    live = indexes.peek(record)
    stored = {one.name: getattr(record, one.name) for one in fields(CollectionInfo) if hasattr(record, one.name)}
    return CollectionInfo(
        **stored,
        create_time=record.created,
        num_damaged=indexes.quarantine.count(record),
        index_kind="exact" if live is None else live.kind,
        num_vectors=0 if live is None else live.num_vectors,
        snapshot_bytes=indexes.snapshot_bytes(record),
    )


def _read(
    view: StoreView, record: CollectionRecord, rows: NDArray[np.int64], include_facets: bool
) -> tuple[StoredDocument, ...]:
    found = view.documents(rows)
    documents = [found[row] for row in rows.tolist()]
    return _with_facets(view, record, rows, documents) if include_facets else tuple(documents)


def _with_facets(
    view: StoreView, record: CollectionRecord, rows: NDArray[np.int64], documents: Sequence[StoredDocument]
) -> tuple[StoredDocument, ...]:
    """The documents at these first rows with the facets of all their parts."""
    parts = [record.said(document.text, document.payload, document.parts) for document in documents]
    counts = np.array([len(one) for one in parts], dtype=np.int64)
    stored = view.facets(record, DocumentRows(rows, counts).parts)
    facets, spans, found = iter(stored.embeddings), iter(stored.spans), []
    for document, its in zip(documents, parts, strict=True):
        own = [next(facets) for _ in its]
        places = [(said, next(spans)) for said in its]
        known = [said.in_document(read_spans(one)[0]) for said, one in places if one is not None]
        found.append(
            replace(
                document,
                facet_embeddings=np.concatenate(own),
                facet_spans=np.concatenate(known) if len(known) == len(its) else None,
                part_facets=tuple(map(len, own)) if len(own) > 1 else (),
            )
        )
    return tuple(found)


def _mac(last_id: bytes, *, store_id: str, collection: int, where: Filter | None) -> bytes:
    """Ties a position to its listing: store, collection and filter."""
    listing = json.dumps([collection, None if where is None else to_sql(where, "payload")])
    key = hashlib.blake2b(listing.encode(), key=store_id.encode(), digest_size=32).digest()
    return hashlib.blake2b(last_id, key=key, digest_size=_MAC_BYTES).digest()


def write_page_token(last_id: str, *, store_id: str, collection: int, where: Filter | None) -> str:
    """The token of the page that begins after ``last_id``."""
    position = last_id.encode()
    mac = _mac(position, store_id=store_id, collection=collection, where=where)
    return base64.urlsafe_b64encode(mac + position).decode("ascii")


def read_page_token(token: str, *, store_id: str, collection: int, where: Filter | None) -> str:
    """The id after which the page begins.

    Raises:
        InvalidInputError: The token was not written for this listing.
    """
    try:
        decoded = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise _invalid(token) from error
    mac, position = decoded[:_MAC_BYTES], decoded[_MAC_BYTES:]
    expected = _mac(position, store_id=store_id, collection=collection, where=where)
    if not hmac.compare_digest(mac, expected):
        raise _invalid(token)
    return position.decode()


def _invalid(token: str) -> InvalidInputError:
    return InvalidInputError(
        f"must be next_page_token of the same listing and filter, got {token[:40]!r}", path="page_token"
    )
