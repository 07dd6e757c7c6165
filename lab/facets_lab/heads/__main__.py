"""``python -m facets_lab.heads``: compares output layers; prints one JSON object."""

import sys
from functools import partial

from facets_lab.program import run_program

COMMANDS = {
    "items": ("facets_lab.heads.sequences:items", "Predict the next items of users."),
    "language": ("facets_lab.heads.language_models:language", "Predict the next words of a corpus."),
    "stolen": ("facets_lab.heads.stolen:stolen", "Find words that are never most likely."),
}

main = partial(run_program, "python -m facets_lab.heads", COMMANDS, help="Compare output layers.")

if __name__ == "__main__":
    sys.exit(main())
