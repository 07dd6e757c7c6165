"""Sentence vectors for a trained model of papers."""

import shutil
from pathlib import Path

import pytest
from facets_lab.papers.export import add_sentences

from facets.errors import ConfigError, InvalidInputError


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"num_components": 33}, ConfigError, r"components must be in \[1, 32\], the width of toy-passages, got 33"),
        ({"share": 1.0}, ConfigError, "share"),
        ({"abstract_chars": -1}, ConfigError, "abstract_chars must be in"),
        ({"data": "few"}, InvalidInputError, "must hold the papers of the model"),
    ],
)
def test_bad_settings_are_refused(
    with_sentences: Path, folder: Path, tmp_path: Path, change: dict[str, object], error: type[Exception], message: str
) -> None:
    copy, data = tmp_path / "copy", folder.parents[1] / "papers.jsonl"
    shutil.copytree(folder, copy)
    settings: dict[str, object] = {"num_components": 8, "abstract_chars": 100, "share": 0.5} | change
    if settings.pop("data", ""):
        data = tmp_path / "few.jsonl"
        data.write_text((folder.parents[1] / "papers.jsonl").read_text().splitlines()[0])
    with pytest.raises(error, match=message):
        add_sentences(copy, data, encoder=str(with_sentences.parent / "passages"), **settings)  # type: ignore[arg-type]
