"""Rules of the API that hold without buf, and the generated code against its sources."""

import re
from pathlib import Path

import pytest
from facets_proto.generate import PACKAGE_FOLDER, generate
from proto_files import FILES, SERVICES


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


def test_requests_and_replies_belong_to_one_rpc_each() -> None:
    seen: set[str] = set()
    for service in SERVICES:
        assert service.name.endswith("Service")
        for method in service.methods:
            assert method.input_type.name == f"{method.name}Request"
            assert method.output_type.name == f"{method.name}Response"
            assert not {method.input_type.name, method.output_type.name} & seen
            seen |= {method.input_type.name, method.output_type.name}


def test_enums_start_with_unspecified_and_share_a_prefix() -> None:
    for file in FILES:
        for enum in file.enum_types_by_name.values():
            prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper()
            assert enum.values_by_number[0].name == f"{prefix}_UNSPECIFIED"
            assert all(value.name.startswith(f"{prefix}_") for value in enum.values)


def test_lists_are_plural_and_scalars_singular() -> None:
    for file in FILES:
        for message in file.message_types_by_name.values():
            for field in message.fields:
                if field.is_repeated and not field.message_type == "map":
                    assert field.name.endswith("s") or field.name in {"shape", "evidence", "keep", "avoid"}, (
                        field.full_name
                    )


def test_every_field_rpc_service_and_enum_value_has_a_comment() -> None:
    for path in (PACKAGE_FOLDER / "v1").glob("*.proto"):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            declares = re.match(r"\s*(rpc|service|(repeated |optional )?[\w.]+ \w+ = \d+;|[A-Z_]+ = \d+;)", line)
            if declares and not line.lstrip().startswith("//"):
                assert lines[number - 1].lstrip().startswith("//"), f"{path.name}:{number + 1}: {line.strip()}"
