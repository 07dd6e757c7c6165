"""Kills servers and databases; uses the toy models, PostgreSQL and forked servers of the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
