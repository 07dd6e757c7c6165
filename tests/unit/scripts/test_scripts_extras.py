"""The table of extras that continuous integration installs one by one."""

import tomllib

from test_scripts_setup import ROOT, script

# Not installed alone: no GPU build was tested, and `dev` and `all` are what the tests run in.
LEFT_OUT = {"gpu", "dev", "all"}


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_extra_and_the_base_install_are_checked() -> None:
    assert set(script("check_extras").CHECKS) == {"base", *project()["optional-dependencies"]} - LEFT_OUT


def test_every_program_starts_with_its_extra_and_says_what_it_needs_without() -> None:
    checks = script("check_extras").CHECKS
    programs = set(project()["scripts"])
    assert programs == {check.command[0] for part in checks.values() for check in part} - {"python"}
    assert programs == {check.command[0] for check in checks["base"]} - {"python"}
    for program in programs - {"facets"}:
        assert any(
            check.command == (program, "--help") and check.status == 0 for part in checks.values() for check in part
        )
