"""The document engine: collections, documents and search over one data directory.

The document store is the truth and the vector index is derived from it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from facets.index.config import EngineConfig
from facets.index.documents import (
    CollectionInfo,
    CountResult,
    DeleteResult,
    Document,
    DocumentPage,
    GetResult,
    JsonValue,
    SearchResult,
    UpsertResult,
)
from facets.index.filters import Filter

__all__ = ["CollectionEngine"]


class CollectionEngine:
    """Stores documents durably and searches them by their best facet; every method is thread-safe.

    Writes are durable and visible to searches when the method returns. Reads run beside writes. Every read takes
    ``min_revision`` and every result carries the revision that it saw (``index_revision``); revisions count the
    writes of the data directory.

    Raises (every method): StorageError when the store cannot be read or written (disk full, damaged page,
    engine closed): nothing of the call was stored. Reads raise NotReadyError when ``min_revision`` lies in
    the future. Methods that take a collection's name raise NotFoundError (``resource_type="collection"``) when
    there is none.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> with CollectionEngine.open(tempfile.mkdtemp()) as engine:
        ...     _ = engine.create_collection("news", model="m", model_revision="1", num_facets=1, dim=2)
        ...     _ = engine.upsert("news", [Document(id="a", text="A", facet_embeddings=np.array([[1.0, 0.0]]))])
        ...     result = engine.search("news", np.array([[[2.0, 0.0]]], dtype=np.float32), top_k=3)
        >>> [(hit.id, hit.score) for hit in result.hits[0]]
        [('a', 1.0)]
    """

    @classmethod
    def open(cls, data_dir: str | Path, config: EngineConfig | None = None) -> "CollectionEngine":
        """Opens a data directory, creating it when absent, and loads every collection's index.

        Args:
            data_dir: The directory; only one engine at a time may have it open.
            config: Settings; the defaults when None.

        Raises:
            StorageError: The directory is in use by another process (its pid is named), cannot be written, or
                holds no database of ours.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Saves the indexes and lets go of the data directory. Idempotent."""
        raise NotImplementedError

    def __enter__(self) -> "CollectionEngine":
        """Returns the engine itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the engine."""
        self.close()

    @property
    def revision(self) -> int:
        """The newest revision that every read sees."""
        raise NotImplementedError

    def create_collection(
        self,
        name: str,
        *,
        model: str,
        model_revision: str,
        num_facets: int,
        dim: int,
        config: Mapping[str, JsonValue] | None = None,
    ) -> CollectionInfo:
        """Creates an empty collection.

        Args:
            name: ``[a-z0-9][a-z0-9_-]{0,63}``.
            model: Name of the model that encodes its documents.
            model_revision: Revision of that model.
            num_facets: K, 1 to 256.
            dim: D, 1 to 4096; a multiple of 32 is several times faster.
            config: Free JSON object kept with the collection.

        Raises:
            InvalidInputError: A name, number or config outside these rules.
            ConflictError: A collection of that name exists.
        """
        raise NotImplementedError

    def list_collections(self) -> tuple[CollectionInfo, ...]:
        """Every collection, in the order of names."""
        raise NotImplementedError

    def get_collection(self, name: str) -> CollectionInfo:
        """The collection of that name."""
        raise NotImplementedError

    def delete_collection(self, name: str) -> int:
        """Deletes a collection with its documents.

        Returns:
            The revision from which no read sees it.
        """
        raise NotImplementedError

    def upsert(self, name: str, documents: Sequence[Document]) -> UpsertResult:
        """Stores documents, replacing those of the same id; all of them or none.

        Args:
            name: The collection.
            documents: At most ``MAX_BATCH_DOCUMENTS``; ids differ.

        Raises:
            InvalidInputError: An id twice, NaN or infinite facets, the wrong K or D, a limit exceeded; ``field``
                is e.g. ``documents[3].id``. Nothing was stored.
        """
        raise NotImplementedError

    def get(
        self, name: str, ids: Sequence[str], *, include_facets: bool = False, min_revision: int | None = None
    ) -> GetResult:
        """Documents by id.

        Args:
            name: The collection.
            ids: At most ``MAX_BATCH_DOCUMENTS``; repeated ids are answered once.
            include_facets: Whether to read the facet embeddings too.
            min_revision: The read must see the writes up to this revision.
        """
        raise NotImplementedError

    def delete(
        self, name: str, *, ids: Sequence[str] | None = None, filter: Filter | None = None
    ) -> DeleteResult:
        """Deletes documents by id or by filter, all of them or none; ids without a document are ignored.

        Raises:
            InvalidInputError: Not exactly one of ``ids`` and ``filter`` is given.
        """
        raise NotImplementedError

    def list_documents(
        self,
        name: str,
        *,
        page_size: int = 100,
        page_token: str = "",
        filter: Filter | None = None,
        include_facets: bool = False,
        min_revision: int | None = None,
    ) -> DocumentPage:
        """One page of the documents, in the order of ids (by code point).

        Pages stay consistent under writes: a document that exists throughout is listed exactly once.

        Args:
            name: The collection.
            page_size: 1 to ``MAX_PAGE_SIZE``.
            page_token: ``next_page_token`` of the page before, with the same filter; empty for the first page.
            filter: Only documents whose payload matches.
            include_facets: Whether to read the facet embeddings too.
            min_revision: The read must see the writes up to this revision.

        Raises:
            InvalidInputError: A page size out of range, a token that is not ours or belongs to another listing.
        """
        raise NotImplementedError

    def count(
        self, name: str, *, filter: Filter | None = None, min_revision: int | None = None
    ) -> CountResult:
        """Number of documents, of those that match the filter when there is one."""
        raise NotImplementedError

    def search(
        self,
        name: str,
        query_facets: NDArray[np.float32],
        *,
        top_k: int,
        filter: Filter | None = None,
        exact: bool = False,
        min_revision: int | None = None,
    ) -> SearchResult:
        """Finds the documents whose best facet is closest to a facet of the query.

        Args:
            name: The collection.
            query_facets: ``[Q, Kq, D]``, finite; norms do not matter. Kq may differ from the collection's K.
            top_k: 1 to ``MAX_TOP_K``.
            filter: Only documents whose payload matches.
            exact: Compare every document, also where an approximate index exists.
            min_revision: The read must see the writes up to this revision.

        Raises:
            InvalidInputError: Wrong shape, NaN or infinite values, top_k out of range.
        """
        raise NotImplementedError

    def maintain(self) -> None:
        """Folds new documents into FAISS and saves the indexes that are due; the background thread calls it."""
        raise NotImplementedError
