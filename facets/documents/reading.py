"""Reading documents by id, page by page, or only how many there are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from facets.documents.filters import Filter
from facets.documents.page_tokens import read_page_token, write_page_token
from facets.documents.records import CollectionRecord
from facets.documents.store import DocumentStore
from facets.documents.types import CountResult, DocumentPage, GetResult, StoredDocument
from facets.documents.views import StoreView
from facets.errors import NotReadyError

__all__ = ["Reader", "check_revision"]


class Reader:
    """Reads the documents of collections; each method sees one state of the store.

    Raises (every method): NotFoundError without such a collection; NotReadyError when ``min_revision`` lies in the
    future.
    """

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def get(self, name: str, ids: Sequence[str], *, include_facets: bool, min_revision: int | None) -> GetResult:
        """Documents by id, each once, and the ids that no document has."""
        with self._store.view() as view:
            record = view.collection(name)
            revision = check_revision(view.revision(), min_revision)
            rows = view.rows_by_id(record, ids)
            found = {document.id: document for document in _read(view, record, rows, include_facets)}
        asked = dict.fromkeys(ids)
        return GetResult(
            documents=tuple(found[id] for id in asked if id in found),
            missing=tuple(id for id in asked if id not in found),
            index_revision=revision,
        )

    def page(
        self,
        name: str,
        *,
        page_size: int,
        page_token: str,
        filter: Filter | None,
        include_facets: bool,
        min_revision: int | None,
    ) -> DocumentPage:
        """One page of the documents, in the order of ids."""
        with self._store.view() as view:
            record = view.collection(name)
            revision = check_revision(view.revision(), min_revision)
            # When it was made: stays, unlike the number, when the collection moves to another model.
            store_id, made = self._store.store_id, record.created_us
            after = ""
            if page_token:
                after = read_page_token(page_token, store_id=store_id, collection=made, filter=filter)
            rows = view.page(record, after=after, limit=page_size + 1, filter=filter)
            documents = _read(view, record, rows[:page_size], include_facets)
        token = ""
        if len(rows) > page_size:
            token = write_page_token(documents[-1].id, store_id=store_id, collection=made, filter=filter)
        return DocumentPage(documents=documents, next_page_token=token, index_revision=revision)

    def count(self, name: str, *, filter: Filter | None, min_revision: int | None) -> CountResult:
        """Number of documents; only a filter needs to look at them."""
        with self._store.view() as view:
            record = view.collection(name)
            revision = check_revision(view.revision(), min_revision)
            count = record.num_documents if filter is None else view.count(record, filter)
            return CountResult(count=count, index_revision=revision)


def check_revision(revision: int, min_revision: int | None) -> int:
    """The revision, once it is late enough.

    Raises:
        NotReadyError: It is not.
    """
    if min_revision is not None and revision < min_revision:
        raise NotReadyError(f"index_revision is {revision}, expected at least min_revision {min_revision}")
    return revision


def _read(
    view: StoreView, record: CollectionRecord, rows: NDArray[np.int64], include_facets: bool
) -> tuple[StoredDocument, ...]:
    found = view.documents(rows)
    documents = [found[row] for row in rows.tolist()]
    if include_facets:
        stored = view.facets(record, rows)
        documents = [
            replace(document, facet_embeddings=facets, spans=None if spans is None else spans.astype(np.int64))
            for document, facets, spans in zip(documents, stored.embeddings, stored.spans, strict=True)
        ]
    return tuple(documents)
