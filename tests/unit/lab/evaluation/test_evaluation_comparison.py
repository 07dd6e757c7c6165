"""Models that are compared: in order, by name, the baselines that are there."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.comparison import CachedEmbedder, if_installed, load_systems
from numpy.testing import assert_allclose, assert_array_equal

from facets.errors import ConfigError, NotFoundError


@dataclass
class System:
    name: str


def load(name: str | None) -> System:
    if name == "missing":
        raise NotFoundError("no model 'missing'")
    return System((name or "shipped").removesuffix("/"))


def names(asked: list[str], baselines: list[str]) -> list[str]:
    return [system.name for system in load_systems(asked, baselines, load)]


def test_the_shipped_model_comes_when_none_is_named() -> None:
    assert names([], []) == ["shipped"]
    assert names(["b", "a"], ["c"]) == ["b", "a", "c"]


def test_a_baseline_that_is_asked_for_comes_once() -> None:
    assert names(["c"], ["c", "d"]) == ["c", "d"]


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="distinct names, got 'a' twice"):
        names(["a", "a/"], [])


def test_a_missing_baseline_is_left_out_and_a_missing_model_is_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert names([], ["missing", "d"]) == ["shipped", "d"]
    assert "baseline missing is left out" in caplog.text
    with pytest.raises(NotFoundError):
        names(["missing"], [])


def test_what_is_not_installed_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> int:
        raise ImportError("x not installed: pip install 'facets[y]'")

    with caplog.at_level(logging.WARNING):
        assert if_installed("peer", fail) == []
        assert if_installed("peer", lambda: 3) == [3]
    assert "baseline peer is left out: x not installed" in caplog.text


def test_the_same_texts_are_embedded_once(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def embed(texts: Sequence[str]) -> np.ndarray:
        asked.append(list(texts))
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)

    first, again = (CachedEmbedder(name="e", embed=embed, folder=tmp_path / "cache") for _ in range(2))
    units = first.units(["ab", "c"])
    assert_allclose(np.linalg.norm(units, axis=1), 1, rtol=1e-6)
    assert_array_equal(again.units(["ab", "c"]), units)
    assert asked == [["ab", "c"]]
    first.units(["a", "bc"])
    assert len(asked) == 2
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:40])
    assert_array_equal(again.units(["ab", "c"]), units), "a damaged file is made again"
