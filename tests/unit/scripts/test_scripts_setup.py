"""What make calls before anything is installed."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
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

    def run(command: list[str], *, capture: bool = False) -> str:
        module.commands.append(" ".join(command[1:]))
        if module.failing and module.failing in module.commands[-1]:
            raise subprocess.CalledProcessError(1, command)
        return json.dumps({"install": [{"metadata": {"requires_dist": module.requires}}]}) if capture else ""

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "GPU_SIGNS", (tmp_path / "gpu",))
    return module


CUDA = ["filelock", 'nvidia-cublas-cu12==12.8; platform_system == "Linux"', "triton==3.5"]
CPU = ["filelock", "sympy>=1.13", 'opt-einsum>=3.3; extra == "opt-einsum"']


@pytest.mark.parametrize(
    ("requirements", "expected"),
    [
        (CUDA, True),
        (["cuda-bindings==13.0"], True),
        (CPU, False),
        (['nvidia-ml-py; extra == "monitor"'], False),
        ([], False),
    ],
)
def test_cuda_is_recognized_in_requirements(requirements: list[str], expected: bool) -> None:
    assert script("install_torch").asks_for_cuda(requirements) is expected


def test_a_cpu_build_of_the_index_is_taken_as_it_is(installer: ModuleType) -> None:
    installer.requires = CPU
    assert installer.main(["-c", "constraints.txt"]) == 0
    assert installer.commands[1:] == ["-m pip install -c constraints.txt torch"]


def test_no_cuda_where_no_gpu_is(installer: ModuleType) -> None:
    installer.requires = CUDA
    assert installer.main(["-c", "constraints.txt"]) == 0
    assert "--torch-backend cpu" in installer.commands[-1]
    assert not any(command.endswith("pip install -c constraints.txt torch") for command in installer.commands)


def test_cuda_where_a_gpu_is(installer: ModuleType, tmp_path: Path) -> None:
    installer.requires = CUDA
    (tmp_path / "gpu").touch()
    assert installer.main([]) == 0
    assert installer.commands[-1] == "-m pip install torch"


def test_cpu_on_request_even_where_a_gpu_is(installer: ModuleType, tmp_path: Path) -> None:
    installer.requires = CUDA
    (tmp_path / "gpu").touch()
    assert installer.main(["--backend", "cpu"]) == 0
    assert "--torch-backend cpu" in installer.commands[-1]


def test_a_named_index_is_used_without_questions(installer: ModuleType) -> None:
    assert installer.main(["--index-url", "file:///wheels"]) == 0
    assert installer.commands[0] == "-m pip install --no-deps --index-url file:///wheels torch"
    assert not any("--dry-run" in command for command in installer.commands)


def test_a_failure_is_one_sentence_with_the_way_out(installer: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    installer.requires = CUDA
    installer.failing = "uv pip install"
    assert installer.main([]) == 1
    assert "TORCH_INDEX=URL" in capsys.readouterr().err.splitlines()[-1]


def test_requirements_follow_our_own_extras(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "p"\ndependencies = ["a>=1"]\n'
        '[project.optional-dependencies]\nm = ["b"]\ns = ["p-s==1.0"]\nall = ["p[s,m]", "p[all]"]\n'
    )
    (tmp_path / "server" / "pyproject.toml").write_text(
        '[project]\nname = "p-s"\ndependencies = ["p[m]==1.0", "c"]\n[project.optional-dependencies]\n'
    )
    requirements = script("requirements").requirements
    assert requirements(tmp_path, ["p"]) == ["a>=1"]
    assert sorted(requirements(tmp_path, ["p-s"])) == sorted(requirements(tmp_path, ["p[all]"])) == ["a>=1", "b", "c"]
    for unknown in ("p[unknown]", "q"):
        with pytest.raises(KeyError):
            requirements(tmp_path, [unknown])


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check = script("check_python")
    assert check.lacking() == ""
    monkeypatch.setattr(check, "LOWEST", (99, 0))
    assert "3.11 or newer" in check.lacking()


def test_a_python_without_venv_is_told_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "ensurepip.py").write_text("raise ImportError('as on Debian without python3-venv')\n")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "check_python.py"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "python3-venv" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_busy_port_is_one_sentence_with_the_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert script("serve").main(["--port", str(port)]) == 2
    assert f"PORT={port + 1}" in capsys.readouterr().err


@pytest.mark.parametrize(("server", "up"), [("SERVING", True), ("NOT_SERVING", False)])
def test_a_server_of_one_model_is_up_though_other_services_have_none(server: str, up: bool) -> None:
    statuses = {"": server, "facets.v1.EmbeddingService": server, "facets.v1.RelationService": "SERVICE_UNKNOWN"}
    assert script("serve").is_up(statuses) is up
