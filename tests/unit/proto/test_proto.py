"""Rules of the API that buf does not check, and the generated code against its sources."""

import re
from pathlib import Path

import pytest
from facets_proto.generate import PACKAGE_FOLDER, generate
from proto_files import FILES


def test_generated_code_matches_the_sources(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    generate(tmp_path)
    made = {path.name: path.read_bytes() for path in (tmp_path / "facets_proto" / "v1").iterdir()}
    kept = {
        path.name: path.read_bytes()
        for path in (PACKAGE_FOLDER / "v1").iterdir()
        if path.is_file() and path.suffix != ".proto" and path.name != "__init__.py"
    }
    assert made == kept


def test_lists_are_plural_and_scalars_singular() -> None:
    for file in FILES:
        for message in file.message_types_by_name.values():
            for field in message.fields:
                if field.is_repeated and not field.message_type == "map":
                    assert field.name.endswith("s") or field.name in {"shape", "evidence", "keep", "avoid"}, (
                        field.full_name
                    )


def test_every_field_rpc_service_and_enum_value_but_unspecified_has_a_comment() -> None:
    for path in (PACKAGE_FOLDER / "v1").glob("*.proto"):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            declares = re.match(r"\s*(rpc|service|(repeated |optional )?[\w.]+ \w+ = \d+;|[A-Z_\d]+ = [1-9]\d*;)", line)
            if declares and not line.lstrip().startswith("//"):
                above = lines[number - 1].lstrip()
                assert "  // " in line or above.startswith("//"), f"{path.name}:{number + 1}: {line.strip()}"
