"""Builds every distribution of Facets: client, server, laboratory, library, and a package for each shipped model.

The first four have their own ``pyproject.toml``; model packages are made from a template and contain the folder
``models/NAME`` unchanged. A model that uses files of another model requires its package.

    python scripts/build_packages.py [--out dist] [--wheels] [NAME ...]     # NAME: multifacet-client, facets-en ...

Needs ``build`` and ``hatchling`` (extra ``dev``) and no network.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "scripts" / "model_package.toml"
# Distribution -> folder of its pyproject.toml.
CODE = {
    "multifacet-client": ROOT / "clients",
    "multifacet-server": ROOT / "server",
    "multifacet-lab": ROOT / "lab",
    "multifacet": ROOT,
}
MAX_MB = 60  # of a file: package indexes refuse more than 100
# Settings that name another model's folder: file, then keys.
_BORROWING = (
    ("config.json", "words"),
    ("config.json", "encoder_of"),
    ("config.json", "queries"),
    ("recommendation.json", "sentences", "encoder"),
    ("recommendation.json", "additions", "encoder"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the named distributions, or all; returns the exit code."""
    everything = [*CODE, *model_names(ROOT / "models")]
    parser = argparse.ArgumentParser(description="Builds every distribution.")
    parser.add_argument(
        "names", nargs="*", choices=[[], *everything], metavar="NAME", help=f"of {', '.join(everything)}"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="output folder")
    parser.add_argument("--wheels", action="store_true", help="build no source distributions")
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    kinds = ["--wheel"] if arguments.wheels else []
    command = [sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", str(arguments.out.resolve())]
    with tempfile.TemporaryDirectory(prefix="facets-packages-") as work:
        for name in arguments.names or everything:
            source = CODE.get(name) or stage_model(ROOT / "models" / name, Path(work) / name)
            done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{done.stdout}{done.stderr}build_packages: {name} could not be built")
    return check_sizes(arguments.out)


def check_sizes(folder: Path) -> int:
    """Prints the sizes of the distributions in a folder; returns 1 if one of them is too large."""
    megabytes = {path.name: path.stat().st_size / 1e6 for path in sorted(folder.iterdir())}
    for name, size in megabytes.items():
        print(f"{size:7.2f} MB  {name}{f': expected at most {MAX_MB} MB' if size > MAX_MB else ''}")
    return int(any(size > MAX_MB for size in megabytes.values()))


def model_names(models: Path) -> list[str]:
    """The models that have a package: those directly below ``models/``, not the baselines."""
    return sorted(file.parent.name for file in models.glob("*/config.json"))


def borrows(folder: Path) -> list[str]:
    """Names of the models whose files a model uses."""
    names = []
    for file, *keys in _BORROWING:
        value = json.loads((folder / file).read_text(encoding="utf-8")) if (folder / file).exists() else None
        for key in keys:
            value = (value or {}).get(key)
        if value not in (None, "."):
            names.append(Path(value).name)
    return names


def stage_model(folder: Path, stage: Path) -> Path:
    """Writes the sources of a model's package to a new folder and returns that."""
    distribution = _distribution(folder.name)
    module = distribution.replace("-", "_")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    shutil.copytree(folder, stage / module / folder.name)
    (stage / module / "__init__.py").write_text(f'"""The model {folder.name} of Facets: data alone."""\n')
    for file in (ROOT / "LICENSE", ROOT / "NOTICE", folder / "README.md"):
        shutil.copy(file, stage / file.name)
    needs = ", ".join(f'"{_distribution(name)}=={version}"' for name in borrows(folder))
    filled = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        distribution=distribution, version=version, model=folder.name, module=module, needs=needs
    )
    (stage / "pyproject.toml").write_text(filled, encoding="utf-8")
    return stage


def _distribution(model: str) -> str:
    return f"multifacet-model-{model.removeprefix('facets-')}"


if __name__ == "__main__":
    sys.exit(main())
