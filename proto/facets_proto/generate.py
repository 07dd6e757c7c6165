"""Generates the Python code of facets.v1 from its ``.proto`` files: ``python -m facets_proto.generate``.

Beside what protoc writes, ``services.py`` has the names of the services.

Needs ``grpcio-tools`` (extra ``dev``) and ``googleapis-common-protos`` (comes with ``grpcio-status``).
"""

import importlib.resources
import sys
import tempfile
from pathlib import Path

PACKAGE_FOLDER = Path(__file__).resolve().parent

_SERVICES = '''"""Names of the services of facets.v1, generated; see facets_proto.generate."""

SERVICES: tuple[str, ...] = (
{})
'''


def generate(out: Path) -> None:
    """Writes ``facets_proto/v1/*_pb2*.py*`` and ``facets_proto/v1/services.py`` under ``out``.

    Args:
        out: An existing folder; the code lands in ``out/facets_proto/v1``.

    Raises:
        RuntimeError: protoc refused a file; what it found wrong is on standard error.
    """
    import google.rpc
    import grpc_tools.protoc
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    well_known = importlib.resources.files("grpc_tools") / "_proto"
    google_apis = Path(next(iter(google.rpc.__path__))).parents[1]
    sources = sorted(str(path) for path in (PACKAGE_FOLDER / "v1").glob("*.proto"))
    arguments = [
        "protoc",
        f"-I{PACKAGE_FOLDER.parent}",
        f"-I{well_known}",
        f"-I{google_apis}",
        f"--python_out={out}",
        f"--pyi_out={out}",
        f"--grpc_python_out={out}",
        *sources,
    ]
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / "descriptors"
        status = grpc_tools.protoc.main([*arguments, f"--descriptor_set_out={described}"])
        if status != 0:
            raise RuntimeError(f"protoc failed with status {status}, expected 0")
        files = FileDescriptorSet.FromString(described.read_bytes()).file
    names = [f"{file.package}.{service.name}" for file in files for service in file.service]
    lines = "".join(f'    "{name}",\n' for name in names)
    (out / "facets_proto" / "v1" / "services.py").write_text(_SERVICES.format(lines), encoding="utf-8")


def main() -> int:
    """Writes the generated code beside the sources."""
    generate(PACKAGE_FOLDER.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
