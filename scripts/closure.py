"""Prints every package that distributions of Facets bring, with its version, as installed in the running environment.

One ``name==version`` a line: what an SBOM or an audit of a product, not of a developer's environment, is made from.

Example: python scripts/closure.py [--others] 'multifacet[server,entities]' > server.txt
"""

import sys
from collections.abc import Iterable, Sequence
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def closure(wanted: Iterable[str]) -> dict[str, str]:
    """Versions by name, in alphabetical order, of all that some requirements bring.

    Args:
        wanted: As for pip, with extras.

    Raises:
        importlib.metadata.PackageNotFoundError: One of them is not installed.
    """
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(line) for line in wanted]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        found[name] = metadata.version(name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                lines = map(Requirement, metadata.requires(name) or ())
                waiting += [line for line in lines if _applies(line, extra)]
    return dict(sorted(found.items()))


def _applies(requirement: Requirement, extra: str) -> bool:
    """Whether an extra, or the base for an empty one, adds a requirement here."""
    if requirement.marker is None:
        return not extra
    return requirement.marker.evaluate({"extra": extra})


def main(argv: Sequence[str]) -> int:
    """Prints them; returns the exit code."""
    only_others = "--others" in argv  # without distributions of ours, and without local versions (2.13.0+cpu)
    try:
        found = closure(line for line in argv if line != "--others")
    except metadata.PackageNotFoundError as error:
        sys.stderr.write(f"closure: {error.name} is not installed here: make install\n")
        return 1
    for name, version in found.items():
        if not (only_others and name.startswith("multifacet")):
            sys.stdout.write(f"{name}=={version.partition('+')[0] if only_others else version}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
