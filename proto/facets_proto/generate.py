"""Generates the Python code of facets.v1 from its ``.proto`` files: ``python -m facets_proto.generate``.

Besides protoc's output it writes ``comments.json``, which maps the full name of every service, rpc, message, field and
enum value to its comment.

Needs ``grpcio-tools`` (extra ``dev``) and ``googleapis-common-protos`` (a dependency of ``grpcio-status``).
"""

import importlib.resources
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PACKAGE_FOLDER = Path(__file__).resolve().parent

# Descriptor fields that hold named parts.
_PARTS = ("service", "method", "message_type", "nested_type", "field", "oneof_decl", "enum_type", "value")


def generate(out: Path) -> None:
    """Writes the code to ``out/facets_proto/v1``; ``out`` must exist.

    Raises:
        RuntimeError: protoc rejected a file and printed why.
    """
    import google.rpc
    import grpc_tools.protoc
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    well_known = importlib.resources.files("grpc_tools") / "_proto"
    google_apis = Path(next(iter(google.rpc.__path__))).parents[1]
    sources = sorted(str(path) for path in (PACKAGE_FOLDER / "v1").glob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        descriptors = Path(folder) / "descriptors"
        arguments = [
            "protoc",
            *(f"-I{include}" for include in (PACKAGE_FOLDER.parent, well_known, google_apis)),
            *(f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python")),
            "--include_source_info",
            f"--descriptor_set_out={descriptors}",
            *sources,
        ]
        status = grpc_tools.protoc.main(arguments)
        if status != 0:
            raise RuntimeError(f"protoc failed with status {status}, expected 0")
        files = FileDescriptorSet.FromString(descriptors.read_bytes()).file
    comments = dict(sorted(_comments_of(files)))
    (out / "facets_proto" / "v1" / "comments.json").write_text(json.dumps(comments, indent=0) + "\n", encoding="utf-8")


def _comments_of(files: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for file in files:
        names = dict(_named(file, file.package, ()))
        for location in file.source_code_info.location:
            comment = " ".join((location.leading_comments or location.trailing_comments).split())
            if comment and tuple(location.path) in names:
                yield names[tuple(location.path)], comment


def _named(descriptor: Any, scope: str, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yields the path that protoc gives to each part of a descriptor, with the part's full name."""
    for kind in _PARTS:
        number = descriptor.DESCRIPTOR.fields_by_name.get(kind)
        if number is None:
            continue
        for index, part in enumerate(getattr(descriptor, kind)):
            part_path, name = (*path, number.number, index), f"{scope}.{part.name}"
            yield part_path, name
            yield from _named(part, name, part_path)


if __name__ == "__main__":
    generate(PACKAGE_FOLDER.parent)
