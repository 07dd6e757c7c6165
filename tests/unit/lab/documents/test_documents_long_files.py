"""Twenty questions over our own long files: the part with the clause that answers comes first, and the answer is in it.

Questions and clauses were written before any system had answered.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from facets_lab.documents.beir import RetrievalData
from facets_lab.documents.systems import indexed, load_searched

from facets.documents import Hit, SearchMode

ROOT = Path(__file__).resolve().parents[4]
CASES = [json.loads(line) for line in (ROOT / "tests" / "answers" / "long_files.jsonl").read_text().splitlines()]
FILES = (
    "LICENSE",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(str(path.relative_to(ROOT)) for folder in ("use", "run") for path in (ROOT / "docs" / folder).glob("*.md")),
)
MODES: tuple[SearchMode, ...] = ("hybrid", "facets", "lexical")
NEAR = 600  # characters between the clause and what is shown
AT_LEAST: dict[SearchMode, int] = {"hybrid": 0, "facets": 0, "lexical": 0}


@cache
def hits(in_parts: bool) -> dict[SearchMode, list[tuple[Hit, ...]]]:
    texts = tuple((ROOT / name).read_text(encoding="utf-8") for name in FILES)
    data = RetrievalData(name="long", document_ids=FILES, documents=texts, query_ids=(), queries=(), judgements={})
    with indexed(load_searched("facets-passages-small-en"), data, in_parts=in_parts) as collection:
        return collection.search([case["question"] for case in CASES], MODES, top_k=5)


def right(mode: SearchMode, in_parts: bool = True) -> list[str]:
    """Questions whose first hit is the file, and shows a stretch of it next to the clause."""
    found = []
    for case, best in zip(CASES, hits(in_parts)[mode], strict=True):
        text, hit = (ROOT / case["file"]).read_text(encoding="utf-8"), best[0]
        at = text.index(case["says"])
        if hit.id == case["file"] and hit.answer and hit.answer.start - NEAR < at < hit.answer.end + NEAR:
            found.append(case["question"])
    return found


@pytest.mark.parametrize("mode", MODES)
def test_long_files_answer_with_the_part_that_says_it(mode: SearchMode) -> None:
    found = right(mode)
    assert len(found) >= AT_LEAST[mode], [case["question"] for case in CASES if case["question"] not in found]


def test_parts_answer_better_than_files_whole() -> None:
    for mode in ("hybrid", "facets"):
        assert len(right(mode)) > len(right(mode, in_parts=False))  # type: ignore[arg-type]  # a mode
