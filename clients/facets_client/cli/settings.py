"""Global settings of the ``facets`` command: options, profiles of the configuration file, and the client they make."""

import sys
import threading
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, TextIO, TypeVar

import platformdirs
import typer

from facets_client.cli.failures import without_grpc_prefix
from facets_client.cli.output import print_json, say
from facets_client.client import FacetsClient
from facets_client.core.blocking import Background
from facets_client.core.channel import RequestT, ResponseT, TlsConfig

# Setting of a profile -> its types and the name to show for them.
_PROFILE_SETTINGS: dict[str, tuple[tuple[type, ...], str]] = {
    "target": ((str,), "a string"),
    "api_key": ((str,), "a string"),
    "api_key_file": ((str,), "a string"),
    "tls": ((bool,), "true or false"),
    "ca_cert": ((str,), "a string"),
    "timeout_s": ((int, float), "a number"),
    "collection": ((str,), "a string"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """The settings of a profile; None: not set."""

    name: str = ""
    target: str | None = None
    api_key: str | None = None
    tls: bool = False
    ca_cert: Path | None = None  # PEM file of the trusted CAs
    timeout_s: float | None = None
    collection: str | None = None  # default for commands that need one


def config_file() -> Path:
    """``config.toml`` in the user's configuration folder (``XDG_CONFIG_HOME`` on Linux)."""
    return platformdirs.user_config_path("facets") / "config.toml"


def profile_names() -> list[str]:
    """Names of the profiles, for completion; none if the file cannot be read."""
    try:
        return sorted(_read(config_file())[1])
    except (OSError, ValueError):
        return []


def read_profile(name: str | None, *, is_elsewhere: bool = False) -> Profile:
    """The profile of that name, else the one that the file selects with ``profile = "NAME"``, else an empty one.

    Args:
        name: Name of the profile; None: not given.
        is_elsewhere: Whether the user has named a server. Then only a profile given by name is used, so that the key
            of another server is not sent there.

    Raises:
        ValueError: There is no such profile, or the file is damaged.
        OSError: The file, or one that the profile names, cannot be read.
    """
    file = config_file()
    if name is None and (is_elsewhere or not file.is_file()):
        return Profile()
    default, profiles = _read(file) if file.is_file() else ("", {})
    wanted = name or default
    if not wanted:
        return Profile()
    if wanted not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise ValueError(f"no profile {wanted!r} in {file}: expected one of its profiles ({known})")
    return _profile(wanted, profiles[wanted], file)


def _read(file: Path) -> tuple[str, dict[str, Any]]:
    """Name of the default profile (empty for none), and all profiles."""
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not TOML: {error}") from error
    profiles, default = values.pop("profiles", {}), values.pop("profile", "")
    if values:
        raise ValueError(f"{file}: expected profile and [profiles.NAME], got {', '.join(sorted(values))}")
    if not isinstance(default, str):
        raise ValueError(f"{file}: profile must be a name, got {default!r}")
    if not isinstance(profiles, dict) or not all(isinstance(profile, dict) for profile in profiles.values()):
        raise ValueError(f"{file}: profiles must be tables like [profiles.work]")
    return default, profiles


def _profile(name: str, values: dict[str, Any], file: Path) -> Profile:
    for key, value in values.items():
        if key not in _PROFILE_SETTINGS:
            raise ValueError(f"{file}: profile {name!r} has {key!r}, expected {', '.join(_PROFILE_SETTINGS)}")
        types, types_name = _PROFILE_SETTINGS[key]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise ValueError(f"{file}: {key} of profile {name!r} must be {types_name}, got {value!r}")
    settings = {field.name: values[field.name] for field in fields(Profile) if field.name in values}
    # Relative paths are resolved against the folder of the configuration file.
    if "ca_cert" in values:
        settings["ca_cert"] = file.parent / Path(values["ca_cert"]).expanduser()
    if "api_key_file" in values:
        if "api_key" in values:
            raise ValueError(f"{file}: profile {name!r} has api_key and api_key_file, expected one of them")
        key_file = file.parent / Path(values["api_key_file"]).expanduser()
        settings["api_key"] = key_file.read_text(encoding="utf-8").strip()
    return Profile(name=name, **settings)


def default_options(command: Any, values: Mapping[str, object]) -> dict[str, Any]:
    """Values for the required options of a command or group, as Typer takes defaults; None: not set."""
    if hasattr(command, "commands"):
        return {name: default_options(inner, values) for name, inner in command.commands.items()}
    required = {option.name for option in command.params if option.required and option.param_type_name == "option"}
    return {name: value for name, value in values.items() if name in required and value is not None}


class CommandClient(FacetsClient):
    """Client for commands. Ctrl-C works at any time, and slow calls show a notice on a terminal.

    Attributes:
        screen: The terminal; None: shows nothing.
        first_s: Seconds before a waiting call shows a notice.
    """

    screen: TextIO | None = None
    first_s = 1.0

    def close(self) -> None:
        """Closes the connection; calls under way are cancelled."""
        Background(super().close).result()

    def _call(self, request: RequestT, response: type[ResponseT]) -> ResponseT:
        if threading.current_thread() is not threading.main_thread():
            return super()._call(request, response)
        limit_s = self._connection.timeout_s(type(request))
        is_shown = False

        def show_waiting(waited_s: float) -> None:
            nonlocal is_shown
            if self.screen and waited_s >= self.first_s:
                is_shown = True
                waited = f"{int(waited_s)} s of at most {limit_s:g} s (--timeout-s)"
                self._show(f"\r\x1b[Kfacets: no answer from {self.target} yet, trying for {waited}")

        try:
            return Background(partial(super()._call, request, response)).result(show_waiting)
        finally:
            if is_shown:
                self._show("\r\x1b[K")

    def _show(self, line: str) -> None:
        assert self.screen is not None
        self.screen.write(line)
        self.screen.flush()


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The global options."""

    target: str
    json: bool
    timeout_s: float | None
    api_key: str | None
    tls: bool | TlsConfig
    quiet: bool = False

    def connect(self, *, timeout_s: float | None = None, watched: bool = True) -> FacetsClient:
        """Returns a client, which the caller must close.

        Args:
            timeout_s: Seconds for one request if --timeout-s is not set.
            watched: Whether slow calls show a notice on a terminal; False beside a progress bar.
        """
        timeout_s = timeout_s if self.timeout_s is None else self.timeout_s
        client = CommandClient(self.target, timeout_s=timeout_s, api_key=self.api_key, tls=self.tls)
        client.screen = sys.stderr if watched and not (self.json or self.quiet) and sys.stderr.isatty() else None
        return client

    def note(self, message: str) -> None:
        """Prints a note on standard error, unless --json or --quiet reserves it for errors."""
        if not self.json and not self.quiet:
            say(f"facets: {message}")

    def note_waiting(self, reason: str) -> None:
        """Notes that the command waits for the server."""
        self.note(f"waiting for the server: {without_grpc_prefix(reason)}")


AnswerT = TypeVar("AnswerT")


def ask(context: typer.Context, call: Callable[[FacetsClient], AnswerT], show: Callable[[AnswerT], None]) -> None:
    """Makes a call and prints its answer: as JSON with --json, else with ``show``."""
    settings = settings_of(context)
    with settings.connect() as client:
        answer = call(client)
    if settings.json:
        print_json(answer)
    else:
        show(answer)


def settings_of(context: typer.Context) -> Settings:
    """The global settings of a command."""
    settings = context.obj
    assert isinstance(settings, Settings)
    return settings
