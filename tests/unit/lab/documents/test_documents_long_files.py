"""Twenty questions over our own long files: the first hit is the file, and what it shows stands next to the clause.

Questions and clauses were written before any system had answered. Run as a program it prints every answer, those of
files whole and of BM25 and MiniLM over paragraphs, too.
"""

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from facets_lab.documents.beir import RetrievalData
from facets_lab.documents.systems import Bm25Scorer, Scorer, VectorScorer, indexed, load_searched
from facets_lab.evaluation.comparison import minilm

from facets.documents import SearchMode
from facets.language.vectors import unit_rows

ROOT = Path(__file__).resolve().parents[4]
CASES = [json.loads(line) for line in (ROOT / "tests" / "answers" / "long_files.jsonl").read_text().splitlines()]
QUESTIONS = [case["question"] for case in CASES]
FILES = (
    "LICENSE",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(str(path.relative_to(ROOT)) for folder in ("use", "run") for path in (ROOT / "docs" / folder).glob("*.md")),
)
TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in FILES}
MODES: tuple[SearchMode, ...] = ("hybrid", "facets", "lexical")
NEAR = 600  # characters between the clause and what is shown
AT_LEAST: dict[SearchMode, int] = {"hybrid": 8, "facets": 7, "lexical": 8}  # measured less one


class Shown(NamedTuple):
    """What a system shows first: a stretch of a file."""

    file: str
    start: int
    end: int


@cache
def shown_by_modes(in_parts: bool) -> dict[SearchMode, list[Shown]]:
    data = RetrievalData(
        name="long", document_ids=FILES, documents=tuple(TEXTS.values()), query_ids=(), queries=(), judgements={}
    )
    with indexed(load_searched("facets-passages-small-en"), data, in_parts=in_parts) as collection:
        found = collection.search(QUESTIONS, MODES, top_k=5, reasons=True)
    shown: dict[SearchMode, list[Shown]] = {mode: [] for mode in MODES}
    for mode, results in found.items():
        for best, *_ in results:
            start = best.part.start if best.part else 0
            place = (start + best.answer.start, start + best.answer.end) if best.answer else (-NEAR, -NEAR)
            shown[mode].append(Shown(best.id, *place))
    return shown


def paragraphs() -> Iterator[Shown]:
    for name, text in TEXTS.items():
        for match in re.finditer(r"\S.*?(?=\n\s*\n|\Z)", text, re.DOTALL):
            yield Shown(name, match.start(), match.end())


def shown_by_paragraphs(system: str) -> list[Shown]:
    places = list(paragraphs())
    texts = [TEXTS[place.file][place.start : place.end] for place in places]
    scorer: Scorer
    if system == "bm25":
        scorer = Bm25Scorer(texts, QUESTIONS)
    else:
        embed = minilm()
        scorer = VectorScorer(unit_rows(embed(texts)), unit_rows(embed(QUESTIONS)))
    return [places[row] for row in scorer.scores(slice(None)).argmax(axis=1)]


def right(shown: list[Shown]) -> list[str]:
    found = []
    for case, place in zip(CASES, shown, strict=True):
        at = TEXTS[case["file"]].index(case["says"])
        if place.file == case["file"] and place.start - NEAR < at < place.end + NEAR:
            found.append(case["question"])
    return found


def test_the_clauses_are_there() -> None:
    missing = [case for case in CASES if case["says"] not in TEXTS[case["file"]]]
    assert len(QUESTIONS) == len(set(QUESTIONS)) == 20 and not missing


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_long_files_answer_with_the_part_that_says_it(mode: SearchMode) -> None:
    found = right(shown_by_modes(True)[mode])
    assert len(found) >= AT_LEAST[mode], [question for question in QUESTIONS if question not in found]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hybrid", "facets"])
def test_parts_answer_no_worse_than_files_whole(mode: SearchMode) -> None:
    # But for one of the twenty: the files are the pages of this project, each change of which moves an answer or two.
    assert len(right(shown_by_modes(True)[mode])) + 1 >= len(right(shown_by_modes(False)[mode]))


if __name__ == "__main__":
    systems = {f"{mode}, parts": shown for mode, shown in shown_by_modes(True).items()}
    systems |= {f"{mode}, whole": shown for mode, shown in shown_by_modes(False).items()}
    systems |= {f"{name}, paragraphs": shown_by_paragraphs(name) for name in ("bm25", "minilm")}
    for name, of_system in systems.items():
        good = right(of_system)
        sys.stdout.write(f"{name}: {len(good)} of {len(CASES)}\n")
        for question, place in zip(QUESTIONS, of_system, strict=True):
            said = " ".join(TEXTS[place.file][max(0, place.start) : place.end].split())[:160]
            sys.stdout.write(f"  {'good' if question in good else 'BAD '} {question} | {place.file} | {said}\n")
