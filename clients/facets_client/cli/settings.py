"""Global settings of the ``facets`` command."""

import sys
from dataclasses import dataclass

import typer

from facets_client.cli.output import say
from facets_client.cli.waiting import WatchedClient
from facets_client.client import FacetsClient
from facets_client.core.channel import TlsConfig

__all__ = ["Settings", "settings_of"]


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
        is_seen = watched and not self.json and not self.quiet and sys.stderr.isatty()
        kind = WatchedClient if is_seen else FacetsClient
        return kind(self.target, timeout_s=timeout_s, api_key=self.api_key, tls=self.tls)

    def note(self, sentence: str) -> None:
        """Says something by the way to a person; with --json or --quiet standard error is for errors alone."""
        if not self.json and not self.quiet:
            say(f"facets: {sentence}")


def settings_of(context: typer.Context) -> Settings:
    """The global settings of a command."""
    settings = context.obj
    assert isinstance(settings, Settings)
    return settings
