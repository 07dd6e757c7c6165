"""Prints the requirements of the base install and of extras, one a line, for a container layer without the sources.

Example: python scripts/requirements.py pyproject.toml server
"""

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main", "requirements"]


def requirements(pyproject: Path, extras: Sequence[str]) -> list[str]:
    """Requirements of the base install and of extras, extras of our own followed.

    Args:
        pyproject: The project's file.
        extras: Names of extras.

    Raises:
        KeyError: There is no such extra.
    """
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    own = re.compile(rf"{re.escape(project['name'])}\[([\w,-]+)\]")
    found: dict[str, None] = dict.fromkeys(project["dependencies"])
    waiting = list(extras)
    seen = set(extras)
    while waiting:
        for line in project["optional-dependencies"][waiting.pop()]:
            match = own.fullmatch(line)
            if match is None:
                found[line] = None
                continue
            more = [name for name in match[1].split(",") if name not in seen]
            seen.update(more)
            waiting += more
    return list(found)


def main(argv: Sequence[str]) -> int:
    """Prints them."""
    sys.stdout.write("".join(f"{line}\n" for line in requirements(Path(argv[0]), argv[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
