"""A hundred questions to everyday files, written before any system had answered them; the figures are those measured.

Nothing is tuned on the half that is called ``held``, and only its counts are read.
"""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.file_questions import file_questions, report
from benchmarks.questions import holds

FILES = Path(__file__).resolve().parents[1] / "answers" / "people_files"
AT_LEAST: dict[str, dict[str, float]] = {
    "dev": {"first": 20, "answer": 15, "foreign_hidden": 4},
    "held": {"first": 40, "answer": 29, "auc": 0.76},
}


def test_answers_stand_in_their_documents() -> None:
    asked = file_questions()
    assert Counter((one.split, one.kind) for one in asked) == {
        ("dev", "answered"): 20,
        ("dev", "attribute"): 10,
        ("dev", "foreign"): 4,
        ("held", "answered"): 40,
        ("held", "attribute"): 20,
        ("held", "foreign"): 6,
    }
    for one in asked:
        if one.document:
            name = one.document if one.collection == "files" else f"{one.collection}.csv"
            text = (FILES / name).read_text(encoding="utf-8")
            assert one.document == name or one.document in text, one
            assert all(holds(text, [answer]) for answer in one.answers), one


@pytest.mark.slow
def test_questions_to_files_are_answered() -> None:
    systems = report()["systems"]
    for split, figures in AT_LEAST.items():
        found = systems["hybrid"][split]
        assert {name: found[name] for name in figures if found[name] < figures[name]} == {}, found
