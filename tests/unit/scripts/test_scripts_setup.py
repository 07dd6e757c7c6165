"""What make calls before anything is installed."""

import importlib.util
import json
import os
import socket
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{name}", ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def installer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """``install_torch`` whose commands are recorded, not run; ``requires`` is what the index would bring."""
    module = script("install_torch")
    module.commands = []
    module.requires = []
    module.failing = ""

    def run(name: str, *arguments: str, capture: bool = False) -> str:
        module.commands.append(" ".join((name, *arguments)))
        if module.failing and module.failing in module.commands[-1]:
            raise subprocess.CalledProcessError(1, [name])
        return json.dumps({"install": [{"metadata": {"requires_dist": module.requires}}]}) if capture else ""

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "GPU_SIGNS", (tmp_path / "gpu",))
    return module


CUDA = ["filelock", 'nvidia-cublas-cu12==12.8; platform_system == "Linux"', "triton==3.5"]
CPU = ["filelock", "sympy>=1.13", 'nvidia-ml-py; extra == "monitor"']


@pytest.mark.parametrize(
    ("arguments", "requires", "has_gpu", "expected"),
    [
        (["-c", "c.txt"], CPU, False, ["pip install -c c.txt torch"]),
        (["-c", "c.txt"], CUDA, False, ["pip install --quiet -c c.txt uv", "--torch-backend cpu -c c.txt torch"]),
        ([], CUDA, True, ["pip install torch"]),
        (["--backend", "cpu"], CUDA, True, ["pip install --quiet uv", "--torch-backend cpu torch"]),
        (["--index-url", "file:///wheels"], CUDA, False, ["pip install --no-deps --index-url file:///wheels torch"]),
    ],
    ids=["index has CPU build", "no GPU", "GPU", "CPU on request", "index named"],
)
def test_build_of_torch_fits_the_machine(
    installer: ModuleType, tmp_path: Path, arguments: list[str], requires: list[str], has_gpu: bool, expected: list[str]
) -> None:
    installer.requires = requires
    if has_gpu:
        (tmp_path / "gpu").touch()
    installer.main(arguments)
    commands = [command for command in installer.commands if "--dry-run" not in command]
    assert all(command.endswith(end) for command, end in zip(commands, expected, strict=False))
    assert commands[-1].endswith("torch") and len(commands) <= len(expected) + 1


def test_a_failure_is_one_sentence_with_the_way_out(installer: ModuleType) -> None:
    installer.requires = CUDA
    installer.failing = "uv pip install"
    with pytest.raises(SystemExit, match="TORCH_INDEX=URL"):
        installer.main([])


def test_the_runner_of_notebooks_has_a_help_and_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    for argument, code in (("--help", 0), ("nope", 2)):
        with pytest.raises(SystemExit) as ended:
            script("run_notebooks").main([argument])
        assert ended.value.code == code
    shown = capsys.readouterr()
    assert "of own-encoder, " in shown.out and "no notebook 'nope', expected own-encoder" in shown.err


def test_a_busy_port_is_one_sentence_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        settings = {**os.environ, "BIN": "none", "HOST": "127.0.0.1", "PORT": str(port)}
        done = subprocess.run(
            [ROOT / "scripts" / "serve.sh"], env=settings, capture_output=True, text=True, check=False
        )
    assert done.returncode == 1 and f"PORT={port + 1}" in done.stderr
