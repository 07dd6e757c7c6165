"""Models, versions, timings and nearest words."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from facets_proto.v1 import common_pb2, documents_pb2, models_pb2, texts_pb2
from google.protobuf import timestamp_pb2
from numpy.typing import NDArray

import facets
from facets.model.contract import ModelInfo
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.limits import LimitsConfig, check_number
from facets_server.runtime.metrics import Disk
from facets_server.runtime.rooms import ServerParts

__all__ = [
    "model_to_proto",
    "nearest_to_proto",
    "num_words_of",
    "server_status_to_proto",
    "spans_to_proto",
    "timings_to_proto",
    "version_to_proto",
]

_DEFAULT_NUM_WORDS = 5
_NORMALIZATIONS = {"passages": models_pb2.NORMALIZATION_UNIT}


def version_to_proto(model: ModelInfo) -> common_pb2.ModelVersion:
    """Name and revision of a model."""
    return common_pb2.ModelVersion(name=model.name, revision=model.revision)


def timings_to_proto(call: CallContext) -> common_pb2.Timings:
    """Where the time of a call went so far."""
    return common_pb2.Timings(queue_ms=call.queue_ms, inference_ms=call.inference_ms, total_ms=call.elapsed_ms())


def nearest_to_proto(words: Sequence[tuple[str, float]]) -> list[common_pb2.NearestWord]:
    """Words and their cosines."""
    return [common_pb2.NearestWord(word=word, cosine=cosine) for word, cosine in words]


def spans_to_proto(spans: NDArray[np.integer] | None) -> list[common_pb2.Span]:
    """Parts of a text, ``[K, 2]``; None: there are none."""
    return [] if spans is None else [common_pb2.Span(start=start, end=end) for start, end in spans.tolist()]


def num_words_of(
    request: documents_pb2.SearchRequest | texts_pb2.ExplainRequest | texts_pb2.ScoreRequest,
    limits: LimitsConfig,
) -> int:
    """How many nearest words a request asks for.

    Raises:
        InvalidInputError: None or too many.
    """
    num_words = request.num_words if request.HasField("num_words") else _DEFAULT_NUM_WORDS
    return check_number(num_words, ("num_words",), limits.max_nearest_words)


def model_to_proto(model: ModelInfo, config: ServerConfig, *, is_default: bool) -> models_pb2.Model:
    """What the server serves and within which limits."""
    limits, admission = config.limits, config.admission
    return models_pb2.Model(
        name=model.name,
        revision=model.revision,
        task=model.task,
        num_facets=model.num_facets,
        dim=model.dim,
        vocabulary_size=model.vocabulary_size,
        max_tokens=model.max_tokens,
        normalization=_NORMALIZATIONS.get(model.task, models_pb2.NORMALIZATION_NONE),
        is_default=is_default,
        space=model.space,
        limits=models_pb2.Limits(
            max_texts_per_request=limits.max_texts_per_request,
            max_text_bytes=limits.max_text_bytes,
            max_message_bytes=limits.max_message_bytes,
            max_pairs_per_request=limits.max_pairs_per_request,
            max_document_bytes=limits.max_document_bytes,
            max_sentences_per_document=limits.max_sentences_per_document,
            max_documents_per_upsert=limits.max_documents_per_upsert,
            max_queries_per_search=limits.max_queries_per_search,
            max_top_k=limits.max_top_k,
            max_page_size=limits.max_page_size,
            max_nearest_words=limits.max_nearest_words,
            max_concurrent_requests=admission.max_concurrent_requests,
            max_queued_requests=admission.max_queued_requests,
            max_stream_window=admission.max_stream_window,
            max_evidence_hits=limits.max_evidence_hits,
            max_patterns_per_request=limits.max_patterns_per_request,
            max_gazetteer_names=limits.max_gazetteer_names,
            max_slots_per_request=limits.max_slots_per_request,
            max_relation_scores=limits.max_relation_scores,
            max_ranked_papers=limits.max_ranked_papers,
        ),
    )


def server_status_to_proto(parts: ServerParts, disk: Disk, started: datetime) -> models_pb2.GetServerStatusResponse:
    """How the server is now."""
    reply = models_pb2.GetServerStatusResponse(
        version=facets.__version__,
        start_time=_time_to_proto(started),
        num_running=parts.admission.num_running,
        num_queued=parts.admission.num_waiting,
        num_streams=parts.admission.num_streams,
        free_bytes=disk.free_bytes,
    )
    for served in parts.models.all():
        reply.model_queues.add(model=served.info.name, num_waiting=served.num_waiting)
    for code, number in sorted(parts.metrics.num_by_code().items()):
        reply.request_counts.add(code=code, num_requests=number)
    for part, num_bytes in disk.num_bytes.items():
        reply.disk_uses.add(part=part, num_bytes=num_bytes)
    if disk.last_backup is not None:
        reply.last_backup_time.CopyFrom(_time_to_proto(disk.last_backup))
    return reply


def _time_to_proto(time: datetime) -> timestamp_pb2.Timestamp:
    made = timestamp_pb2.Timestamp()
    made.FromDatetime(time)
    return made
