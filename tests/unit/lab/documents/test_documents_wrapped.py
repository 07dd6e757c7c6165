"""Twelve texts of twelve kinds, wrapped at four widths and not at all: the evidence is the whole sentence that answers.

Texts, questions and sentences were written before any system had answered.
"""

import json
import textwrap
from functools import cache
from pathlib import Path

import pytest
from facets_lab.documents.beir import RetrievalData
from facets_lab.documents.systems import indexed, load_searched

from facets.documents import SearchMode

CASES = [
    json.loads(line)
    for line in (Path(__file__).resolve().parents[3] / "answers" / "wrapped_texts.jsonl").read_text().splitlines()
]
WIDTHS = (40, 60, 72, 80, None)
MODES: tuple[SearchMode, ...] = ("facets", "hybrid")
# Of 60: what was measured less one. Before sentences could cross a newline, facets had 0 and hybrid 10.
AT_LEAST: dict[SearchMode, int] = {"facets": 54, "hybrid": 59}


def set_in_lines(text: str, width: int | None, prefix: str) -> str:
    """Each paragraph, and each item of a list, wrapped by itself; ``prefix`` stands before every line."""
    lines = []
    for paragraph in text.split("\n\n"):
        for piece in paragraph.split("\n"):
            hang = "  " if piece.startswith("- ") else ""
            filled = textwrap.wrap(piece, width - len(prefix), subsequent_indent=hang) if width else [piece]
            lines += [prefix + line for line in filled]
        lines.append(prefix.rstrip())
    return "\n".join(lines).strip("\n")


def said(text: str, prefix: str) -> str:
    """Words alone: white space and marks of lines do not count."""
    mark = prefix.strip()
    return " ".join(word for word in text.split() if word != mark)


@cache
def answers(width: int | None) -> dict[SearchMode, list[str]]:
    """Evidence for each question, empty where another text came first."""
    documents = tuple(set_in_lines(case["text"], width, case["prefix"]) for case in CASES)
    names = tuple(case["kind"] for case in CASES)
    data = RetrievalData(
        name="wrapped", document_ids=names, documents=documents, query_ids=(), queries=(), judgements={}
    )
    with indexed(load_searched("facets-passages-small-en"), data) as collection:
        found = collection.search([case["question"] for case in CASES], MODES, top_k=1, reasons=True)
    return {
        mode: [
            said(hits[0].answer.text, case["prefix"]) if hits and hits[0].id == case["kind"] and hits[0].answer else ""
            for hits, case in zip(found[mode], CASES, strict=True)
        ]
        for mode in MODES
    }


def is_whole(answer: str, case: dict[str, str]) -> bool:
    """Whether it holds the sentence that answers, and begins and ends where sentences or items of lists do."""
    text = said(set_in_lines(case["text"], None, case["prefix"]), case["prefix"])
    before, found, behind = text.partition(answer)
    is_item = before.endswith(" - ")  # the mark of an item is no part of what it says
    begins = not before.strip() or is_item or before.rstrip(" -0123456789")[-1] in ".:!?"
    ends = not behind or answer[-1] in ".!?" or behind.startswith(" - ")
    return bool(answer and found) and case["sentence"] in answer and begins and ends


def num_whole(mode: SearchMode) -> int:
    return sum(
        is_whole(answer, case) for width in WIDTHS for answer, case in zip(answers(width)[mode], CASES, strict=True)
    )


@pytest.mark.parametrize("mode", MODES)
def test_evidence_is_the_whole_sentence_that_answers(mode: SearchMode) -> None:
    assert num_whole(mode) >= AT_LEAST[mode]
