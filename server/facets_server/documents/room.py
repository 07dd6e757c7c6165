"""The room of documents. Its models are those of texts; models of passages come first if there are any."""

from facets.documents.store import SCHEMA as DOCUMENTS
from facets_server.documents.recall import RecallSampler
from facets_server.documents.service import CollectionService, DocumentService
from facets_server.documents.stream_store import SCHEMA as STREAMS
from facets_server.documents.stream_store import StreamStore
from facets_server.runtime.rooms import Room, ServerParts
from facets_server.texts.served import text_models

_STREAMS_FILE = "ingest-streams.sqlite3"
_TASKS = ("passages", "sentences")


def _servicers(parts: ServerParts) -> list[object]:
    config = parts.config
    models = text_models(parts.models, *_TASKS)
    streams = StreamStore(parts.engine.shared_database or config.data_dir / _STREAMS_FILE)
    parts.closing.callback(streams.close)
    recall = RecallSampler(config.observability.recall_share, parts.recall)
    parts.closing.callback(recall.close)
    collections = CollectionService(models, parts.engine, config.limits)
    return [collections, DocumentService(models, parts, streams, recall)]


_STORES = {_STREAMS_FILE: STREAMS, "documents.sqlite3": DOCUMENTS}
ROOM = Room(tasks=_TASKS, servicers=_servicers, stores=_STORES)
