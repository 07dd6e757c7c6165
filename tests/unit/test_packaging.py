"""The distributions: each holds its package and nothing else; and they work where they are installed."""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from toys import toy_model

import facets
from facets.model.shipped import SHIPPED, package_of

pytest.importorskip("hatchling", reason="hatchling (extra dev) builds the wheels")

ROOT = Path(__file__).parents[2]
# Distribution -> folder of its pyproject.toml, its packages, its programs.
DISTRIBUTIONS = {
    "multifacet": (ROOT, {"facets"}, {"facets"}),
    "multifacet-client": (ROOT / "clients", {"facets_client", "facets_proto"}, {"facets"}),
    "multifacet-server": (ROOT / "server", {"facets_server"}, {"facets-server"}),
    "multifacet-lab": (ROOT / "lab", {"facets_lab"}, {"facets-train", "facets-eval"}),
}
HEAVY = {"torch", "faiss-cpu", "spacy", "scipy", "sentence-transformers", "transformers", "safetensors"}
MAX_CLIENT_WHEEL_BYTES = 1_000_000
TEXTS = (".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".sh")


def project(name: str = "multifacet") -> dict:
    return tomllib.loads((DISTRIBUTIONS[name][0] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Those of code, and of two toy models of which one borrows the other's words."""
    work = tmp_path_factory.mktemp("models")
    toy_model().save(work / "toy-words")
    shutil.copytree(work / "toy-words", work / "toy")
    config = (work / "toy" / "config.json").read_text()
    (work / "toy" / "config.json").write_text(config.replace('"words": "."', '"words": "../toy-words"'))
    stage_model = runpy.run_path(str(ROOT / "scripts" / "build_packages.py"))["stage_model"]
    sources = {name: folder for name, (folder, _, _) in DISTRIBUTIONS.items()}
    for model in ("toy", "toy-words"):
        (work / model / "README.md").write_text("A toy.")
        for file in ("vocabulary.tsv", "vectors.safetensors") if model == "toy" else ():
            (work / model / file).unlink()
        sources[model] = stage_model(work / model, work / "staged" / model)
    return {name: _built(source, tmp_path_factory.mktemp("dist")) for name, source in sources.items()}


def _built(source: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_wheel_holds_its_packages_and_programs_and_nothing_else(name: str, wheels: dict[str, Path]) -> None:
    names = zipfile.ZipFile(wheels[name]).namelist()
    folders = {path.split("/")[0] for path in names}
    _, packages, programs = DISTRIBUTIONS[name]
    assert {folder for folder in folders if not folder.endswith(".dist-info")} == packages
    assert {f"{package}/py.typed" for package in packages} <= set(names)
    assert {Path(path).name for path in names if ".dist-info/licenses/" in path} == {"LICENSE", "NOTICE"}
    assert set(project(name).get("scripts", ())) == programs
    if name == "multifacet-client":
        assert {"facets_proto/v1/documents.proto", "facets_proto/google/rpc/status.proto"} <= set(names)
        assert wheels[name].stat().st_size < MAX_CLIENT_WHEEL_BYTES
    if name in ("multifacet", "multifacet-client"):
        assert not {canonical(requirement) for requirement in project(name)["dependencies"]} & HEAVY


def test_a_copy_of_the_client_without_its_messages_is_not_built(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "clients", tmp_path / "x", symlinks=True, ignore=shutil.ignore_patterns("typescript"))
    with pytest.raises(subprocess.CalledProcessError) as caught:
        _built(tmp_path / "x", tmp_path / "dist")
    assert b"lacks facets_proto" in caught.value.stderr + caught.value.stdout


def test_every_requirement_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {canonical(line.split("==")[0]) for line in lines if line and not line.startswith("#")}
    requirements: list[str] = []
    for name in DISTRIBUTIONS:
        requirements += project(name)["dependencies"]
        for extra, needed in project(name).get("optional-dependencies", {}).items():
            requirements += needed if extra != "gpu" else []  # no GPU build was tested with these pins
    missing = {canonical(line) for line in requirements} - pinned
    assert {name for name in missing if not name.startswith("multifacet")} == set()


def canonical(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-").replace(".", "-")


def test_distributions_citation_and_changelog_have_one_version() -> None:
    assert {project(name)["version"] for name in DISTRIBUTIONS} == {facets.__version__}
    for folder, _, _ in DISTRIBUTIONS.values():
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
        assert set(re.findall(r'"multifacet[\w-]*(?:\[[\w,]+\])?==([\w.]+)"', text)) <= {facets.__version__}
    assert f"version: {facets.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    first = re.search(r"^## .*", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    expected = rf"## \[{re.escape(facets.__version__)}\] - (unreleased|\d{{4}}-\d\d-\d\d)"
    assert first is not None and re.fullmatch(expected, first[0])


def test_every_shipped_model_is_in_the_extra_of_models() -> None:
    asked = {canonical(requirement) for requirement in project()["optional-dependencies"]["models"]}
    assert asked == {package_of(name) for name in SHIPPED}


def test_hints_name_distributions_and_extras_that_exist() -> None:
    """``facets`` on package indexes is somebody else's: nobody may be told to install it."""
    wrong = []
    for path in hinting_files():
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(ROOT)
        # A space and a name: `pip install facets`; the same in quotes, with extras.
        wrong += [f"{place}: {found}" for found in re.findall(r"pip install [\"']?facets(?![-\w/])", text)]
        for name, extras in re.findall(r"(multifacet(?:-\w+)?)\[([\w,]+)\]", text):
            known = project(name).get("optional-dependencies", {})
            wrong += [f"{place}: {name}[{extra}]" for extra in extras.split(",") if extra not in {*known, "extra"}]
    assert wrong == []


def hinting_files() -> list[Path]:
    folders = ("facets", "lab", "server", "clients", "scripts", "docs", "benchmarks", "models", "proto")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in TEXTS]
    paths += [path for path in ROOT.iterdir() if path.suffix in TEXTS or path.name in ("Makefile", "Dockerfile")]
    return [path for path in paths if "node_modules" not in path.parts]


def test_installed_library_finds_models_of_packages_and_what_they_borrow(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    for name in ("multifacet", "toy", "toy-words"):
        zipfile.ZipFile(wheels[name]).extractall(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import facets; print(facets.__file__); "
    code += "print(facets.load('toy').encode(['a dog']).shape)"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert str(tmp_path) in done.stdout and "(1, 3, 32)" in done.stdout
