"""Commands for texts."""

from facets_client.cli.texts import commands, explain

__all__ = ["COMMANDS"]

COMMANDS = {
    "embed": commands.embed,
    "explain": explain.explain,
    "similarity": commands.similarity,
    "summarize": commands.summarize,
}
