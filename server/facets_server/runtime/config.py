"""Settings of the server, checked when they are made.

A setting comes from, later ones winning: its default here, the configuration file (TOML), the environment
(``FACETS_SERVER_<NAME>``), the command line. Only ``__main__`` reads the last three.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from facets.errors import ConfigError
from facets.index.config import MAX_BATCH_DOCUMENTS, MAX_PAGE_SIZE, MAX_TEXT_BYTES, MAX_TOP_K, EngineConfig

__all__ = [
    "ENVIRONMENT_PREFIX",
    "AdmissionConfig",
    "BatcherConfig",
    "LimitsConfig",
    "RelationsConfig",
    "SecurityConfig",
    "ServerConfig",
    "load_config",
]

ENVIRONMENT_PREFIX = "FACETS_SERVER_"


def _at_least(owner: object, lowest: float, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < lowest:
            raise ConfigError(f"{name} must be a number >= {lowest}, got {value!r}")


# What the document engine takes at most: a server may allow less, never more.
_ENGINE_LIMITS = {
    "max_text_bytes": MAX_TEXT_BYTES,
    "max_documents_per_upsert": MAX_BATCH_DOCUMENTS,
    "max_top_k": MAX_TOP_K,
    "max_page_size": MAX_PAGE_SIZE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitsConfig:
    """What one request may hold; the same names are told by ModelService."""

    max_texts_per_request: int = 512
    max_text_bytes: int = 32_768
    max_message_bytes: int = 16 * 1024 * 1024
    max_pairs_per_request: int = 256
    max_document_bytes: int = 1_048_576
    max_sentences_per_document: int = 16_384  # given, or found in a raw text; some seconds of one core
    max_documents_per_upsert: int = 512
    max_queries_per_search: int = 64
    max_top_k: int = 1000
    max_page_size: int = 1000
    max_nearest_words: int = 100
    max_evidence_hits: int = 1000  # queries x top_k of a search with evidence
    max_patterns_per_request: int = 4096
    max_gazetteer_names: int = 100_000
    max_slots_per_request: int = 64
    max_relation_scores: int = 500_000  # patterns or pairs of entities x relations told of each
    max_ranked_papers: int = 50_000  # papers of a collection that RankPapers compares; so many are kept in memory

    def __post_init__(self) -> None:
        _at_least(self, 1, *(f.name for f in fields(self)))
        _at_least(self, 4096, "max_message_bytes")
        for name, most in _ENGINE_LIMITS.items():
            if getattr(self, name) > most:
                raise ConfigError(
                    f"{name} must be <= {most}, what the document engine takes, got {getattr(self, name)}"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class BatcherConfig:
    """How texts of different calls are fused into one forward pass."""

    max_batch_tokens: int = 8192  # texts x longest text, padding counted
    max_batch_texts: int = 256
    lookahead_batches: int = 4  # batches' worth of waiting texts that are sorted by length together
    max_wait_ms: float = 0.0  # how long a lone text waits for company; 0: while the batch before runs

    def __post_init__(self) -> None:
        _at_least(self, 1, "max_batch_tokens", "max_batch_texts", "lookahead_batches")
        _at_least(self, 0, "max_wait_ms")


@dataclass(frozen=True, kw_only=True, slots=True)
class AdmissionConfig:
    """How many calls are worked on and how many may wait."""

    max_concurrent_requests: int = 96
    max_queued_requests: int = 192
    max_streams: int = 32
    max_stream_window: int = 8  # requests of one stream read ahead

    def __post_init__(self) -> None:
        _at_least(self, 1, "max_concurrent_requests", "max_streams", "max_stream_window")
        _at_least(self, 0, "max_queued_requests")


@dataclass(frozen=True, kw_only=True, slots=True)
class SecurityConfig:
    """TLS and bearer keys; all off by default."""

    tls_certificate: Path | None = None  # PEM chain of the server
    tls_key: Path | None = None  # its PEM private key
    tls_client_ca: Path | None = None  # PEM; when set, clients must show a certificate signed by it
    api_keys_file: Path | None = None  # one bearer key a line; when set, every call but health needs one

    def __post_init__(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ConfigError("tls_certificate and tls_key must be given together, got only one of them")
        if self.tls_client_ca is not None and self.tls_certificate is None:
            raise ConfigError("tls_client_ca needs tls_certificate and tls_key, got neither")


@dataclass(frozen=True, kw_only=True, slots=True)
class RelationsConfig:
    """Where RelationService finds entities when a request names none; both are read when first asked for."""

    gazetteer: Path | None = None  # UTF-8, one name of an entity a line
    ner_pipeline: str = "en_core_web_sm"  # name or folder of an installed spaCy pipeline


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerConfig:
    """Everything ``facets-server`` can be told."""

    host: str = "0.0.0.0"
    port: int = 50051  # 0: any free port, printed at start
    data_dir: Path = Path("facets-data")
    models: tuple[str, ...] = ()  # names or folders, the first one is the default; empty: the shipped model
    metrics_port: int = -1  # Prometheus over HTTP; -1: off, 0: any free port
    drain_s: float = 20.0  # after SIGTERM, how long running calls may take to end
    log_level: str = "INFO"
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    batcher: BatcherConfig = field(default_factory=BatcherConfig)
    admission: AdmissionConfig = field(default_factory=AdmissionConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    relations: RelationsConfig = field(default_factory=RelationsConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)  # how collections are indexed and saved

    def __post_init__(self) -> None:
        _at_least(self, 0, "port", "drain_s")
        _at_least(self, -1, "metrics_port")
        for name in ("port", "metrics_port"):
            if getattr(self, name) > 65535:
                raise ConfigError(f"{name} must be <= 65535, got {getattr(self, name)}")
        if self.log_level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise ConfigError(f"log_level must be DEBUG, INFO, WARNING or ERROR, got {self.log_level!r}")


_BOOLEANS = {"true": True, "false": False}
_SECTIONS: dict[str, type] = {
    "limits": LimitsConfig,
    "batcher": BatcherConfig,
    "admission": AdmissionConfig,
    "security": SecurityConfig,
    "relations": RelationsConfig,
    "engine": EngineConfig,
}


def load_config(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> ServerConfig:
    """Puts together the settings of file, environment and flags, later ones winning.

    Args:
        file: TOML with the fields of ServerConfig; its parts are tables (``[limits]``).
        environment: Variables; those called ``FACETS_SERVER_<SETTING>`` count, e.g. ``FACETS_SERVER_PORT`` or
            ``FACETS_SERVER_LIMITS_MAX_TOP_K``. Several models are separated by commas.
        flags: Settings by name; ``None`` means not given.

    Raises:
        ConfigError: The file cannot be read, a setting is unknown, or a value breaks its rule.
    """
    values: dict[str, object] = {}
    if file is not None:
        values.update(_from_file(file))
    values.update(_from_environment(environment or {}))
    values.update({name: value for name, value in (flags or {}).items() if value is not None})
    top = {name: value for name, value in values.items() if "." not in name}
    sections = {section: replace(kind(), **_section(values, section)) for section, kind in _SECTIONS.items()}
    return ServerConfig(**_typed(top), **sections)


def _section(values: dict[str, object], section: str) -> dict[str, Any]:
    prefix = f"{section}."
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def _typed(values: dict[str, object]) -> dict[str, Any]:
    """Hands the checked values to a constructor whose fields mypy cannot follow through a dictionary."""
    return dict(values)


def _settings() -> dict[str, Any]:
    """Returns the type of every setting by its name (``port``, ``limits.max_top_k``)."""
    found: dict[str, Any] = {f.name: f.type for f in fields(ServerConfig) if f.name not in _SECTIONS}
    for section, kind in _SECTIONS.items():
        found.update({f"{section}.{f.name}": f.type for f in fields(kind)})
    return found


def _from_file(file: Path) -> dict[str, object]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"configuration file {file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration file {file} is not TOML: {error}") from error
    flat: dict[str, object] = {}
    for name, value in document.items():
        if name in _SECTIONS and isinstance(value, dict):
            flat.update({f"{name}.{key}": entry for key, entry in value.items()})
        else:
            flat[name] = value
    types = _settings()
    for name in flat:
        if name not in types:
            raise ConfigError(f"configuration file {file} has the unknown setting {name!r}")
    return {name: _from_toml(name, value, types[name]) for name, value in flat.items()}


def _from_toml(name: str, value: object, kind: object) -> object:
    if kind in (Path, Path | None) and isinstance(value, str):
        return Path(value)
    if kind == tuple[str, ...] and isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return tuple(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    if get_origin(kind) is Literal and value in get_args(kind):
        return value
    if kind == int | None and isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ConfigError(f"{name} must be of type {_type_name(kind)}, got {value!r}")


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    types = _settings()
    names = {name.replace(".", "_").upper(): name for name in types}
    values: dict[str, object] = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = names.get(variable.removeprefix(ENVIRONMENT_PREFIX))
        if name is None:
            raise ConfigError(f"environment variable {variable} names no setting")
        values[name] = _from_text(variable, text, types[name])
    return values


def _from_text(variable: str, text: str, kind: object) -> object:
    try:
        if kind in (int, int | None):
            return int(text)
        if kind is float:
            return float(text)
    except ValueError as error:
        raise ConfigError(f"{variable} must be of type {_type_name(kind)}, got {text!r}") from error
    if kind is bool and text.lower() not in _BOOLEANS:
        raise ConfigError(f"{variable} must be true or false, got {text!r}")
    if kind is bool:
        return _BOOLEANS[text.lower()]
    if kind in (Path, Path | None):
        return Path(text)
    if kind == tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def _type_name(kind: object) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    names = {
        int: "integer",
        int | None: "integer",
        bool: "true or false",
        float: "number",
        str: "string",
        tuple[str, ...]: "list of strings",
    }
    return names.get(kind, "path")  # type: ignore[call-overload]
