"""Settings and limits of the document engine; importing them loads nothing else."""

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from facets.config import AtLeastOne, NonNegativeInt, Settings

# Limits of the engine; a server may set lower ones.
MAX_TEXT_BYTES = 1024 * 1024  # UTF-8 bytes of a query or a name
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024  # UTF-8 bytes of a document's text: about 20,000 pages
MAX_READ_BYTES = MAX_DOCUMENT_BYTES  # total size of one get or search; a single document may be larger
MAX_PAGE_BYTES = 2**23  # the same of one page of a listing: other callers wait while a reply is made
MAX_BATCH_DOCUMENTS = 10_000  # documents of one upsert; ids of one get or delete
MAX_PAGE_SIZE = 1_000  # documents of one page of a listing
MAX_PAYLOAD_DEPTH = 32  # nested lists and objects in a payload
MAX_TOP_K = 1_000  # hits of one query
MAX_FILTER_NODES = 256  # conditions and combinations of one filter


def _check_store(store: SecretStr) -> SecretStr:
    address = store.get_secret_value()
    if address != "sqlite" and not address.startswith(("postgres://", "postgresql://")):
        raise PydanticCustomError("store", 'must be "sqlite" or postgres://USER:PASSWORD@HOST:PORT/DATABASE')
    return store


StoreAddress = Annotated[SecretStr, AfterValidator(_check_store)]  # secret: it may contain a password


class EngineConfig(Settings):
    """How collections are stored and indexed; every default was measured."""

    # `sqlite`: a file in the data directory; `postgres://...`: a database that several servers may share.
    store: StoreAddress = SecretStr("sqlite")
    # A collection of at most this many facets (documents x K) is searched exactly, a larger one by the backend.
    exact_max_facets: NonNegativeInt = 100_000
    # Backend for large collections: `faiss`; `exact`; `qdrant://HOST[:PORT][?api_key=KEY]`, a server or cluster.
    index: Annotated[str, Field(pattern=r"^(faiss|exact|qdrant://[^/?]+(\?.*)?)$")] = "faiss"
    # Device that searches large collections: `cpu` uses the backend in `index`; with `cuda`, `cuda:1` ..., `faiss` is
    # replaced by exact search in the memory of that GPU. A server sets it from its own `device`.
    device: str = "cpu"
    # Share of the exact top 10 that an approximate search should find, in (0, 1]; the number of probed lists is tuned
    # to it on the collection's own facets.
    recall_target: Annotated[float, Field(gt=0, le=1)] = 0.99
    snapshot_every_writes: AtLeastOne = 20_000  # documents added to a FAISS index before it is saved
    snapshot_on_close: bool = True  # whether closing the engine saves every changed index
    background: bool = True  # whether a thread folds new documents into FAISS and saves snapshots
    max_database_bytes: AtLeastOne | None = None  # maximum size of the SQLite file; None: limited by the disk
