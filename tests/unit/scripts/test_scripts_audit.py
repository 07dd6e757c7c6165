"""An audit that could not be made is no audit that found nothing."""

import json
import stat
import sys
from pathlib import Path

import pytest
from test_scripts_setup import script

# Stands for pip-audit: answers what a file says of the service and of the packages that are asked for.
STAND_IN = """#!{python}
import json, sys
arguments = sys.argv[1:]
service = arguments[arguments.index("--vulnerability-service") + 1]
asked = open(arguments[arguments.index("--requirement") + 1]).read().split()
answers = json.load(open({answers!r})).get(service)
if answers is None:
    sys.stderr.write("Traceback\\nConnectionError: no way to " + service + "\\n")
    sys.exit(1)
found = []
for line in asked:
    name, _, version = line.partition("==")
    if name in answers.get("skipped", ()):
        found.append({{"name": name, "skip_reason": "not found"}})
    else:
        vulns = [{{"id": one, "fix_versions": ["9"]}} for one in answers.get(name, ())]
        found.append({{"name": name, "version": version, "vulns": vulns}})
print(json.dumps({{"dependencies": found, "fixes": []}}))
sys.exit(any(one.get("vulns") for one in found))
"""
KNOWS = {"jinja2": ["CVE-2019-10906"]}


def audited(tmp_path: Path, **answers: dict[str, list[str]]) -> int:
    program = tmp_path / "pip-audit"
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    program.write_text(STAND_IN.format(python=sys.executable, answers=str(tmp_path / "answers.json")))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "served.txt").write_text("a==1\nb==2\n")
    return int(script("audit").main([str(program), str(tmp_path / "served.txt")]))


def test_packages_without_known_weaknesses_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audited(tmp_path, pypi=KNOWS) == 0
    assert capsys.readouterr().err == "audit: 2 of 2 packages looked up at pypi, 0 with known weaknesses\n"


def test_a_weakness_fails_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audited(tmp_path, pypi={**KNOWS, "b": ["CVE-1", "CVE-2"]}) == 1
    assert capsys.readouterr().out == "b 2: CVE-1, fixed in 9\nb 2: CVE-2, fixed in 9\n"


def test_a_package_that_is_not_known_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audited(tmp_path, pypi={**KNOWS, "skipped": ["a"]}) == 1
    said = capsys.readouterr()
    assert said.out == "a: not looked up: not found\n"
    assert "1 of 2 packages" in said.err


def test_a_mirror_that_knows_no_weaknesses_is_not_believed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audited(tmp_path, pypi={}, osv={**KNOWS, "a": ["CVE-3"]}) == 1
    said = capsys.readouterr()
    assert "pypi cannot be asked: it knows nothing of the weakness of jinja2==2.10" in said.err
    assert "a 1: CVE-3" in said.out


def test_nobody_to_ask_is_said_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audited(tmp_path, pypi={}) == script("audit").NOT_ASKED
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == "audit: osv cannot be asked: ConnectionError: no way to osv"
    assert lines[2].startswith("audit: NOT AUDITED")
