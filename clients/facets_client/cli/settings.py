"""Global settings of the ``facets`` command, and the client that they make."""

import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import typer
from google.protobuf.message import Message

from facets_client.cli.background import BackgroundServer
from facets_client.cli.failures import CommandError, ExitCode, without_grpc_prefix
from facets_client.cli.output import print_json, say, stdout
from facets_client.client import FacetsClient
from facets_client.core.blocking import Background
from facets_client.core.channel import DEFAULT_TARGET, TlsConfig
from facets_client.errors import FacetsClientError

AnswerT = TypeVar("AnswerT")
_MAX_NAMED = 8  # collections in an error


class CommandClient(FacetsClient):
    """Client whose calls Ctrl-C can end at any time; ``on_close`` lets go of the server."""

    on_close: Callable[[], None] = staticmethod(lambda: None)

    def close(self) -> None:
        """Closes the connection; calls under way are cancelled."""
        Background(super().close).result()
        self.on_close()

    def _call(self, request: Message) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return super()._call(request)
        return Background(partial(super()._call, request)).result()


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The global options."""

    target: str
    background: BackgroundServer | None = None  # the server at the target, if commands start it
    json: bool
    timeout_s: float | None
    api_key: str | None
    tls: bool | TlsConfig
    quiet: bool = False

    @property
    def server(self) -> str:
        """The server in words."""
        return f"the server at {self.target}" if self.background is None else str(self.background)

    def connect(self, *, starts: bool = True) -> FacetsClient:
        """Returns a client, which the caller must close; ``starts`` the background server if that is the target."""
        let_go = CommandClient.on_close
        if self.background is not None and starts:
            let_go = self.background.join(self.note).close
        elif self.background is not None and not self.background.is_running():
            problem = f"no server listens at {DEFAULT_TARGET}, and {self.background} is not running"
            raise CommandError(problem, "UNAVAILABLE", ExitCode.UNAVAILABLE, "a search or facets index starts it")
        client = CommandClient(self.target, timeout_s=self.timeout_s, api_key=self.api_key, tls=self.tls)
        client.on_close = let_go
        return client

    def note(self, message: str) -> None:
        """Prints a note on standard error, unless --json or --quiet reserves it for errors."""
        if not self.json and not self.quiet:
            say(f"facets: {message}")

    def done(self, value: object, message: str) -> None:
        """Prints the result of a command: with --json a value, otherwise a note."""
        if self.json:
            print_json(value)
        self.note(message)

    def note_waiting(self, reason: str, *, is_first: bool = True) -> None:
        """Notes once that the command waits for the server; starts the background server whenever it was ended."""
        if is_first:
            self.note(f"waiting for the server: {without_grpc_prefix(reason)}")
        if self.background is not None:
            self.background.start(self.note)


def those_that_exist(client: FacetsClient) -> str:
    """Which collections there are, for an error about one that does not exist."""
    try:
        names = [collection.name for collection in client.list_collections()]
    except FacetsClientError:  # such as a key that may not list them
        names = []
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"those that exist: {', '.join(names[:_MAX_NAMED]) or 'none'}{more}"


def ask(
    context: typer.Context,
    call: Callable[[FacetsClient], AnswerT],
    show: Callable[[AnswerT], object] = lambda answer: stdout().print(answer),
    as_json: Callable[[AnswerT], object] = lambda answer: answer,
) -> AnswerT:
    """Makes a call, prints its answer with ``show``, or with --json as one object or one a line, and returns it."""
    settings = settings_of(context)
    with settings.connect() as client:
        answer = call(client)
    if not settings.json:
        show(answer)
        return answer
    value = as_json(answer)
    for item in value if isinstance(value, list) else [value]:
        print_json(item)
    return answer


def call_with(method: Callable[..., AnswerT], options: Mapping[str, Any], **others: Any) -> AnswerT:
    """Calls a function with the options of a command that it takes; ``others`` replace or add some."""
    names = inspect.signature(method).parameters
    return method(**{name: options[name] for name in names if name in options} | others)


def settings_of(context: typer.Context) -> Settings:
    """The global settings of a command."""
    settings: Settings = context.obj
    return settings
