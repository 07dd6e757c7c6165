import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Model(_message.Message):
    __slots__ = ("name", "revision", "task", "num_facets", "dim", "vocabulary_size", "max_tokens", "is_default", "limits", "space", "encoder_settings")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    NUM_FACETS_FIELD_NUMBER: _ClassVar[int]
    DIM_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    IS_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    ENCODER_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    revision: str
    task: str
    num_facets: int
    dim: int
    vocabulary_size: int
    max_tokens: int
    is_default: bool
    limits: Limits
    space: str
    encoder_settings: EncoderSettings
    def __init__(self, name: _Optional[str] = ..., revision: _Optional[str] = ..., task: _Optional[str] = ..., num_facets: _Optional[int] = ..., dim: _Optional[int] = ..., vocabulary_size: _Optional[int] = ..., max_tokens: _Optional[int] = ..., is_default: _Optional[bool] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., space: _Optional[str] = ..., encoder_settings: _Optional[_Union[EncoderSettings, _Mapping]] = ...) -> None: ...

class EncoderSettings(_message.Message):
    __slots__ = ("pooling", "query_prompt", "document_prompt", "similarity", "backend")
    POOLING_FIELD_NUMBER: _ClassVar[int]
    QUERY_PROMPT_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_PROMPT_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    pooling: str
    query_prompt: str
    document_prompt: str
    similarity: str
    backend: str
    def __init__(self, pooling: _Optional[str] = ..., query_prompt: _Optional[str] = ..., document_prompt: _Optional[str] = ..., similarity: _Optional[str] = ..., backend: _Optional[str] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_texts_per_request", "max_message_bytes", "max_pairs_per_request", "max_documents_per_upsert", "max_queries_per_search", "max_stream_window", "max_evidence_hits", "max_patterns_per_request", "max_slots_per_request", "max_relation_scores", "max_relation_characters")
    MAX_TEXTS_PER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PAIRS_PER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MAX_DOCUMENTS_PER_UPSERT_FIELD_NUMBER: _ClassVar[int]
    MAX_QUERIES_PER_SEARCH_FIELD_NUMBER: _ClassVar[int]
    MAX_STREAM_WINDOW_FIELD_NUMBER: _ClassVar[int]
    MAX_EVIDENCE_HITS_FIELD_NUMBER: _ClassVar[int]
    MAX_PATTERNS_PER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MAX_SLOTS_PER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MAX_RELATION_SCORES_FIELD_NUMBER: _ClassVar[int]
    MAX_RELATION_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    max_texts_per_request: int
    max_message_bytes: int
    max_pairs_per_request: int
    max_documents_per_upsert: int
    max_queries_per_search: int
    max_stream_window: int
    max_evidence_hits: int
    max_patterns_per_request: int
    max_slots_per_request: int
    max_relation_scores: int
    max_relation_characters: int
    def __init__(self, max_texts_per_request: _Optional[int] = ..., max_message_bytes: _Optional[int] = ..., max_pairs_per_request: _Optional[int] = ..., max_documents_per_upsert: _Optional[int] = ..., max_queries_per_search: _Optional[int] = ..., max_stream_window: _Optional[int] = ..., max_evidence_hits: _Optional[int] = ..., max_patterns_per_request: _Optional[int] = ..., max_slots_per_request: _Optional[int] = ..., max_relation_scores: _Optional[int] = ..., max_relation_characters: _Optional[int] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models", "next_page_token")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    next_page_token: str
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetModelResponse(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: Model
    def __init__(self, model: _Optional[_Union[Model, _Mapping]] = ...) -> None: ...

class GetServerStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerStatusResponse(_message.Message):
    __slots__ = ("version", "start_time", "num_running", "num_queued", "num_streams", "model_queues", "request_counts", "disk_uses", "free_bytes", "last_backup_time", "backup_dir", "backups", "backup_keep", "data_dir")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    NUM_RUNNING_FIELD_NUMBER: _ClassVar[int]
    NUM_QUEUED_FIELD_NUMBER: _ClassVar[int]
    NUM_STREAMS_FIELD_NUMBER: _ClassVar[int]
    MODEL_QUEUES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_COUNTS_FIELD_NUMBER: _ClassVar[int]
    DISK_USES_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LAST_BACKUP_TIME_FIELD_NUMBER: _ClassVar[int]
    BACKUP_DIR_FIELD_NUMBER: _ClassVar[int]
    BACKUPS_FIELD_NUMBER: _ClassVar[int]
    BACKUP_KEEP_FIELD_NUMBER: _ClassVar[int]
    DATA_DIR_FIELD_NUMBER: _ClassVar[int]
    version: str
    start_time: _timestamp_pb2.Timestamp
    num_running: int
    num_queued: int
    num_streams: int
    model_queues: _containers.RepeatedCompositeFieldContainer[ModelQueue]
    request_counts: _containers.RepeatedCompositeFieldContainer[RequestCount]
    disk_uses: _containers.RepeatedCompositeFieldContainer[DiskUse]
    free_bytes: int
    last_backup_time: _timestamp_pb2.Timestamp
    backup_dir: str
    backups: _containers.RepeatedCompositeFieldContainer[Backup]
    backup_keep: int
    data_dir: str
    def __init__(self, version: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., num_running: _Optional[int] = ..., num_queued: _Optional[int] = ..., num_streams: _Optional[int] = ..., model_queues: _Optional[_Iterable[_Union[ModelQueue, _Mapping]]] = ..., request_counts: _Optional[_Iterable[_Union[RequestCount, _Mapping]]] = ..., disk_uses: _Optional[_Iterable[_Union[DiskUse, _Mapping]]] = ..., free_bytes: _Optional[int] = ..., last_backup_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., backup_dir: _Optional[str] = ..., backups: _Optional[_Iterable[_Union[Backup, _Mapping]]] = ..., backup_keep: _Optional[int] = ..., data_dir: _Optional[str] = ...) -> None: ...

class TakeBackupRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TakeBackupResponse(_message.Message):
    __slots__ = ("backup", "problems", "removed_folders")
    BACKUP_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FOLDERS_FIELD_NUMBER: _ClassVar[int]
    backup: Backup
    problems: _containers.RepeatedScalarFieldContainer[str]
    removed_folders: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, backup: _Optional[_Union[Backup, _Mapping]] = ..., problems: _Optional[_Iterable[str]] = ..., removed_folders: _Optional[_Iterable[str]] = ...) -> None: ...

class Backup(_message.Message):
    __slots__ = ("folder", "made", "num_bytes")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    MADE_FIELD_NUMBER: _ClassVar[int]
    NUM_BYTES_FIELD_NUMBER: _ClassVar[int]
    folder: str
    made: _timestamp_pb2.Timestamp
    num_bytes: int
    def __init__(self, folder: _Optional[str] = ..., made: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., num_bytes: _Optional[int] = ...) -> None: ...

class ModelQueue(_message.Message):
    __slots__ = ("model", "num_waiting")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NUM_WAITING_FIELD_NUMBER: _ClassVar[int]
    model: str
    num_waiting: int
    def __init__(self, model: _Optional[str] = ..., num_waiting: _Optional[int] = ...) -> None: ...

class RequestCount(_message.Message):
    __slots__ = ("code", "num_requests")
    CODE_FIELD_NUMBER: _ClassVar[int]
    NUM_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    code: str
    num_requests: int
    def __init__(self, code: _Optional[str] = ..., num_requests: _Optional[int] = ...) -> None: ...

class DiskUse(_message.Message):
    __slots__ = ("part", "num_bytes")
    PART_FIELD_NUMBER: _ClassVar[int]
    NUM_BYTES_FIELD_NUMBER: _ClassVar[int]
    part: str
    num_bytes: int
    def __init__(self, part: _Optional[str] = ..., num_bytes: _Optional[int] = ...) -> None: ...
