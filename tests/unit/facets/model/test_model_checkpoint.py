import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from toys import toy_model

from facets.errors import CheckpointError
from facets.model import FacetModel, load

TEXTS = ["a man lifting weights", "the dog plays guitar", "zebra"]


@pytest.fixture
def saved(tmp_path: Path) -> tuple[FacetModel, Path]:
    model = toy_model()
    model.common_components["plain"] = np.eye(1, 32, dtype=np.float32)[0]
    model.save(tmp_path / "toy")
    return model, tmp_path / "toy"


def test_a_loaded_model_gives_the_same_facets(saved: tuple[FacetModel, Path]) -> None:
    model, folder = saved
    loaded = load(folder)
    # Weights and word vectors are stored in half precision.
    np.testing.assert_allclose(loaded.encode(TEXTS), model.encode(TEXTS), atol=0.02)
    np.testing.assert_array_equal(loaded.common_components["plain"], model.common_components["plain"])
    assert (loaded.name, loaded.num_facets, loaded.dim) == ("toy", 3, 32)


def test_the_revision_follows_the_content(saved: tuple[FacetModel, Path]) -> None:
    _, folder = saved
    revision = load(folder).revision
    assert load(folder).revision == revision
    toy_model(num_facets=4).save(folder)
    assert load(folder).revision != revision


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vectors.safetensors", "vocabulary.tsv"])
@pytest.mark.parametrize("damage", ["missing", "cut", "garbage", "folder"])
def test_a_damaged_file_is_named(saved: tuple[FacetModel, Path], name: str, damage: str) -> None:
    path = saved[1] / name
    content = path.read_bytes()
    if damage in ("missing", "folder"):
        path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "missing":
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else b"\xff\x00garbage" * 50)
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        load(saved[1])


def test_weights_with_nan_are_refused(saved: tuple[FacetModel, Path]) -> None:
    tensors = load_file(saved[1] / "model.safetensors")
    next(iter(tensors.values())).flat[0] = np.nan
    save_file(tensors, saved[1] / "model.safetensors")
    with pytest.raises(CheckpointError, match="NaN"):
        load(saved[1])


def test_weights_of_another_shape_are_refused(saved: tuple[FacetModel, Path]) -> None:
    path = saved[1] / "config.json"
    values = json.loads(path.read_text())
    for num_facets in (5, 10**12):  # the latter fits no memory
        values["model"]["num_facets"] = num_facets
        path.write_text(json.dumps(values))
        with pytest.raises(CheckpointError, match="do not fit") as caught:
            load(saved[1])
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("model", "dim", 33),
        ("model", "colour", 1),
        (None, "format", 99),
        (None, "task", None),
        (None, "task", "weather"),
        (None, "name", ""),
        (None, "l1_weight", float("nan")),
        (None, "l1_weight", -1.0),
    ],
)
def test_a_wrong_setting_is_refused(
    saved: tuple[FacetModel, Path], section: str | None, key: str, value: object
) -> None:
    path = saved[1] / "config.json"
    values = json.loads(path.read_text())
    target = values[section] if section else values
    if value is None:
        del target[key]
    else:
        target[key] = value
    path.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match=key):
        load(saved[1])


def test_long_texts_are_cut() -> None:
    model = toy_model(max_tokens=5)
    long, cut = model.encode(["dog plays guitar a man " + "music " * 50, "dog plays guitar a man"])
    np.testing.assert_allclose(long, cut, atol=1e-6)
