"""What the packages of models hold, where their parts come from, and that every extra has a check."""

import tomllib
from pathlib import Path

import pytest
from test_scripts_setup import ROOT, script

from facets.model.shipped import PACKAGE_GROUP, SHIPPED, package_of

MODELS = ROOT / "models"


def staged(name: str, tmp_path: Path) -> dict:
    """The project table of a staged model."""
    stage = script("build_packages").stage_model(MODELS / name, tmp_path / name)
    return tomllib.loads((stage / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_model_of_the_checkout_is_shipped_and_no_baseline() -> None:
    assert script("build_packages").model_names(MODELS) == sorted(SHIPPED)


def test_a_package_holds_the_folder_and_names_it_for_the_library(tmp_path: Path) -> None:
    project = staged("facets-passages-en", tmp_path)
    module = "multifacet_model_passages_en"
    assert project["name"] == package_of("facets-passages-en")
    assert project["entry-points"] == {PACKAGE_GROUP: {"facets-passages-en": module}}
    held = {file.name for file in (tmp_path / "facets-passages-en" / module / "facets-passages-en").iterdir()}
    assert held == {file.name for file in (MODELS / "facets-passages-en").iterdir()}
    assert {"LICENSE", "NOTICE", "README.md"} <= {file.name for file in (tmp_path / "facets-passages-en").iterdir()}


@pytest.mark.parametrize(
    ("name", "lenders"),
    [
        ("facets-en", []),
        ("facets-relations-en", ["facets-passages-en"]),
        ("facets-passages-small-en", ["facets-passages-en"]),
        ("facets-papers-en", ["facets-passages-small-en", "facets-passages-en"]),
    ],
)
def test_a_model_that_borrows_requires_the_lenders_packages(name: str, lenders: list[str], tmp_path: Path) -> None:
    project = staged(name, tmp_path)
    assert project["dependencies"] == [f"{package_of(lender)}=={project['version']}" for lender in lenders]


def test_a_distribution_that_is_too_large_fails_the_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, megabytes in (("small.whl", 59), ("large.whl", 61)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(megabytes * 1_000_000)  # takes no space
        assert script("build_packages").check_sizes(tmp_path) == (megabytes > 60)
    assert "large.whl: expected at most 60 MB" in capsys.readouterr().out


def test_every_extra_is_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - {"all", "dev", "gpu"}
    assert set(script("check_extras").EXTRAS) == {*extras, "client", "library"}
