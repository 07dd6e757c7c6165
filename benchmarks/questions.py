"""Forty questions over ordinary files: ``python -m benchmarks.questions [--peers] [--model NAME]``; prints JSON.

``facets index`` reads the files and a server process answers the questions, in each mode. ``--peers`` adds bm25s and
MiniLM cosines over the same texts. Questions and answers are in ``tests/answers/people``; READMEs, licences
and docstrings are from installed packages, and lead sections of Wikipedia articles are from ``../shared/data/corpus``
(without it, their questions are left out).
"""

import argparse
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from itertools import islice
from pathlib import Path

import numpy as np
from facets_client import FacetsClient
from facets_client.generated.types import SearchMode
from facets_lab.documents.retrieval import Bm25
from facets_lab.training.corpus import read_titled_documents

from benchmarks.measuring import minilm, print_report
from benchmarks.server import serving

_ROOT = Path(__file__).resolve().parents[1]
PEOPLE = _ROOT / "tests" / "answers" / "people"
CORPUS = _ROOT.parent / "shared" / "data" / "corpus" / "shard-03.txt.xz"
MODES: tuple[SearchMode, ...] = ("hybrid", "facets", "lexical")
SHOWN = 0.1  # hits with a lower confidence are hidden
_LEADS = 3_600
_LEAST_README = 400  # minimum length in characters
_LICENCES = {"LICENCE-MPL": "certifi", "LICENCE-LGPL": "gensim", "LICENCE-BSD": "click"}
_LICENCES |= {"LICENCE-PSF": "typing_extensions", "LICENCE-ISC": "shellingham", "LICENCE-MIT": "rich"}
_MODULES = """argparse array ast base64 bisect bz2 calendar cmath codecs collections configparser contextlib copy csv
 dataclasses datetime decimal difflib email.message enum fileinput fnmatch fractions ftplib functools getpass glob gzip
 hashlib heapq hmac html http.client imaplib inspect io ipaddress itertools json locale logging lzma mailbox math
 mimetypes operator os os.path pathlib pickle platform pprint queue random re sched secrets select shelve shlex shutil
 signal smtplib socket sqlite3 ssl statistics string subprocess tarfile tempfile textwrap threading time timeit tokenize
 traceback types unicodedata urllib.parse urllib.request uuid venv warnings wave weakref webbrowser zipfile
 zlib""".split()


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A line of ``questions.jsonl``; a question without documents is unanswerable."""

    kind: str
    collection: str
    question: str
    documents: Sequence[str]
    evidence: Sequence[str]
    paraphrase: bool
    split: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Answer of a system to a question."""

    names: Sequence[str]  # of the first five documents
    confidences: Sequence[float]  # of these documents; empty if the system has none
    evidence: str  # text shown for the first correct document among them, otherwise for the first document


