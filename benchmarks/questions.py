"""Questions over ordinary files: ``python -m benchmarks.questions [SET] [--peers] [--model NAME]``; prints JSON.

``facets index`` reads the files and a server process answers the questions, in each mode. Four sets, written before
any system had answered; of the split ``held`` only the counts are looked at. ``people``: fifty questions over
``tests/answers/people``; READMEs, licences and docstrings are from installed packages, and lead sections of Wikipedia
articles are from ``../shared/data/corpus`` (without it, their questions are left out). ``files``: a hundred questions
over ``tests/answers/people_files``, forty of which nothing answers. ``folders``: 1,104 questions over eleven folders,
such as those of a school, a hotel and a museum, 366 of which nothing answers. ``references``: 400 queries, most of them
descriptions of what is wanted, over four collections of short documents that are near twins of each other, such as the
functions of a library; for 120 there is none. ``--peers`` adds bm25s and MiniLM cosines over the same texts.
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
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import distributions
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from facets_client import FacetsClient
from facets_client.generated.types import SearchMode
from facets_lab.documents.folders import FOLDERS, REFERENCES, read_folders
from facets_lab.documents.retrieval import best_rows, bm25_scores
from facets_lab.evaluation.comparison import minilm
from facets_lab.training.corpus import read_titled_documents

from benchmarks.measuring import print_report
from benchmarks.server import serving

_ROOT = Path(__file__).resolve().parents[1]
_ANSWERS = _ROOT / "tests" / "answers"
PEOPLE, EVERYDAY = _ANSWERS / "people", _ANSWERS / "people_files"
CORPUS = _ROOT.parent / "shared" / "data" / "corpus" / "shard-03.txt.xz"
MODES: tuple[SearchMode, ...] = ("hybrid", "facets", "lexical")
SHOWN = 0.1  # hits with a lower confidence are hidden
_COLUMNS = {  # options of `facets index` for a table
    PEOPLE / "tickets.csv": ("--id", "Ticket"),
    EVERYDAY / "tickets.csv": ("--id", "Ticket", "--text", "Problem", "--text", "Resolution"),
    EVERYDAY / "orders.csv": ("--id", "Order"),
}
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
    """A line of a file of questions."""

    question: str
    collection: str
    split: str
    documents: Sequence[str] = ()  # names of those that answer; empty: nothing answers
    answers: Sequence[str] = ()  # texts of which the answer that is shown contains at least one
    # Of questions that nothing answers: `stranger`, `foreign`, `another` for a thing that is not in the files, or
    # `attribute` if the files name the subject, but not what is asked about it. Of others, the kind of the file.
    kind: str = "answered"
    paraphrase: bool = False  # the document uses other words


Asked = tuple[list[Question], dict[str, Path]]  # questions, and the file or folder of each collection


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Answer of a system to a question."""

    names: Sequence[str]  # of the first five documents
    evidence: str = ""  # text shown for the first right document among them, otherwise for the first document
    confidence: float = 0.0  # of the first document


