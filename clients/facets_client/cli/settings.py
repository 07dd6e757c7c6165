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

from facets_client.cli.output import print_json, say
from facets_client.client import FacetsClient
from facets_client.core.blocking import Background
from facets_client.core.channel import RequestT, ResponseT, TlsConfig

# Setting of a profile -> the types that it may have.
_KINDS: dict[str, tuple[type, ...]] = {
    "target": (str,),
    "api_key": (str,),
    "api_key_file": (str,),
    "tls": (bool,),
    "ca_cert": (str,),
    "timeout_s": (int, float),
    "collection": (str,),
}
_KIND_NAMES = {str: "a string", bool: "true or false", int: "a number"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """What a profile sets; None: nothing is said.

    Attributes:
        name: Of the profile; empty: there is none.
        target: Server as HOST:PORT.
        api_key: Key for it.
        tls: Whether to encrypt.
        ca_cert: PEM file of the authorities to trust.
        timeout_s: Seconds for one request.
        collection: Of commands that need one and are given none.
    """

    name: str = ""
    target: str | None = None
    api_key: str | None = None
    tls: bool = False
    ca_cert: Path | None = None
    timeout_s: float | None = None
    collection: str | None = None


def config_file() -> Path:
    """``config.toml`` of the command in the user's folder for configuration (``XDG_CONFIG_HOME`` on Linux)."""
    return platformdirs.user_config_path("facets") / "config.toml"


def profile_names() -> list[str]:
    """Names of the profiles in the file, for completion; none where it cannot be read."""
    try:
        return sorted(_read(config_file())[1])
    except (OSError, ValueError):
        return []


def read_profile(name: str | None, *, is_elsewhere: bool = False) -> Profile:
    """The profile of that name, else the one that the file names with ``profile = "NAME"``, else an empty one.

    Args:
        name: The wanted profile; None: none was asked for.
        is_elsewhere: The user has named a server. Then only a profile that was asked for counts: the key of
            another server must not be sent there.

    Raises:
        ValueError: There is no such profile, or the file is damaged; the message names the file.
        OSError: The file, or one that the profile names, cannot be read.
    """
    file = config_file()
    if (name is None and is_elsewhere) or (name is None and not file.is_file()):
        return Profile()
    default, profiles = _read(file) if file.is_file() else ("", {})
    wanted = name or default
    if not wanted:
        return Profile()
    if wanted not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise ValueError(f"no profile {wanted!r} in {file}: expected one of its profiles ({known})")
    return _profile(wanted, profiles[wanted], file)


def default_options(command: Any, values: Mapping[str, object]) -> dict[str, Any]:
    """Values for required options of a command, or of a group, as Typer takes defaults; None: there is none."""
    if hasattr(command, "commands"):
        return {name: default_options(inner, values) for name, inner in command.commands.items()}
    required = {option.name for option in command.params if option.required and option.param_type_name == "option"}
    return {name: value for name, value in values.items() if name in required and value is not None}


def _read(file: Path) -> tuple[str, dict[str, Any]]:
    """Name of the default profile, empty for none, and all profiles."""
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
        if key not in _KINDS:
            raise ValueError(f"{file}: profile {name!r} has {key!r}, expected {', '.join(_KINDS)}")
        kinds = _KINDS[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ValueError(f"{file}: {key} of profile {name!r} must be {_KIND_NAMES[kinds[0]]}, got {value!r}")
    known = {field.name for field in fields(Profile)}
    settings = {key: value for key, value in values.items() if key in known}
    if "ca_cert" in values:
        settings["ca_cert"] = _beside(file, values["ca_cert"])
    if "api_key_file" in values:
        if "api_key" in values:
            raise ValueError(f"{file}: profile {name!r} has api_key and api_key_file, expected one of them")
        settings["api_key"] = _beside(file, values["api_key_file"]).read_text(encoding="utf-8").strip()
    return Profile(name=name, **settings)


def _beside(file: Path, path: str) -> Path:
    """Relative paths count from the folder of the configuration file."""
    return file.parent / Path(path).expanduser()


class CommandClient(FacetsClient):
    """The client of a command: Ctrl-C may come at any time, and calls that wait say so on a terminal.

    Attributes:
        screen: The terminal; None: nobody is told.
        first_s: Shorter waits are none.
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
        said = ""

        def tell(waited_s: float) -> None:
            nonlocal said
            if self.screen and waited_s >= self.first_s:
                waited = f"{int(waited_s)} s of at most {limit_s:g} s (--timeout-s)"
                said = f"\r\x1b[Kfacets: no answer from {self.target} yet, trying for {waited}"
                self._show(said)

        try:
            return Background(partial(super()._call, request, response)).result(tell)
        finally:
            if said:
                self._show("\r\x1b[K")

    def _show(self, line: str) -> None:
        assert self.screen is not None
        self.screen.write(line)
        self.screen.flush()


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the global options say."""

    target: str
    json: bool
    timeout_s: float | None
    api_key: str | None
    tls: bool | TlsConfig
    quiet: bool = False

    def connect(self, *, timeout_s: float | None = None, watched: bool = True) -> FacetsClient:
        """A client; close it.

        Args:
            timeout_s: Seconds for one request where the options say nothing.
            watched: Waiting calls say so on a terminal; False where a progress bar does.
        """
        timeout_s = timeout_s if self.timeout_s is None else self.timeout_s
        client = CommandClient(self.target, timeout_s=timeout_s, api_key=self.api_key, tls=self.tls)
        client.screen = sys.stderr if watched and not (self.json or self.quiet) and sys.stderr.isatty() else None
        return client

    def note(self, sentence: str) -> None:
        """Says something by the way to a person; with --json or --quiet standard error is for errors alone."""
        if not self.json and not self.quiet:
            say(f"facets: {sentence}")


AnswerT = TypeVar("AnswerT")


def ask(context: typer.Context, call: Callable[[FacetsClient], AnswerT], show: Callable[[AnswerT], None]) -> None:
    """Asks the server and prints what it says: as JSON where that is wanted, else as ``show`` does."""
    settings = settings_of(context)
    with settings.connect() as client:
        found = call(client)
    print_json(found) if settings.json else show(found)


def settings_of(context: typer.Context) -> Settings:
    """The global settings of a command."""
    settings = context.obj
    assert isinstance(settings, Settings)
    return settings
