"""SECURITY.md names a test for each attack; the files are there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_attack_has_tests_that_exist():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) > 10
    for attack, _, tests in rows:
        files = re.findall(r"`([^`]+\.py)`", tests)
        assert files, attack
        for file in files:
            assert (ROOT / "tests" / file).is_file(), file
