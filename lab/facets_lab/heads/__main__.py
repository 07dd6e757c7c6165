"""``python -m facets_lab.heads``: compares output layers; prints one JSON object."""

import sys
from collections.abc import Sequence

from facets_lab.program import run_program

COMMANDS = {
    "items": ("facets_lab.heads.sequences:items", "Predict the next items of users."),
    "language": ("facets_lab.heads.language_models:language", "Predict the next words of a corpus."),
    "stolen": ("facets_lab.heads.stolen:stolen", "Find words that are never most likely."),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one experiment; returns the exit code."""
    return run_program("python -m facets_lab.heads", COMMANDS, arguments, help="Compare output layers.")


if __name__ == "__main__":
    sys.exit(main())
