"""Asks for known weaknesses of pinned packages, and says so when nobody could be asked.

``pip-audit`` asks the package index, or OSV, and takes an index that knows of no weaknesses at all, as mirrors do, for
one without weak packages. So each is first asked for a release whose weakness is known; the first that finds it is
asked for all packages.

Example: python scripts/audit.py .venv/release/bin/pip-audit server.txt

Ends with 0 when nothing is known, 1 when something is or a package could not be looked up, 3 when nobody could be
asked.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KNOWN_WEAK = "jinja2==2.10"  # CVE-2019-10906, a way out of the sandbox
SERVICES = ("pypi", "osv")
NOT_ASKED = 3
_LIMIT_S = 600


def main(argv: Sequence[str]) -> int:
    """Audits a file of requirements; returns the exit code."""
    program, requirements = argv
    for service in SERVICES:
        try:
            _check(program, service)
            return _report(_audit(program, service, Path(requirements)), service)
        except _NoAnswerError as error:
            _say(f"{service} cannot be asked: {error}")
    _say("NOT AUDITED: no database of weaknesses answers from here; run it where one does")
    return NOT_ASKED


def _check(program: str, service: str) -> None:
    """Raises unless a service finds what is known."""
    with tempfile.TemporaryDirectory() as folder:
        control = Path(folder) / "control.txt"
        control.write_text(f"{KNOWN_WEAK}\n", encoding="utf-8")
        (found,) = _audit(program, service, control)
    if not found.get("vulns"):
        raise _NoAnswerError(found.get("skip_reason", f"it knows nothing of the weakness of {KNOWN_WEAK}"))


def _report(found: list[dict[str, Any]], service: str) -> int:
    weak = [one for one in found if one.get("vulns")]
    skipped = [one for one in found if "skip_reason" in one]
    for one in weak:
        for weakness in one["vulns"]:
            fixed = ", ".join(weakness["fix_versions"]) or "no release"
            sys.stdout.write(f"{one['name']} {one['version']}: {weakness['id']}, fixed in {fixed}\n")
    for one in skipped:
        sys.stdout.write(f"{one['name']}: not looked up: {one['skip_reason']}\n")
    looked_up = f"{len(found) - len(skipped)} of {len(found)} packages looked up at {service}"
    _say(f"{looked_up}, {len(weak)} with known weaknesses")
    return 1 if weak or skipped else 0


class _NoAnswerError(Exception):
    """The service could not be asked."""


def _audit(program: str, service: str, requirements: Path) -> list[dict[str, Any]]:
    """What pip-audit found, a dictionary a package."""
    options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    command = [program, *options, "--vulnerability-service", service, "--requirement", str(requirements)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise _NoAnswerError(f"no answer within {_LIMIT_S} s") from None
    try:
        return list(json.loads(done.stdout)["dependencies"])
    except (ValueError, KeyError):
        last = [line for line in done.stderr.splitlines() if line.strip()] or [f"ended with {done.returncode}"]
        raise _NoAnswerError(last[-1].strip()) from None


def _say(sentence: str) -> None:
    sys.stderr.write(f"audit: {sentence}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
