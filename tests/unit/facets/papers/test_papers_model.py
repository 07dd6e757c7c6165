"""The checkpoint of a model of papers: what is written is read back, and damage is reported."""

import shutil
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

import facets
from facets.errors import CheckpointError, InvalidInputError
from facets.papers.model import PaperModel


def test_a_paper_is_encoded_the_same_alone_and_in_a_batch(model: PaperModel) -> None:
    rows = model.paper_rows(["parser", "image pixel camera", "voice"], ["tree " * 40, "", "speech audio"])
    batch = model.encode_papers(rows)
    for number, own in enumerate(rows):
        alone = model.encode_papers([own])
        assert_allclose(alone.facets[0], batch.facets[number], atol=1e-5)
        assert_allclose(alone.author_magnitudes[0], batch.author_magnitudes[number], atol=1e-5)
        assert_allclose(alone.citation_magnitudes[0], batch.citation_magnitudes[number], atol=1e-5)
        assert_allclose(alone.documents[0], batch.documents[number], atol=1e-6)


def test_a_text_without_title_is_refused(model: PaperModel) -> None:
    with pytest.raises(InvalidInputError, match="no title"):
        model.encode(["parser", "\nabstract"])
    with pytest.raises(TypeError, match="sequence"):
        model.encode("parser")


def test_saving_again_gives_the_same_model(model: PaperModel, tmp_path: Path) -> None:
    model.save(tmp_path / "again")
    again = facets.load(tmp_path / "again")
    assert_allclose(again.encode(["parser\ntree"]), model.encode(["parser\ntree"]), atol=1e-6)
    assert again.revision == model.revision


FILES = "model.safetensors recommendation.json tables.safetensors papers.safetensors.xz papers.json.xz"


@pytest.mark.parametrize("damage", ["missing", "cut"])
@pytest.mark.parametrize("name", [*FILES.split(), "sentences.safetensors.xz"])
def test_damage_is_reported_in_one_sentence(with_sentences: Path, tmp_path: Path, name: str, damage: str) -> None:
    shutil.copytree(with_sentences.parent, tmp_path / "copy")
    path = tmp_path / "copy" / "papers" / name
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    if damage == "missing":
        path.unlink()
    with pytest.raises(CheckpointError, match=name):
        facets.load(path.parent)