def main(arguments: Sequence[str] | None = None) -> None:
    """Asks all questions and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="shipped model or checkpoint folder (default: the shipped one)")
    parser.add_argument("--peers", action="store_true", help="ask bm25s and MiniLM too")
    options = parser.parse_args(arguments)
    print_report(report(options.model, with_peers=options.peers))


def report(model: str | None = None, *, with_peers: bool = False) -> dict[str, object]:
    """Results of every system over all questions and each split."""
    with asked(model) as (client, found):
        systems = {mode: [_answer(client, one, mode) for one in found] for mode in MODES}
        if with_peers:
            systems |= _peers(client, found)
    figures = {
        name: {
            split: tally([pair for pair in zip(found, answers, strict=True) if split in ("all", pair[0].split)])
            for split in ("all", "dev", "held")
        }
        for name, answers in systems.items()
    }
    return {"benchmark": "questions", "questions": len(found), "systems": figures}


def questions() -> list[Question]:
    """All questions in the order of the file."""
    lines = (PEOPLE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [Question(**json.loads(line)) for line in lines]


@contextmanager
def asked(model: str | None = None) -> Iterator[tuple[FacetsClient, list[Question]]]:
    """A client of a server that holds the collections, and their questions."""
    with tempfile.TemporaryDirectory(prefix="facets-questions-") as directory:
        collections = write_files(Path(directory) / "files")
        with serving(model, Path(directory) / "data") as server, FacetsClient(server.target) as client:
            for name, path in collections.items():
                index_files(server.target, name, path, model or "", ("--id", "Ticket") if path.suffix == ".csv" else ())
            yield client, [one for one in questions() if one.collection in collections]


def write_files(folder: Path) -> dict[str, Path]:
    """Writes the files of each collection; Wikipedia leads only if the corpus exists."""
    mixed = folder / "folder"
    mixed.mkdir(parents=True)
    for part in ("pages", "mails", "web"):
        shutil.copytree(PEOPLE / part, mixed / part)
    shutil.copy(_ROOT / "LICENSE", mixed / "LICENCE-Apache.txt")
    by_name = {one.name: one for one in distributions()}
    for name, one in by_name.items():
        text = (one.read_text("METADATA") or "").partition("\n\n")[2]
        if len(text) >= _LEAST_README and not name.startswith("multifacet"):
            (mixed / f"{name}.md").write_text(text, encoding="utf-8")
    for name, distribution in _LICENCES.items():
        files = by_name[distribution].files or []
        licence = next(file for file in files if re.match(r"(LICEN[SC]E|COPYING)", file.name))
        shutil.copy(str(licence.locate()), mixed / f"{name}.txt")
    _write_lines(folder / "docstrings.jsonl", docstrings())
    made = {"tickets": PEOPLE / "tickets.csv", "folder": mixed, "code": folder / "docstrings.jsonl"}
    if CORPUS.is_file():
        _write_lines(folder / "leads.jsonl", leads())
        made["wikipedia"] = folder / "leads.jsonl"
    return made


def docstrings() -> dict[str, str]:
    """Docstrings of public functions, classes and methods of the standard library by name."""
    found: dict[str, str] = {}
    for module in _MODULES:
        for name, value in vars(importlib.import_module(module)).items():
            if name.startswith("_") or not callable(value):
                continue
            holder = f"{module}.{name}"
            members = vars(value).items() if inspect.isclass(value) else ()
            own = ((f"{holder}.{key}", member) for key, member in members if not key.startswith("_"))
            for key, member in ((holder, value), *own):
                text = getattr(member, "__doc__", None)
                if isinstance(text, str) and len(text) > 40 and text not in found.values():
                    found[key] = text
    return found


def leads() -> dict[str, str]:
    """First paragraphs of articles by title."""
    return {title: paragraphs[0] for title, paragraphs in islice(read_titled_documents(CORPUS), _LEADS)}


def _write_lines(path: Path, texts: Mapping[str, str]) -> None:
    lines = (json.dumps({"id": key, "text": text}) for key, text in texts.items())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def index_files(target: str, name: str, path: Path, model: str, columns: Sequence[str] = ()) -> None:
    """Runs ``facets index`` as a user would; ``columns``: options that name the columns of a table."""
    options = ["--collection", name, "--create", *(("--model", model) if model else ())]
    options += columns
    command = [sys.executable, "-c", "from facets_client.cli import main; main()", "--target", target, "index"]
    with tempfile.TemporaryDirectory(prefix="facets-questions-state-") as state:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XDG_STATE_HOME": state}
        done = subprocess.run([*command, str(path), *options], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"facets index {path}: exit code {done.returncode}: {done.stdout}{done.stderr}")


def _answer(client: FacetsClient, one: Question, mode: SearchMode) -> Answer:
    found = client.search(one.collection, [one.question], top_k=5, mode=mode, min_confidence=0.0)
    hits = found[0].hits
    names = [name_of(hit.id) for hit in hits]
    shown = next(
        (hit for hit, name in zip(hits, names, strict=True) if name in one.documents), hits[0] if hits else None
    )
    evidence = shown.text[shown.answer.start : shown.answer.end] if shown and shown.answer else ""
    return Answer(names=names, confidences=[hit.confidence or 0.0 for hit in hits], evidence=evidence)


def name_of(key: str) -> str:
    """Name of a document in the questions: its id, without folder and suffix for a file."""
    return re.sub(r"\.(txt|md|html)$", "", key.rpartition("/")[2])


def _peers(client: FacetsClient, found: Sequence[Question]) -> dict[str, list[Answer]]:
    """Answers of bm25s (k1 0.9, b 0.4, stems) and MiniLM (first 256 pieces) over the stored texts."""
    encode = minilm()
    answers: dict[str, list[Answer]] = {"bm25s": [], "minilm": []}
    texts_of = {}
    for collection in {one.collection for one in found}:
        documents = list(client.list_documents(collection, page_size=100))
        texts = [document.text for document in documents]
        names = [name_of(document.id) for document in documents]
        texts_of[collection] = names, Bm25(texts), np.asarray(encode(texts))
    for one in found:
        names, bm25, vectors = texts_of[one.collection]
        scores = {"bm25s": bm25.scores([one.question])[0], "minilm": vectors @ np.asarray(encode([one.question]))[0]}
        for name, scores_N in scores.items():
            best = [names[row] for row in np.argsort(-scores_N, kind="stable")[:5]]
            answers[name].append(Answer(names=best, confidences=(), evidence=""))
    return answers


def tally(pairs: Sequence[tuple[Question, Answer]]) -> dict[str, int]:
    """Counts: correct first, among five, first and shown, evidence correct; unanswerable, and those hidden."""
    counts = dict.fromkeys(("asked", "first", "five", "shown", "evidence", "strangers", "hidden"), 0)
    for one, answer in pairs:
        sure = answer.confidences[0] if answer.confidences else 0.0
        if not one.documents:
            counts["strangers"] += 1
            counts["hidden"] += sure < SHOWN
            continue
        first = answer.names[:1] and answer.names[0] in one.documents
        counts["asked"] += 1
        counts["first"] += bool(first)
        counts["five"] += any(name in one.documents for name in answer.names)
        counts["shown"] += bool(first) and sure > SHOWN
        counts["evidence"] += bool(first) and holds(answer.evidence, one.evidence)
    return counts


def holds(text: str, words: Sequence[str]) -> bool:
    """Whether a text contains all words, ignoring line breaks."""
    plain = " ".join(re.sub(r"(?<=[a-z])-\n\s*(?=[a-z])", "", text).split()).casefold()
    return all(word.casefold() in plain for word in words)


if __name__ == "__main__":
    main()
