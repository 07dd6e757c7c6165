"""The wheel: the four packages, the models and nothing else; and it works where it is installed."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from toys import toy_model

pytest.importorskip("hatchling", reason="hatchling (extra dev) builds the wheel")

ROOT = Path(__file__).parents[2]
PACKAGES = {"facets", "facets_proto", "facets_server", "facets_client"}
COMMANDS = {"facets", "facets-server", "facets-train", "facets-eval"}


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the sources, whose only model is a toy."""
    source = tmp_path_factory.mktemp("source")
    for folder in ("facets", "proto", "server", "clients"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / file, source / file)
    toy_model().save(source / "models" / "toy")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an environment with the wheel; other packages are borrowed from the running one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # Only the folder, not its .pth files: an editable install of the checkout must not come along.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    program, *arguments = command
    return subprocess.run(
        [str(folder / "bin" / program), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_wheel_holds_the_four_packages_models_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.split("/")[0] for name in names}
    metadata = {folder for folder in folders if folder.endswith((".dist-info", ".data"))}
    assert folders - metadata == PACKAGES
    data = [name for name in names if ".data/" in name]
    assert data and all(".data/data/share/facets/models/" in name for name in data)
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert any(name.endswith("facets_proto/v1/documents.proto") for name in names)
    assert any(name.endswith("facets_proto/google/rpc/status.proto") for name in names)
    assert {Path(name).name for name in names if ".dist-info/licenses/" in name} == {"LICENSE", "NOTICE"}


def test_base_requirements_are_the_client_s() -> None:
    roots = {name for requirement in project()["dependencies"] if (name := requirement.split(">")[0])}
    assert not roots & {"torch", "faiss-cpu", "spacy", "scipy", "sentence-transformers", "transformers", "safetensors"}


def test_every_requirement_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {canonical(line.split("==")[0]) for line in lines if line and not line.startswith("#")}
    declared = project()
    requirements = list(declared["dependencies"])
    for extra, needed in declared["optional-dependencies"].items():
        requirements += needed if extra != "gpu" else []  # no GPU build was tested with these pins
    missing = {canonical(line) for line in requirements} - pinned - {"facets"}
    assert not missing


def canonical(requirement: str) -> str:
    name = requirement
    for sign in "[<>=!~; ":
        name = name.split(sign)[0]
    return name.lower().replace("_", "-").replace(".", "-")


def test_torch_is_pinned_without_a_local_version() -> None:
    """So that PyTorch's CPU build (``+cpu``) satisfies the pin as well as any other."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    (torch,) = [line for line in lines if line.startswith("torch==")]
    assert "+" not in torch


def test_installed_library_finds_the_shipped_models(installed: Path) -> None:
    code = "import facets; model = facets.load('toy'); print(facets.__file__, model.encode(['a dog']).shape)"
    done = run(installed, "python", "-c", code)
    assert str(installed) in done.stdout
    assert "(1, 3, 32)" in done.stdout


@pytest.mark.slow
def test_installed_commands_answer(installed: Path) -> None:
    assert set(project()["scripts"]) == COMMANDS
    for command in COMMANDS:
        assert "usage" in run(installed, command, "--help").stdout.lower()
