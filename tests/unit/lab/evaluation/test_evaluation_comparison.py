"""The compared models: in order, by name, with the baselines that exist."""

from dataclasses import dataclass

import pytest
from facets_lab.evaluation.comparison import load_models

from facets.errors import NotFoundError


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
