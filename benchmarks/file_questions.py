"""Sixty questions to everyday files, forty without an answer: ``python -m benchmarks.file_questions``; prints JSON.

``facets index`` reads ``tests/answers/people_files`` and a server process answers ``people_questions.jsonl``. The
split ``dev`` may be tuned on and its misses read (``--misses``). Only the counts of the split ``held`` are looked at.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from facets_client import FacetsClient
from facets_client.generated.types import SearchHit

from benchmarks.measuring import print_report
from benchmarks.questions import MODES, SHOWN, holds, index_files
from benchmarks.server import serving

_ANSWERS = Path(__file__).resolve().parents[1] / "tests" / "answers"
_SPLITS = ("dev", "held")
_ORDER_COLUMNS = ("Customer", "Item", "Quantity", "Unit price", "Ordered", "Status", "Note")
_COLUMNS = {
    "tickets": ("--id", "Ticket", "--text", "Problem", "--text", "Resolution"),
    "orders": ("--id", "Order", *(option for column in _ORDER_COLUMNS for option in ("--text", column))),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FileQuestion:
    """A line of ``people_questions.jsonl``.

    Attributes:
        document: Id of the document that answers; empty: nothing answers.
        answers: Texts of which the answer that is shown contains at least one.
        kind: ``answered``; ``attribute``: the files name the subject, but not what is asked about it; ``foreign``.
    """

    question: str
    collection: str
    split: str
    document: str = ""
    answers: Sequence[str] = ()
    kind: str = "answered"


def main(arguments: Sequence[str] | None = None) -> None:
    """Asks all questions and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="shipped model or checkpoint folder (default: the shipped one)")
    parser.add_argument("--misses", action="store_true", help="list the misses of the split dev")
    options = parser.parse_args(arguments)
    print_report(report(options.model, with_misses=options.misses))


def report(model: str | None = None, *, with_misses: bool = False) -> dict[str, Any]:
    """Counts of each mode and split."""
    asked = file_questions()
    systems: dict[str, object] = {}
    with indexed_files(model) as client:
        for mode in MODES:
            pairs = [
                (one, client.search(one.collection, [one.question], top_k=5, mode=mode, min_confidence=0.0)[0].hits)
                for one in asked
            ]
            figures: dict[str, object] = {
                split: tally([pair for pair in pairs if pair[0].split == split]) for split in _SPLITS
            }
            if with_misses:
                figures["misses"] = [miss for one, hits in pairs if one.split == "dev" and (miss := _miss(one, hits))]
            systems[mode] = figures
    return {"benchmark": "file_questions", "questions": len(asked), "systems": systems}


def file_questions() -> list[FileQuestion]:
    """All questions in the order of the file."""
    lines = (_ANSWERS / "people_questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [FileQuestion(**json.loads(line)) for line in lines]


@contextmanager
def indexed_files(model: str | None = None) -> Iterator[FacetsClient]:
    """A client of a server that holds the tables and the other files as three collections."""
    with tempfile.TemporaryDirectory(prefix="facets-files-") as directory:
        files = Path(directory) / "files"
        files.mkdir()
        for path in (_ANSWERS / "people_files").iterdir():
            if path.suffix != ".csv":
                (files / path.name).write_bytes(path.read_bytes())
        with serving(model, Path(directory) / "data") as server, FacetsClient(server.target) as client:
            tables = (_ANSWERS / "people_files").glob("*.csv")
            for path in (*tables, files):
                index_files(server.target, path.stem, path, model or "", _COLUMNS.get(path.stem, ()))
            yield client


def tally(pairs: Sequence[tuple[FileQuestion, Sequence[SearchHit]]]) -> dict[str, float]:
    """Counts of right documents, answers and hidden hits, and how well confidence tells what has an answer.

    ``first``, ``five``: the document is first, among the first five. ``answer``: it is first and its answer is right.
    ``answer_of_document``: its answer is right at any rank. ``answered_hidden``, ``attribute_hidden`` and
    ``foreign_hidden``: the first hit has a confidence below 0.1. ``auc``: share of pairs of an answered and an
    unanswered question in which the answered one has the higher confidence.
    """
    counts = dict.fromkeys(("answered", "first", "five", "answer", "answer_of_document"), 0)
    counts |= {kind: sum(one.kind == kind for one, _ in pairs) for kind in ("attribute", "foreign")}
    counts |= dict.fromkeys(("answered_hidden", "attribute_hidden", "foreign_hidden"), 0)
    for one, hits in pairs:
        counts[f"{one.kind}_hidden"] += _confidence(hits) < SHOWN
        if one.document:
            rank = _rank(one, hits)
            is_right = rank is not None and _is_right(one, hits[rank])
            counts["answered"] += 1
            counts["first"] += rank == 0
            counts["five"] += rank is not None
            counts["answer"] += rank == 0 and is_right
            counts["answer_of_document"] += is_right
    answered = np.array([_confidence(hits) for one, hits in pairs if one.document])[:, np.newaxis]
    unanswered = np.array([_confidence(hits) for one, hits in pairs if not one.document])
    auc = np.mean(answered > unanswered) + 0.5 * np.mean(answered == unanswered)
    return {**counts, "auc": round(float(auc), 3)}


def shown_answer(hit: SearchHit) -> str:
    """Text of the answer of a hit, from its text or a field of its payload."""
    return hit.answer.text if hit.answer else ""


def _rank(one: FileQuestion, hits: Sequence[SearchHit]) -> int | None:
    ids = [hit.id.rpartition("/")[2] for hit in hits]
    return ids.index(one.document) if one.document in ids else None


def _is_right(one: FileQuestion, hit: SearchHit) -> bool:
    return any(holds(shown_answer(hit), [answer]) for answer in one.answers)


def _confidence(hits: Sequence[SearchHit]) -> float:
    """Confidence of the first hit: that of its answer if it has one of its own."""
    if not hits:
        return 0.0
    of_answer = getattr(hits[0].answer, "confidence", None)
    return (hits[0].confidence if of_answer is None else of_answer) or 0.0


def _miss(one: FileQuestion, hits: Sequence[SearchHit]) -> dict[str, object] | None:
    if one.document:
        is_fine = _rank(one, hits) == 0 and _is_right(one, hits[0]) and _confidence(hits) >= SHOWN
    else:
        is_fine = _confidence(hits) < SHOWN
    if is_fine:
        return None
    first = {"id": hits[0].id, "answer": shown_answer(hits[0])} if hits else {}
    return {"question": one.question, "wanted": one.document, "confidence": round(_confidence(hits), 3), **first}


if __name__ == "__main__":
    main()
