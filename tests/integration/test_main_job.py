"""The short form of ``python -m benchmarks.main_job``: server and CLI are killed in the middle, and nothing is lost."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import main_job
from benchmarks.server import WORDS

NUM_DOCUMENTS = 4_000


@pytest.mark.slow
def test_every_document_is_stored_once_whoever_was_killed(
    toy_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = np.random.default_rng(0).choice(WORDS, (NUM_DOCUMENTS, 40))
    (tmp_path / "corpus.txt").write_text(
        "\n".join(["# Title", "a short line", *map(" ".join, chosen)]), encoding="utf-8"
    )
    files = ["--corpus", str(tmp_path / "corpus.txt"), "--work-dir", str(tmp_path / "job"), "--model", str(toy_model)]
    main_job.main([*files, "--documents", str(NUM_DOCUMENTS), "--queries", "5"])
    report = json.loads(capsys.readouterr().out)
    assert report["documents"] == NUM_DOCUMENTS
    assert report["index_exit_code"] == 0
    assert report["all_documents_stored_once"] is True
    before, after = report["stored_before_and_after_crash"]
    assert 0.3 * NUM_DOCUMENTS <= before <= after < NUM_DOCUMENTS
    assert report["search"]["recall_at_10"] > 0
