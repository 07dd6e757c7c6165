"""``python -m facets_lab.generation``: generates text under chosen topics; prints one JSON object."""

import sys
from functools import partial

from facets_lab.program import run_program

COMMANDS = {
    "train": ("facets_lab.generation.generator:train", "Train a decoder that is given some of the next words."),
    "evaluate": ("facets_lab.generation.measure:evaluate", "Measure continuations with and without topics."),
}

main = partial(run_program, "python -m facets_lab.generation", COMMANDS, help="Generate text under topics.")

if __name__ == "__main__":
    sys.exit(main())
