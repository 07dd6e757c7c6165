"""A hundred questions to everyday files, written before any system had answered them; the figures are those measured.

Nothing is tuned on the half that is called ``held``, and only its counts are read.
"""

import pytest

from benchmarks.file_questions import report

AT_LEAST: dict[str, dict[str, float]] = {
    "dev": {"first": 20, "answer": 15, "foreign_hidden": 4},
    "held": {"first": 40, "answer": 29, "auc": 0.76},
}


@pytest.mark.slow
def test_questions_to_files_are_answered() -> None:
    systems = report()["systems"]
    for split, figures in AT_LEAST.items():
        found = systems["hybrid"][split]
        assert {name: found[name] for name in figures if found[name] < figures[name]} == {}, found
