"""``python -m facets_lab.generation``: generates text under chosen topics; prints one JSON object."""

import sys
from collections.abc import Sequence

from facets_lab.program import run_program

COMMANDS = {
    "train": ("facets_lab.generation.generator:train", "Train a decoder that is given some of the next words."),
    "evaluate": ("facets_lab.generation.measure:evaluate", "Measure continuations with and without topics."),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    return run_program("python -m facets_lab.generation", COMMANDS, arguments, help="Generate text under topics.")


if __name__ == "__main__":
    sys.exit(main())
