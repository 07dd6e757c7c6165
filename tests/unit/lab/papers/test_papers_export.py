"""Sentence vectors for a trained model of papers."""

import shutil
from pathlib import Path

import pytest
from facets_lab.papers.export import add_sentences

from facets.errors import InvalidInputError


def test_missing_papers_are_refused(with_sentences: Path, folder: Path, tmp_path: Path) -> None:
    copy, data = tmp_path / "copy", tmp_path / "few.jsonl"
    shutil.copytree(folder, copy)
    data.write_text((folder.parents[1] / "papers.jsonl").read_text().splitlines()[0])
    with pytest.raises(InvalidInputError, match="must hold the papers of the model"):
        add_sentences(copy, data, encoder=str(with_sentences.parent / "passages"))
