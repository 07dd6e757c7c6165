"""The checkpoint of a model of papers: what is written is read back, and damage is reported."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import facets
from facets.errors import CheckpointError, InvalidInputError
from facets.papers.model import PaperModel


def test_load_finds_the_task_in_the_folder(model: PaperModel) -> None:
    assert (model.task, model.name, model.num_facets, model.dim) == ("papers", "toy-papers", 3, 32)


def test_a_paper_is_encoded_the_same_alone_and_in_a_batch(model: PaperModel) -> None:
    rows = model.paper_rows(["parser", "image pixel camera", "voice"], ["tree " * 40, "", "speech audio"])
    batch = model.encode_papers(rows)
    for number, own in enumerate(rows):
        alone = model.encode_papers([own])
        assert_allclose(alone.facets[0], batch.facets[number], atol=1e-5)
        assert_allclose(alone.author_magnitudes[0], batch.author_magnitudes[number], atol=1e-5)
        assert_allclose(alone.citation_magnitudes[0], batch.citation_magnitudes[number], atol=1e-5)
        assert_allclose(alone.documents[0], batch.documents[number], atol=1e-6)


def test_title_and_abstract_are_distinguished(model: PaperModel) -> None:
    first, second = model.encode(["parser\nimage", "image\nparser"])
    assert np.abs(first - second).max() > 1e-4


def test_averages_are_unit_vectors_or_zero(model: PaperModel) -> None:
    averages = model.word_averages(model.paper_rows(["parser tree", "zzz"], ["", ""]))
    assert_allclose(np.linalg.norm(averages, axis=1), [1.0, 0.0], atol=1e-5)
    assert model.word_averages([]).shape == (0, 32)


def test_magnitudes_are_positive(model: PaperModel) -> None:
    encoded = model.encode_papers(model.paper_rows(["parser", "zzz"], ["", ""]))
    assert (encoded.author_magnitudes > 0).all()
    assert (encoded.citation_magnitudes > 0).all()
    assert np.isfinite(encoded.facets).all()


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


@pytest.mark.parametrize(
    "name",
    ["tables.safetensors", "papers.safetensors.xz", "papers.json.xz", "recommendation.json", "model.safetensors"],
)
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_damage_is_reported_in_one_sentence(folder: Path, tmp_path: Path, name: str, damage: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    if damage == "missing":
        (copy / name).unlink()
    else:
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError, match=name):
        facets.load(copy)


def test_tables_of_other_papers_are_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    values = json.loads((copy / "recommendation.json").read_text())
    (copy / "recommendation.json").write_text(json.dumps(values | {"format": 9}))
    with pytest.raises(CheckpointError, match="format 1"):
        facets.load(copy)


def test_each_file_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    read_bytes = Path.read_bytes

    def counted(path: Path) -> bytes:
        opened.append(path.name)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    PaperModel.from_folder(folder)
    names = {path.name for path in folder.iterdir() if path.suffix != ".md"}
    assert sorted(opened) == sorted(names)
