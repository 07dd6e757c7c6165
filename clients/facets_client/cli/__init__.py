"""The ``facets`` command."""

from facets_client.cli.main import app, main

__all__ = ["app", "main"]
