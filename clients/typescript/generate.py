"""Generates src/generated from the protos, by protoc and protobuf-es: ``npm run generate``, after ``npm ci``.

The result is committed, so using or testing the client needs no proto compiler; a test compares the two.
"""

import shutil
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PROTOS = FOLDER.parents[1] / "proto"


def generate(out: Path) -> None:
    """Writes the modules of all protos, and of Google's that they import, into an existing folder."""
    import grpc_tools.protoc

    google = PROTOS / "facets_proto"
    sources = [*(google / "v1").glob("*.proto"), *(google / "google" / "rpc").glob("*.proto")]
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    arguments = [
        "protoc",
        *(f"-I{folder}" for folder in (google, PROTOS, well_known)),
        f"--plugin=protoc-gen-es={FOLDER / 'node_modules' / '.bin' / 'protoc-gen-es'}",
        f"--es_out={out}",
        "--es_opt=target=ts,import_extension=js",
        *sorted(str(path.relative_to(google if "rpc" in path.parts else PROTOS)) for path in sources),
    ]
    if status := grpc_tools.protoc.main(arguments):
        raise RuntimeError(f"protoc failed with status {status}, expected 0")


if __name__ == "__main__":
    out = FOLDER / "src" / "generated"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    generate(out)
    sys.stderr.write(f"{sum(1 for _ in out.rglob('*.ts'))} modules in {out}\n")
