"""Installs the wheel once for each extra, alone, and checks that what it brings starts and the rest says what it needs.

Each extra gets a fresh environment, filled as README.md says: PyTorch by ``install_torch.py`` where the extra needs
it, then the wheel with the versions of ``constraints.txt``. Packages come from pip's cache after the first time.

    python scripts/check_extras.py [--wheel facets-*.whl] [--client-tests] [EXTRA ...]     # base is the one without

``gpu`` and ``dev`` are left out: no GPU is at hand, and the tests themselves run in ``all``, which has ``dev``.
Needs nothing but a Python with venv. Prints a line a check and ends with 1 when one failed.
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

__all__ = ["CHECKS", "Check", "main"]

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
CLIENT_TEST_NEEDS = ("pytest", "pytest-asyncio", "hypothesis", "grpcio-health-checking")
CLIENT_TEST_PATHS = "tests tests/unit/client/fakes"
HEAVY = ("torch", "faiss", "spacy", "scipy")
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


def _needs(extra: str, *programs: str) -> list[Check]:
    """Programs that end at once, naming the extra."""
    return [Check((program,), f"facets[{extra}]", None) for program in programs]


_ENCODE = "import facets; print(facets.load({}).encode(['A dog barks.']).shape)"
_WITHOUT_HEAVY = f"import importlib.util as u, facets_client; print([name for name in {HEAVY} if u.find_spec(name)])"
_MOVERS = (
    "import facets; from facets.texts import score_pairs; "
    "print(score_pairs(facets.load(), [('A dog barks.', 'A puppy barks.')], method='wmd').scores)"
)
_TRAINING = ("sentences", "relations", "papers")
_MODEL = [_python(_ENCODE.format(""), "(1, 10, 256)")]

CHECKS: dict[str, list[Check]] = {
    "base": [
        _python(_WITHOUT_HEAVY, "[]"),
        _python("import facets; facets.load()", "facets[model]", None),
        Check(("facets", "--help"), "Usage"),
        Check(("facets", "--version")),
        *_needs("server", "facets-server"),
        *_needs("train", "facets-train", "facets-eval"),
    ],
    "model": [*_MODEL, *_needs("server", "facets-server"), *_needs("train", "facets-train", "facets-eval")],
    "server": [
        *_MODEL,
        Check(("facets-server", "--help"), "--data-dir"),
        Check(("facets-server", "--version")),
        Check(("facets-server", "--no-such-flag"), "--no-such-flag", 2),
        *_needs("train", "facets-train", "facets-eval"),
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
        *_needs("server", "facets-server"),
    ],
    "backbone": [*_MODEL, _python(_ENCODE.format("'facets-minilm-en'"), "(1, 10, 256)")],
    "wmd": [*_MODEL, _python(_MOVERS)],
    "plot": [_python("import matplotlib, facets_client.texts.plot"), Check(("facets", "--help"), "Usage")],
}
_WITHOUT_TORCH = {"base", "plot"}


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
        wheel = arguments.wheel or _build_wheel(work)
        for extra in arguments.extras or CHECKS:
            failed += _check_extra(extra, wheel.resolve(), work, with_tests=arguments.client_tests)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for sentence in failed:
        _say(f"FAILED {sentence}")
    return 1 if failed else 0


def _check_extra(extra: str, wheel: Path, work: Path, *, with_tests: bool) -> list[str]:
    """What is wrong with one extra; its environment is gone afterwards."""
    started = time.monotonic()
    folder = work / extra
    _run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    if extra not in _WITHOUT_TORCH:
        _run(python, ROOT / "scripts" / "install_torch.py", "-c", CONSTRAINTS)
    wanted = str(wheel) if extra == "base" else f"{wheel}[{extra}]"
    _run(python, "-m", "pip", "install", "--quiet", "-c", CONSTRAINTS, wanted)
    _say(f"{extra}: installed in {time.monotonic() - started:.0f} s")
    failed = [sentence for check in CHECKS[extra] for sentence in _failures(check, folder, work)]
    if extra == "base" and with_tests and not failed:
        failed += _client_tests(python)
    _say(f"{extra}: {len(CHECKS[extra])} checks, {len(failed)} failed, {time.monotonic() - started:.0f} s in all")
    shutil.rmtree(folder)
    return [f"{extra}: {sentence}" for sentence in failed]


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


def _client_tests(python: Path) -> list[str]:
    """The client's unit tests against the client of the wheel, not of the checkout."""
    _run(python, "-m", "pip", "install", "--quiet", "-c", CONSTRAINTS, *CLIENT_TEST_NEEDS)
    options = ["-q", "-p", "no:cacheprovider", "-o", f"pythonpath={CLIENT_TEST_PATHS}", "tests/unit/client"]
    done = subprocess.run([python, "-m", "pytest", *options], cwd=ROOT, env=_environment(), check=False)
    return [f"the client's tests ended with {done.returncode}"] if done.returncode else []


def _build_wheel(work: Path) -> Path:
    """The wheel of the checkout; hatchling comes into an environment of its own, as pip does it."""
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", work / "wheel", ROOT)
    (wheel,) = (work / "wheel").glob("*.whl")
    return wheel


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
    parser = argparse.ArgumentParser(description="Checks each extra alone, in a fresh environment.")
    parser.add_argument("extras", nargs="*", choices=[[], *CHECKS], metavar="EXTRA", help=f"of {', '.join(CHECKS)}")
    parser.add_argument("--wheel", type=Path, help="check this wheel instead of building one")
    parser.add_argument("--client-tests", action="store_true", help="run the client's unit tests in the base install")
    return parser


if __name__ == "__main__":
    sys.exit(main())
