"""``python -m facets_lab.multicls``: several class tokens against one; prints one JSON object."""

import sys
from collections.abc import Sequence

from facets_lab.program import run_program

COMMANDS = {"classify": ("facets_lab.multicls.classification:classify", "Classify sentences with few examples.")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the experiment and returns the exit code."""
    return run_program("python -m facets_lab.multicls", COMMANDS, arguments, help="Several class tokens against one.")


if __name__ == "__main__":
    sys.exit(main())
