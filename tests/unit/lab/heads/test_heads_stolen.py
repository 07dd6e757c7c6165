"""Words that are never most likely."""

import json
from pathlib import Path

import numpy as np
import pytest
from facets_lab.heads.__main__ import main
from facets_lab.heads.stolen import interior


def test_few_dimensions_have_interior_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = tmp_path / "corpus.txt"
    paragraph = " ".join(f"the w{n % 40} ends in v{n % 7} ." for n in range(60))
    corpus.write_text("".join(f"# {n}\n{paragraph}\n\n" for n in range(40)), encoding="utf-8")
    sizes = ["--dim", "2", "--dim", "24", "--steps", "20", "--num-words", "52", "--num-tokens", "9000"]
    assert main(["stolen", str(corpus), "--work-dir", str(tmp_path / "runs"), "--threads", "1", *sizes]) == 0
    report = json.loads(capsys.readouterr().out)
    flat, wide = ({key: value["mean"] for key, value in run.items()} for run in report["layers"].values())
    assert flat["interior"] > 20 > wide["interior"]


def test_a_row_is_interior_exactly_if_it_is_a_mixture_of_others() -> None:
    corners = np.concatenate((np.eye(4), -np.eye(4)))
    mixtures = np.random.default_rng(0).dirichlet(np.ones(8), 30) @ corners
    outside = 3.0 * np.eye(4)[:1]
    assert interior(np.concatenate((outside, corners[1:], mixtures))).tolist() == [False] * 8 + [True] * 30
