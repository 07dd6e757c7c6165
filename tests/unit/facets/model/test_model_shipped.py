"""Models are found by name in a checkout and in installed packages; what is missing is named with its package."""

import sys
from pathlib import Path

import pytest

from facets.errors import NotFoundError
from facets.model import shipped
from facets.model.shipped import borrowed_folder, find_model

MODULE = "toy_model_package"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packages on the path, and no checkout beside the library."""
    monkeypatch.setattr(shipped, "CHECKOUT", tmp_path / "no-checkout")
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    return site


def install(site: Path, *, model: str, module: str = MODULE) -> Path:
    """What pip leaves of a package with one model; the model's folder."""
    folder = site / module / model
    folder.mkdir(parents=True)
    (site / module / "__init__.py").touch()
    (folder / "config.json").write_text("{}")
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[facets.models]\n{model} = {module}\n")
    return folder


def test_a_checkout_s_models_and_baselines_are_found_by_name() -> None:
    assert find_model("facets-en").name == "facets-en"
    assert find_model("facets-en-k1").parent.name == "baselines"


def test_an_installed_package_s_model_is_found_by_name(packages: Path) -> None:
    folder = install(packages, model="toy-one", module="toy_model_found")
    assert find_model("toy-one") == folder


def test_a_model_that_is_not_installed_is_named_with_its_package(packages: Path) -> None:
    with pytest.raises(NotFoundError, match=r"facets-en is not installed: pip install multifacet-model-en$"):
        find_model("facets-en")


@pytest.mark.parametrize("name", ["no-such-model", "no/such/folder", "../facets-en"])
def test_what_nobody_has_is_refused_with_what_is_here(packages: Path, name: str) -> None:
    install(packages, model="toy-here", module="toy_model_here")
    with pytest.raises(NotFoundError, match=r"expected a checkpoint folder or one of toy-here; pip install multi"):
        find_model(name)


def test_what_a_model_borrows_lies_beside_it_or_is_found_by_name(packages: Path, tmp_path: Path) -> None:
    lender = install(packages, model="facets-en", module="toy_model_lender")
    borrower = install(packages, model="facets-minilm-en", module="toy_model_borrower")
    assert borrowed_folder(borrower, "../facets-en") == lender
    beside = tmp_path / "models" / "facets-en"
    beside.mkdir(parents=True)
    assert borrowed_folder(tmp_path / "models" / "facets-minilm-en", "../facets-en") == beside
    assert borrowed_folder(lender, ".") == lender
    assert borrowed_folder(borrower, "../no-such-model") == borrower.parent / "no-such-model"