def main(arguments: Sequence[str] | None = None) -> None:
    """Asks all questions and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", choices=[[], *SETS], metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--model", help="shipped model or checkpoint folder (default: the shipped one)")
    parser.add_argument("--peers", action="store_true", help="ask bm25s and MiniLM too")
    options = parser.parse_args(arguments)
    figures = {name: report(name, options.model, with_peers=options.peers) for name in options.sets or SETS}
    print_report({"benchmark": "questions", "sets": figures})


def report(name: str, model: str | None = None, *, with_peers: bool = False) -> dict[str, Any]:
    """Results of every system over all questions of a set, and each split."""
    with asked(name, model) as (client, found):
        systems: dict[str, list[Answer]] = {mode: [_answer(client, one, mode) for one in found] for mode in MODES}
        if with_peers:
            systems |= _peers(client, found)
    figures = {
        system: {
            split: tally([pair for pair in zip(found, answers, strict=True) if split in ("all", pair[0].split)])
            for split in ("all", "dev", "held")
        }
        for system, answers in systems.items()
    }
    return {"questions": len(found), "systems": figures}


@contextmanager
def asked(name: str, model: str | None = None) -> Iterator[tuple[FacetsClient, list[Question]]]:
    """A client of a server that holds the collections of a set, and their questions."""
    with tempfile.TemporaryDirectory(prefix="facets-questions-") as directory:
        found, collections = SETS[name](Path(directory) / "files")
        with serving(model, Path(directory) / "data") as server, FacetsClient(server.target) as client:
            for collection, path in collections.items():
                index_files(server.target, collection, path, model or "", _COLUMNS.get(path, ()))
            yield client, [one for one in found if one.collection in collections]


def _questions(path: Path) -> list[Question]:
    return [Question(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def write_everyday_files(folder: Path) -> Asked:
    """The tables of the everyday files, and a folder with the others."""
    mixed = shutil.copytree(EVERYDAY, folder / "files", ignore=shutil.ignore_patterns("*.csv"))
    tables = {path.stem: path for path in EVERYDAY.glob("*.csv")}
    return _questions(_ANSWERS / "people_questions.jsonl"), tables | {"files": mixed}


def write_folders(folder: Path, path: Path = FOLDERS) -> Asked:
    """The files of the folders that the reader did not learn; each is a collection."""
    found, made = list[Question](), dict[str, Path]()
    for one in read_folders("dev", "held", path=path):
        made[one.name] = folder / one.name
        made[one.name].mkdir(parents=True)
        for name, text in one.files.items():
            (made[one.name] / name).write_text(text, encoding="utf-8")
        found += [Question(**own.model_dump(), collection=one.name, split=one.split) for own in one.questions]
    return found, made


def write_people(folder: Path) -> Asked:
    """Writes the files of each collection of ``people``; Wikipedia leads only if the corpus exists.

    Questions about what the installed packages no longer say are left out.
    """
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
    texts = {name_of(path.name): path.read_text(encoding="utf-8") for path in mixed.rglob("*.*")}

    def has_answer(one: Question) -> bool:
        return any(holds(texts.get(name, ""), answer) for name in one.documents for answer in one.answers)

    asked = _questions(PEOPLE / "questions.jsonl")
    return [one for one in asked if one.collection != "folder" or not one.documents or has_answer(one)], made


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
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([*command, str(path), *options], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"facets index {path}: exit code {done.returncode}: {done.stdout}{done.stderr}")


def _answer(client: FacetsClient, one: Question, mode: SearchMode) -> Answer:
    found = client.search(one.collection, [one.question], top_k=5, mode=mode, min_confidence=0.0)
    hits = found[0].hits
    names = [name_of(hit.id) for hit in hits]
    shown = next(
        (hit for hit, name in zip(hits, names, strict=True) if name in map(name_of, one.documents)),
        hits[0] if hits else None,
    )
    evidence = shown.answer.text if shown and shown.answer else ""
    return Answer(names=names, evidence=evidence, confidence=(hits[0].confidence if hits else 0.0) or 0.0)


def name_of(key: str) -> str:
    """Name of a document in the questions: its id, for a file its name without folder, suffix and place in it."""
    return re.sub(r"\.(txt|md|html)(#.*)?$", "", key.rpartition("/")[2])


def _peers(client: FacetsClient, found: Sequence[Question]) -> dict[str, list[Answer]]:
    """Answers of bm25s (k1 0.9, b 0.4, stems) and MiniLM (first 256 pieces) over the stored texts."""
    encode, questions = minilm(), [one.question for one in found]
    asked_QD, scores = encode(questions), {}
    for collection in {one.collection for one in found}:
        documents = list(client.list_documents(collection, page_size=100))
        texts, names = [document.text for document in documents], [name_of(document.id) for document in documents]
        scores[collection] = names, {"bm25s": bm25_scores(texts, questions), "minilm": asked_QD @ encode(texts).T}
    answers: dict[str, list[Answer]] = {"bm25s": [], "minilm": []}
    for row, one in enumerate(found):
        names, of_systems = scores[one.collection]
        for name, scores_QN in of_systems.items():
            answers[name].append(Answer(names=[names[place] for place in best_rows(scores_QN[row], 5)]))
    return answers


def tally(pairs: Sequence[tuple[Question, Answer]]) -> dict[str, float]:
    """Counts of right documents, answers and hidden hits, and how well confidence tells what has an answer.

    Of those ``asked`` that have an answer, ``first``, ``five``: a right document is first, among the first five;
    ``shown``: first, with a confidence of 0.1 or more; ``evidence``: first, and the text shown answers;
    ``evidence_of_document``: it answers at any rank. ``KIND``, ``KIND_hidden``: questions that nothing answers, and
    those with a lower confidence. ``auc``: share of pairs of an answered and an unanswered question in which the
    answered one has the higher confidence.
    """
    counts = Counter(dict.fromkeys(("asked", "first", "five", "shown", "evidence", "evidence_of_document"), 0))
    for one, answer in pairs:
        is_hidden = answer.confidence < SHOWN
        if not one.documents:
            counts[one.kind] += 1
            counts[f"{one.kind}_hidden"] += is_hidden
            continue
        right = [name in map(name_of, one.documents) for name in answer.names]
        is_first, answers = right[:1] == [True], any(holds(answer.evidence, text) for text in one.answers)
        counts["asked"] += 1
        counts["first"] += is_first
        counts["five"] += any(right)
        counts["shown"] += is_first and not is_hidden
        counts["evidence"] += is_first and answers
        counts["evidence_of_document"] += any(right) and answers
    answered = np.array([answer.confidence for one, answer in pairs if one.documents])[:, np.newaxis]
    unanswered = np.array([answer.confidence for one, answer in pairs if not one.documents])
    auc = np.mean(answered > unanswered) + 0.5 * np.mean(answered == unanswered)
    return {**counts, "auc": round(float(auc), 3)}


def holds(text: str, part: str) -> bool:
    """Whether a text contains a part, ignoring line breaks."""
    plain = " ".join(re.sub(r"(?<=[a-z])-\n\s*(?=[a-z])", "", text).split()).casefold()
    return part.casefold() in plain


SETS: dict[str, Callable[[Path], Asked]] = {
    "people": write_people,
    "files": write_everyday_files,
    "folders": write_folders,
    "references": partial(write_folders, path=REFERENCES),
}

if __name__ == "__main__":
    main()
