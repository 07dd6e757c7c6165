"""The process that is recorded: ``python -m benchmarks.faults.writer FOLDER SEED OPERATIONS`` writes, and tells it."""

import os
import pickle
import sys
from pathlib import Path

from benchmarks.faults.power import told_by
from benchmarks.faults.rounds import write_and_tell
from benchmarks.faults.work import empty


def main() -> None:
    """Writes below a folder that is not there."""
    root, seed, operations = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    root.mkdir()
    told = os.open(told_by(root), os.O_WRONLY | os.O_CREAT, 0o600)
    write_and_tell(lambda what: os.write(told, pickle.dumps(what)), root / "data", empty(), (seed, 0, operations))


if __name__ == "__main__":
    main()
