"""Settings and limits of the document engine; importing them loads nothing else."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from facets.config import AtLeastOne, NonNegativeInt, Settings

# What the engine takes at most; the limits of a server may be smaller.
MAX_TEXT_BYTES = 1024 * 1024  # UTF-8 bytes of a query, of a name
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024  # UTF-8 bytes of a document's text: some 20,000 pages
MAX_READ_BYTES = MAX_DOCUMENT_BYTES  # of the documents of one page or one get; one alone may have more
MAX_BATCH_DOCUMENTS = 10_000  # documents of one upsert; ids of one get or delete
MAX_PAGE_SIZE = 1_000  # documents of one page of a listing
MAX_TOP_K = 1_000  # hits of one query


def _check_store(store: SecretStr) -> SecretStr:
    if store.get_secret_value() != "sqlite" and not store.get_secret_value().startswith(
        ("postgres://", "postgresql://")
    ):
        raise PydanticCustomError("store", "an unknown store")
    return store


StoreAddress = Annotated[SecretStr, AfterValidator(_check_store)]  # never shown: it may hold a password


class EngineConfig(Settings):
    """How collections are indexed and when their indexes are saved; every default was measured."""

    # Where the documents are: `sqlite`: a file in the data directory; `postgres://...`: PostgreSQL, which other servers
    # may use, too.
    store: StoreAddress = SecretStr("sqlite")
    # A collection of at most this many facets (documents x K) is searched exactly, a larger one through an index of the
    # backend. 0 or more.
    exact_max_facets: NonNegativeInt = 100_000
    # What large collections are searched by: `faiss`; `exact`; `edge`, a shard of Qdrant in this process;
    # `qdrant://HOST[:PORT][?api_key=KEY]`, a Qdrant server or cluster.
    index: Annotated[str, Field(pattern=r"^(faiss|exact|edge|qdrant://[^/?]+(\?.*)?)$")] = "faiss"
    # Where large collections are searched: `cpu` by the backend; `cuda`, `cuda:1` ... by comparing everything, in the
    # memory of that GPU. A server sets it from its own `device`.
    device: str = "cpu"
    # What new collections keep of the direction of a facet, which decides what scores are exact to: `int8` (1 byte a
    # dimension) or `fp16` (2 bytes).
    stored_code: Literal["fp16", "int8"] = "int8"
    # Share of the exact top 10 that an approximate search must find; the number of probed lists is tuned to it on the
    # collection's own facets. In (0, 1].
    recall_target: Annotated[float, Field(gt=0, le=1)] = 0.99
    # Documents added to a collection's FAISS index before it is saved in the background. At least 1.
    snapshot_every_writes: AtLeastOne = 20_000
    snapshot_on_close: bool = True  # whether closing the engine saves every changed index
    # Whether a maintenance thread folds new documents into FAISS and saves snapshots. Tests turn it off and call
    # `CollectionEngine.maintain` themselves.
    background: bool = True
    # The document store never grows beyond this; None leaves it to the disk.
    max_database_bytes: AtLeastOne | None = None
