"""Prints what distributions of Facets require of others, one a line, for a container layer without the sources.

Example: python scripts/requirements.py . 'multifacet[server,entities]'
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_FILES = ("pyproject.toml", "clients/pyproject.toml", "server/pyproject.toml", "lab/pyproject.toml")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]+)\])?(?:==[\w.]+)?")


def requirements(root: Path, wanted: Sequence[str]) -> list[str]:
    """Requirements of our distributions and their extras; ours among them are followed, not listed.

    Args:
        root: Folder of the checkout.
        wanted: Distributions of ours, with or without extras: ``multifacet[server]``.

    Raises:
        KeyError: There is no such distribution or extra.
    """
    projects = dict(_projects(root))
    found: dict[str, None] = {}
    waiting = list(wanted)
    seen: set[str] = set()
    while waiting:
        line = waiting.pop()
        match = _REQUIREMENT.fullmatch(line)
        if line in wanted and (match is None or match["name"] not in projects):
            raise KeyError(line)
        if match is None or match["name"] not in projects:
            found[line] = None
        elif line not in seen:
            seen.add(line)
            project = projects[match["name"]]
            waiting += project["dependencies"]
            for extra in (match["extras"] or "").split(","):
                waiting += project["optional-dependencies"][extra] if extra else []
    return list(found)


def _projects(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in _FILES:
        if (root / file).is_file():
            project = tomllib.loads((root / file).read_text(encoding="utf-8"))["project"]
            yield project["name"], project


def main(argv: Sequence[str]) -> int:
    """Prints them."""
    sys.stdout.write("".join(f"{line}\n" for line in requirements(Path(argv[0]), argv[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
