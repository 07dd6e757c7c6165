"""``python -m facets_lab.multicls``: several class tokens against one; prints one JSON object."""

import sys
from functools import partial

from facets_lab.program import run_program

COMMANDS = {"classify": ("facets_lab.multicls.classification:classify", "Classify sentences with few examples.")}

main = partial(run_program, "python -m facets_lab.multicls", COMMANDS, help="Several class tokens against one.")

if __name__ == "__main__":
    sys.exit(main())
