"""A checkpoint of passages comes back from its folder; one that is damaged or incomplete is refused by its path."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from toys import toy_model, toy_passage_model

import facets
from facets.errors import CheckpointError, InvalidInputError, NotFoundError
from facets.model import FacetModel, PassageModel
from facets.model.passage_checkpoint import PASSAGE_FILES

TEXTS = ["The dog plays guitar in the garage, a man lifting weights.", "music"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "toy"
    toy_passage_model().save(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "toy"))


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(values | changes), encoding="utf-8")


def test_long_texts_keep_a_facet_for_eight_tokens(folder: Path) -> None:
    words = np.random.default_rng(1).choice("dog music guitar 7 lifting plays weights man garage ? x q z".split(), 400)
    long_text = " ".join(words.tolist())
    facets_MD, spans_M2 = facets.load(folder, PassageModel).encode_passages([long_text]).document(0)
    assert 4 < len(facets_MD) == len(spans_M2) <= 400 / 8


def test_a_saved_model_gives_the_same_facets_again(folder: Path) -> None:
    before, after = toy_passage_model(), facets.load(folder, PassageModel)
    described = after.name, after.task, after.space, after.num_facets, after.dim
    assert described == ("toy-passages", "passages", "toy", 4, 32)
    cosines = (before.embed(TEXTS) * after.embed(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.995
    old, new = before.encode_passages(TEXTS), after.encode_passages(TEXTS)
    assert (old.facets.any(axis=2) == new.facets.any(axis=2)).all()
    assert (old.facets * new.facets).sum(axis=2)[old.facets.any(axis=2)].min() > 0.995
    assert after.words.vocabulary.words == before.words.vocabulary.words
    np.testing.assert_allclose(after.words.vectors, before.words.vectors, atol=0.03)


@pytest.mark.parametrize("name", PASSAGE_FILES)
@pytest.mark.parametrize("damage", ["missing", "cut", "garbled"])
def test_a_damaged_folder_is_refused_by_its_path(folder: Path, name: str, damage: str) -> None:
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else b"\xff\xfe" + content)
    with pytest.raises(CheckpointError) as caught:
        facets.load(folder)
    assert str(folder) in str(caught.value)


def test_other_tasks_and_absent_folders_are_told_apart(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="expected a model for sentences, got one for passages"):
        facets.load(folder, FacetModel)
    toy_model().save(tmp_path / "words")
    with pytest.raises(CheckpointError, match="expected a model for passages"):
        PassageModel.from_folder(tmp_path / "words")
    with pytest.raises(NotFoundError):
        PassageModel.from_folder(tmp_path / "absent")


def test_who_shares_a_model_has_the_same_one_until_its_files_change(folder: Path) -> None:
    model = PassageModel.shared(folder)
    assert PassageModel.shared(folder) is model
    assert PassageModel.from_folder(folder) is not model
    card = folder / "config.json"
    card.write_text(card.read_text(encoding="utf-8").replace("toy-passages", "toy-others"), encoding="utf-8")
    assert PassageModel.shared(folder).name == "toy-others"
