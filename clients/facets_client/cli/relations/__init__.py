"""Commands for relations."""

from facets_client.cli.relations import commands

__all__ = ["COMMANDS"]

COMMANDS = {"relations": commands.relations, "entail": commands.entail}
