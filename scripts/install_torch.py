"""Installs PyTorch before everything else, without gigabytes of CUDA on a machine that has no GPU.

    python scripts/install_torch.py [--backend auto|cpu|cuda] [--index-url URL] [-c constraints.txt]

For Linux on x86-64, the default package index serves a PyTorch that requires the CUDA libraries. Indexes and mirrors
differ, so the script asks pip what it would install. If that is a CUDA build and there is no GPU, it installs the CPU
build from PyTorch's own index.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_CUDA_PACKAGE = re.compile(r"\s*(nvidia|cuda|triton)[\w.-]*", re.IGNORECASE)
GPU_SIGNS = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))


def main(argv: Sequence[str] | None = None) -> None:
    """Installs ``torch`` into the running environment."""
    parser = argparse.ArgumentParser(description="Installs PyTorch into the running environment.")
    parser.add_argument(
        "--backend",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="auto: CUDA only if there is an NVIDIA GPU; cpu: never; cuda: what the package index serves",
    )
    parser.add_argument("--index-url", default="", help="take torch from this package index")
    parser.add_argument("-c", "--constraint", type=Path, help="constraints file with torch's version")
    options = parser.parse_args(argv)
    constraints = ["-c", str(options.constraint)] if options.constraint else []
    has_gpu = options.backend == "auto" and any(sign.exists() for sign in GPU_SIGNS)
    try:
        if options.index_url:
            run("pip", "install", "--no-deps", "--index-url", options.index_url, *constraints, "torch")
        elif options.backend != "cuda" and not has_gpu and _index_has_cuda(constraints):
            sys.stderr.write("install_torch: no NVIDIA GPU found: taking the CPU build from PyTorch's own index\n")
            run("pip", "install", "--quiet", *constraints, "uv")
            run("uv", "pip", "install", "--python", sys.executable, "--torch-backend", "cpu", *constraints, "torch")
        run("pip", "install", *constraints, "torch")  # and its requirements, from the default index
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"install_torch: PyTorch could not be installed (pip ended with status {error.returncode}): "
            "name an index that has it with TORCH_INDEX=URL, or accept the CUDA build with TORCH_BACKEND=cuda"
        )


def _index_has_cuda(constraints: list[str]) -> bool:
    dry_run = "--dry-run --no-deps --ignore-installed --quiet --report -".split()
    (torch,) = json.loads(run("pip", "install", *dry_run, *constraints, "torch", capture=True))["install"]
    requirements = torch["metadata"].get("requires_dist", ())
    return any(_CUDA_PACKAGE.match(line) and "extra ==" not in line for line in requirements)


def run(module: str, *arguments: str, capture: bool = False) -> str:
    """Runs a module of this environment; returns its output if captured."""
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE if capture else None).stdout or ""


if __name__ == "__main__":
    main()
