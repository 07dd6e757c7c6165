"""Sentence vectors and spread of a trained model of papers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from facets_lab.papers.training import add_sentences, spread_matrix

from facets.errors import InvalidInputError


def test_missing_papers_are_refused(with_sentences: Path, folder: Path, tmp_path: Path) -> None:
    copy, data = tmp_path / "copy", tmp_path / "few.jsonl"
    shutil.copytree(folder, copy)
    data.write_text((folder.parents[1] / "papers.jsonl").read_text().splitlines()[0])
    with pytest.raises(InvalidInputError, match="must hold the papers of the model"):
        add_sentences(copy, data, encoder=str(with_sentences.parent / "passages"))


def test_spread_takes_weight_from_a_shared_direction() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((500, 6)).astype(np.float32)
    vectors[:, 0] += 10.0
    spread = spread_matrix(vectors)
    np.testing.assert_allclose(spread, spread.T, atol=1e-5)
    assert spread[0, 0] < spread[1:, 1:].diagonal().min()
    np.testing.assert_allclose(spread_matrix(np.empty((0, 6), np.float32)), np.eye(6))
