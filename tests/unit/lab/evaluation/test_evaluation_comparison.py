"""Models that are compared: in order, by name, the baselines that are there."""

import logging
from dataclasses import dataclass

import pytest
from facets_lab.evaluation.comparison import if_installed, load_systems

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
