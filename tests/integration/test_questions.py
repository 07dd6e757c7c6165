"""Questions over files as people have them, through ``facets index`` and a server of its own.

They were written before any system had answered; nothing is tuned on the half that is called ``held``. The figures are
those of ``python -m benchmarks.questions``; those of ``people`` less two, as read-me files and docstrings are those of
what is installed, and without the questions about Wikipedia, whose documents take minutes.
"""

from pathlib import Path

import pytest

from benchmarks.questions import report

pytestmark = pytest.mark.slow

AT_LEAST: dict[str, dict[str, dict[str, dict[str, float]]]] = {  # of a set, mode and split
    "people": {
        "hybrid": {"all": {"first": 20, "five": 26, "shown": 18, "evidence": 15, "stranger_hidden": 7}},
        "facets": {"all": {"first": 19, "five": 27, "shown": 17, "evidence": 13, "stranger_hidden": 5}},
    },
    "files": {
        "hybrid": {
            "dev": {"first": 19, "evidence": 15, "foreign_hidden": 4},
            "held": {"first": 40, "evidence": 33, "auc": 0.89},
        }
    },
}


@pytest.mark.parametrize("name", AT_LEAST)
def test_answers_come_first_and_strangers_are_told(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.questions.CORPUS", tmp_path / "none")
    systems = report(name)["systems"]
    for mode, by_split in AT_LEAST[name].items():
        for split, figures in by_split.items():
            found = systems[mode][split]
            assert {key: found[key] for key in figures if found[key] < figures[key]} == {}, (mode, split, found)
