"""Global settings of the ``facets`` command."""

from dataclasses import dataclass

import typer

from facets_client.cli.output import say
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

    def connect(self) -> FacetsClient:
        """A client; close it."""
        return FacetsClient(self.target, timeout_s=self.timeout_s, api_key=self.api_key, tls=self.tls)

    def note(self, sentence: str) -> None:
        """Says something by the way to a person; with --json standard error is for errors alone."""
        if not self.json:
            say(f"facets: {sentence}")


def settings_of(context: typer.Context) -> Settings:
    """The global settings of a command."""
    settings = context.obj
    assert isinstance(settings, Settings)
    return settings
