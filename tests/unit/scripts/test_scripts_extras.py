"""The table of distributions and extras that continuous integration installs one by one."""

import tomllib
from pathlib import Path

import pytest
from facets_client.adapters import MODULES as ADAPTED
from test_scripts_setup import ROOT, script

# Not installed alone: no GPU build was tested, and `dev` and `all` are what the tests run in.
LEFT_OUT = {"gpu", "dev", "all"} | {"adapters", "mteb", *ADAPTED}  # `make test-adapters` installs these
PROJECTS = ("pyproject.toml", "clients/pyproject.toml", "server/pyproject.toml")


def projects() -> list[dict]:
    return [tomllib.loads((ROOT / file).read_text(encoding="utf-8"))["project"] for file in PROJECTS]


def test_every_distribution_and_extra_is_checked() -> None:
    extras = {extra for project in projects() for extra in project.get("optional-dependencies", {})}
    parts = script("check_extras").PARTS
    assert set(script("check_extras").CHECKS) == set(parts) == {"client", "library", *extras} - LEFT_OUT


def test_a_part_comes_behind_the_one_that_it_extends() -> None:
    seen = {""}
    for name, part in script("check_extras").PARTS.items():
        assert part.extends in seen
        seen.add(name)


def test_every_program_starts_with_what_brings_it() -> None:
    checks = [check for part in script("check_extras").CHECKS.values() for check in part]
    for program in {program for project in projects() for program in project.get("scripts", ())}:
        assert any(check.command == (program, "--help") and check.status == 0 for check in checks)


def test_a_copied_environment_runs_its_own_python(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / "bin").mkdir(parents=True)
    (source / "bin" / "facets").write_text(f"#!{source}/bin/python\n")
    (source / "module.py").write_text("x = 1\n")
    script("check_extras").copy_environment(source, copy)
    assert (copy / "bin" / "facets").read_text() == f"#!{copy}/bin/python\n"
    assert (source / "bin" / "facets").read_text() == f"#!{source}/bin/python\n"
    assert (copy / "module.py").samefile(source / "module.py")


@pytest.mark.parametrize("wanted", [["train"], ["model"], ["client", "models"]])
def test_parts_bring_those_that_they_extend(wanted: list[str]) -> None:
    module = script("check_extras")
    chosen = module.with_extended(wanted)
    assert set(wanted) <= set(chosen)
    assert all(module.PARTS[name].extends in {"", *chosen} for name in chosen)


def test_the_recognizer_is_one_version_everywhere_and_has_its_hash() -> None:
    (pinned,) = (line for line in (ROOT / "recognizer.txt").read_text().splitlines() if not line.startswith("#"))
    requirement, separator, digest = pinned.partition(" --hash=sha256:")
    assert separator and len(digest) == 64
    assert requirement in projects()[0]["optional-dependencies"]["entities"]
    assert requirement in (ROOT / "constraints.txt").read_text().splitlines()
    assert "!recognizer.txt" in (ROOT / ".dockerignore").read_text().splitlines()
