"""Records of the library as messages and back: the codec, in the words of requests and replies.

A message that is none of a record's is an error of the caller's, with the path of the field. What every reply has,
the model and the times, is given to ``message_of`` as it is: ``model=served.info, timings=call``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

import numpy as np
from facets_proto.codec import from_message, message_of, to_message
from facets_proto.v1 import common_pb2, documents_pb2, models_pb2, papers_pb2, relations_pb2, texts_pb2
from facets_proto.values import WireError, array_from_message
from google.protobuf.message import Message
from numpy.typing import NDArray

import facets
from facets.errors import ErrorPath, InvalidInputError
from facets.model.contract import ModelInfo
from facets.storage import backups_in
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.limits import LimitsConfig, check_number
from facets_server.runtime.metrics import Disk
from facets_server.runtime.rooms import ServerParts

RecordT = TypeVar("RecordT")

_DEFAULT_NUM_WORDS = 5
_DEFAULT_TOP_K = 10
_MOST_LISTED = 20  # backups in a status
_NORMALIZATIONS = {"passages": "unit"}
_DATA_TYPES = {
    common_pb2.DATA_TYPE_UNSPECIFIED: np.float32,
    common_pb2.DATA_TYPE_FLOAT32: np.float32,
    common_pb2.DATA_TYPE_FLOAT16: np.float16,
}


@contextmanager
def named(path: ErrorPath) -> Iterator[None]:
    """Errors about a message as errors of the request that has it at ``path``."""
    try:
        yield
    except WireError as error:
        raise InvalidInputError(error.rule, path=(*path, *error.path)) from error


def record_of(message: Message, record_type: type[RecordT], path: ErrorPath = (), **others: object) -> RecordT:
    """A message of a request as a record, see ``from_message``.

    Args:
        message: From outside.
        record_type: A dataclass.
        path: Of the message in the request.
        others: Fields that the message does not have.

    Raises:
        InvalidInputError: A value of the message is none of the record's.
    """
    with named(path):
        return from_message(message, record_type, **others)


def array_of(message: common_pb2.FacetArray, path: ErrorPath, *, num_axes: int) -> NDArray[np.float32]:
    """An array of a request as float32.

    Args:
        message: From outside.
        path: Its path in the request.
        num_axes: Expected length of the shape.

    Raises:
        InvalidInputError: Type, shape and bytes do not fit, or a number is not finite.
    """
    with named(path):
        return array_from_message(message, num_axes=num_axes).astype(np.float32, copy=False)


def as_data_type(array: NDArray[np.floating], data_type: int) -> NDArray[np.floating]:
    """An array of the type that a request asks for; magnitudes beyond half precision are cut at its largest.

    Raises:
        InvalidInputError: There is no such type.
    """
    dtype = _DATA_TYPES.get(data_type)  # type: ignore[call-overload]
    if dtype is None:
        raise InvalidInputError(f"must be float32 or float16, got number {data_type}", path="dtype")
    if dtype is np.float16:
        limit = float(np.finfo(np.float16).max)
        array = np.clip(array, -limit, limit)
    return array.astype(dtype, copy=False)


def num_words_of(
    request: documents_pb2.SearchRequest
    | texts_pb2.ExplainRequest
    | texts_pb2.ScoreRequest
    | texts_pb2.SuggestTopicsRequest,
    limits: LimitsConfig,
) -> int:
    """How many nearest words a request asks for.

    Raises:
        InvalidInputError: None or too many.
    """
    num_words = request.num_words if request.HasField("num_words") else _DEFAULT_NUM_WORDS
    return check_number(num_words, ("num_words",), limits.max_nearest_words)


def top_k_of(
    message: documents_pb2.SearchRequest
    | papers_pb2.PaperOptions
    | papers_pb2.RankPapersRequest
    | papers_pb2.FindCandidatesRequest
    | relations_pb2.FillSlotsRequest
    | relations_pb2.ScoreRelationsRequest,
    path: ErrorPath,
    limits: LimitsConfig,
) -> int:
    """How many results a request asks for.

    Raises:
        InvalidInputError: None or too many.
    """
    top_k = message.top_k if message.HasField("top_k") else min(_DEFAULT_TOP_K, limits.max_top_k)
    return check_number(top_k, path, limits.max_top_k)


def model_to_message(model: ModelInfo, config: ServerConfig, *, is_default: bool) -> models_pb2.Model:
    """What the server serves and within which limits."""
    admission = {
        name: getattr(config.admission, name)
        for name in ("max_concurrent_requests", "max_queued_requests", "max_stream_window")
    }
    return to_message(
        model,
        models_pb2.Model,
        normalization=_NORMALIZATIONS.get(model.task, "none"),
        is_default=is_default,
        limits=to_message(config.limits, models_pb2.Limits, **admission),
    )


def server_status_to_message(parts: ServerParts, disk: Disk, started: datetime) -> models_pb2.GetServerStatusResponse:
    """How the server is now."""
    folder = parts.config.backup_dir
    return message_of(
        models_pb2.GetServerStatusResponse,
        version=facets.__version__,
        start_time=started,
        num_running=parts.admission.num_running,
        num_queued=parts.admission.num_waiting,
        num_streams=parts.admission.num_streams,
        model_queues=[(served.info.name, served.num_waiting) for served in parts.models.all()],
        request_counts=sorted(parts.metrics.num_by_code().items()),
        disk_uses=disk.num_bytes,
        free_bytes=disk.free_bytes,
        last_backup_time=disk.last_backup,
        backup_dir=str(folder.absolute()) if folder else "",
        backup_keep=parts.config.backup_keep,
        backups=backups_in(folder)[:_MOST_LISTED] if folder else [],
    )
