"""The compared models: in order, by name, with the baselines that exist."""

import logging
from dataclasses import dataclass
from pathlib import Path

import pytest
from facets_lab.evaluation.comparison import if_installed, load_models, make_report

from facets.errors import ConfigError, NotFoundError


@dataclass
class Model:
    name: str


def load(name: str | None) -> Model:
    if name == "missing":
        raise NotFoundError("no model 'missing'")
    return Model((name or "shipped").removesuffix("/"))


@pytest.mark.parametrize(
    ("asked", "baselines", "names"),
    [([], [], ["shipped"]), (["b", "a"], ["c"], ["b", "a", "c"]), (["c"], ["c", "missing", "d"], ["c", "d"])],
)
def test_models_come_before_baselines(asked: list[str], baselines: list[str], names: list[str]) -> None:
    assert [model.name for model in load_models(asked, baselines, load)] == names


def test_equal_names_and_missing_models_are_refused() -> None:
    with pytest.raises(ConfigError, match="distinct names, got 'a' twice"):
        load_models(["a", "a/"], [], load)
    with pytest.raises(NotFoundError):
        load_models(["missing"], [], load)
    with pytest.raises(ConfigError, match="those of the baselines, got 'a' twice"):
        make_report(Path("x"), 1, [("a", {}), ("a", {})])


def test_missing_packages_leave_a_baseline_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ImportError("package not installed")

    with caplog.at_level(logging.WARNING):
        assert if_installed("minilm", fail) == []
    assert caplog.messages == ["the baseline minilm is left out: package not installed"]
    assert if_installed("minilm", lambda: 3) == [3]
