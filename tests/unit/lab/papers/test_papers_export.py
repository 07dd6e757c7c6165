"""Sentence vectors for a trained model of papers: made in parts, for the papers of the model, tuned."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.papers.evaluation import SHARES
from facets_lab.papers.export import add_sentences, embed_texts
from toys import toy_passage_model

from facets.errors import ConfigError, InvalidInputError
from facets.model.passage_model import PassageModel

TEXTS = [f"paper number {number}" for number in range(40)]


def test_a_run_that_was_interrupted_goes_on_with_the_parts_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = toy_passage_model()
    whole = embed_texts(TEXTS, encoder, tmp_path, part_size=16, progress=False)
    np.testing.assert_allclose(whole, encoder.embed(TEXTS), atol=1e-3)
    (tmp_path / "part-00001.npy").unlink()
    read: list[str] = []
    embed = PassageModel.embed
    monkeypatch.setattr(PassageModel, "embed", lambda self, texts: read.extend(texts) or embed(self, texts))
    assert np.array_equal(embed_texts(TEXTS, encoder, tmp_path, part_size=16, progress=False), whole)
    assert read == TEXTS[16:32]
    with pytest.raises(ConfigError, match="other texts or of another encoder"):
        embed_texts(TEXTS[1:], encoder, tmp_path, part_size=16, progress=False)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"num_components": 33}, ConfigError, r"components must be in \[1, 32\], the width of toy-passages, got 33"),
        ({"share": 1.0}, ConfigError, "share must lie between 0 and 1"),
        ({"abstract_chars": -1}, ConfigError, "abstract_chars must be in"),
        ({"data": "few"}, InvalidInputError, "must hold the papers of the model"),
        ({"papers": "../other"}, ConfigError, "shares the papers of"),
    ],
)
def test_what_cannot_be_added_is_told(
    with_sentences: Path, folder: Path, tmp_path: Path, change: dict[str, object], error: type[Exception], message: str
) -> None:
    copy, data = tmp_path / "copy", folder.parents[1] / "papers.jsonl"
    shutil.copytree(folder, copy)
    settings: dict[str, object] = {"num_components": 8, "abstract_chars": 100, "share": 0.5} | change
    if settings.pop("data", ""):
        data = tmp_path / "few.jsonl"
        data.write_text((folder.parents[1] / "papers.jsonl").read_text().splitlines()[0])
    if "papers" in settings:
        path = copy / "recommendation.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"papers": str(settings.pop("papers"))}))
        shutil.copytree(folder, tmp_path / "other")
    with pytest.raises(error, match=message):
        add_sentences(copy, data, tmp_path / "run", encoder=with_sentences.parent / "passages", **settings)  # type: ignore[arg-type]


def test_tuning_finds_a_share_for_the_sentences(
    with_sentences: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(with_sentences.parent, tmp_path / "copy")
    model, data = tmp_path / "copy" / "papers", folder.parents[1] / "papers.jsonl"
    assert main(["recommendation", str(data), "--model", str(model), "--tune"]) == 0
    values = json.loads((model / "recommendation.json").read_text())
    assert values["sentences"]["share"] in SHARES
    assert values["sentences"]["encoder"] == "../passages"
    assert set(json.loads(capsys.readouterr().out)["models"]) == {"toy-papers"}
