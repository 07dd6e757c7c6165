"""Commands for papers."""

from facets_client.cli.papers import commands

__all__ = ["COMMANDS"]

COMMANDS = {"recommend": commands.app}
