"""Installs PyTorch before everything else, without gigabytes of CUDA on a machine that has no GPU.

The default package index serves, for Linux on x86-64, a PyTorch that requires the CUDA libraries: several
gigabytes that a machine without an NVIDIA GPU cannot use. Which build an index would give is not guessed but
asked (``pip install --dry-run --report``), because indexes and mirrors differ and other platforms get a CPU
build anyway. Only when CUDA would come and no GPU is there, the CPU build is taken from PyTorch's own package
index, whose address the installer ``uv`` knows.

    python scripts/install_torch.py [--backend auto|cpu|cuda] [--index-url URL] [-c constraints.txt]

Needs nothing but the pip of the environment that it runs in.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

_CUDA_PACKAGE = re.compile(r"\s*(nvidia|cuda|triton)[\w.-]*", re.IGNORECASE)
GPU_SIGNS = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))


def main(argv: Sequence[str] | None = None) -> int:
    """Installs ``torch`` into the running environment; returns the exit code."""
    arguments = _parser().parse_args(argv)
    constraints = ["-c", str(arguments.constraint)] if arguments.constraint else []
    try:
        if arguments.index_url:
            # The rest of its requirements still come from the usual index.
            _pip("install", "--no-deps", "--index-url", arguments.index_url, *constraints, "torch")
            _pip("install", *constraints, "torch")
        elif arguments.backend == "cuda" or not _cuda_would_come(constraints):
            _pip("install", *constraints, "torch")
        elif arguments.backend == "auto" and any(sign.exists() for sign in GPU_SIGNS):
            _say("an NVIDIA GPU is here: installing PyTorch with CUDA")
            _pip("install", *constraints, "torch")
        else:
            _say("no NVIDIA GPU is here: installing the CPU build of PyTorch from PyTorch's own index")
            _install_cpu_build(constraints)
    except subprocess.CalledProcessError as error:
        _say(
            f"PyTorch could not be installed (pip ended with status {error.returncode}): "
            "name an index that has it with TORCH_INDEX=URL, or accept the CUDA build with TORCH_BACKEND=cuda"
        )
        return 1
    return 0


def asks_for_cuda(requirements: Iterable[str]) -> bool:
    """Whether a wheel's requirements hold CUDA packages.

    Args:
        requirements: ``Requires-Dist`` lines; those of extras do not count.
    """
    return any(_CUDA_PACKAGE.match(line) and "extra ==" not in line for line in requirements)


def _cuda_would_come(constraints: list[str]) -> bool:
    """Asks pip what it would install, without installing it."""
    options = "--dry-run --no-deps --ignore-installed --quiet --report -".split()
    report = _pip("install", *options, *constraints, "torch", capture=True)
    (torch,) = json.loads(report)["install"]
    return asks_for_cuda(torch["metadata"].get("requires_dist", ()))


def _install_cpu_build(constraints: list[str]) -> None:
    _pip("install", "--quiet", *constraints, "uv")
    backend = ["--torch-backend", "cpu"]
    run([sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, *backend, *constraints, "torch"])


def _pip(*arguments: str, capture: bool = False) -> str:
    return run([sys.executable, "-m", "pip", *arguments], capture=capture)


def run(command: list[str], *, capture: bool = False) -> str:
    """Runs a command to its end; its output, when captured."""
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE if capture else None)
    return done.stdout or ""


def _say(sentence: str) -> None:
    sys.stderr.write(f"install_torch: {sentence}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Installs PyTorch into the running environment.")
    parser.add_argument(
        "--backend",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="auto: CUDA only where an NVIDIA GPU is; cpu: never; cuda: what the package index gives",
    )
    parser.add_argument("--index-url", default="", help="take torch from this package index and ask nothing")
    parser.add_argument("-c", "--constraint", type=Path, help="constraints file with torch's version")
    return parser


if __name__ == "__main__":
    sys.exit(main())
