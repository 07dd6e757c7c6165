"""Stops a build that would leave out the messages: ``facets_proto`` is a link out of this folder in a checkout."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    """Checks the folder that is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises FileNotFoundError if the link leads nowhere."""
        if not Path(self.root, "facets_proto", "v1").is_dir():
            raise FileNotFoundError(
                f"{self.root} lacks facets_proto, a link to ../proto/facets_proto: copy the whole repository and run "
                "pip install ./clients in it, or pip install multifacet-client from a package index"
            )
