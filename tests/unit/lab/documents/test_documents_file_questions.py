"""Files as people have them, questions in their words: what is shown holds the sentence that answers.

Eight files with 121 questions: a handbook, a lease, a read-me, rules, minutes, a manual, and two letters. The number of
facets that a text keeps and what a heading weighs were chosen on the six of split ``dev``; the two of ``fresh`` were
written afterwards, and seen before the rules for headings. Six more (``unseen``: a leaflet, a report, a recipe, a
read-me, mails, a contract) with 24 questions are a collection of their own, and three more (``plain``: a lease, a
handbook, the rules of a club) with 20 as short as people ask; both were written before any system had answered and
chose nothing.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from facets_lab.documents.beir import RetrievalData
from facets_lab.documents.systems import indexed, load_searched

from facets.documents import SearchMode

FILES = [
    json.loads(line)
    for line in (Path(__file__).resolve().parents[3] / "answers" / "file_questions.jsonl").read_text().splitlines()
]
MODES: tuple[SearchMode, ...] = ("facets", "hybrid")
# What was measured less one, of 89 and 32. Before texts kept a facet for each sentence: 24 and 9, hybrid 25 and 10;
# before their facets said what the heading above says 42 and 14, both. Of all sentences of all files the one of the
# closest MiniLM vector has 33 and 12, that of BM25 14 and 5. Of the 24 these have 12 and 2, and before headings counted
# facets had 11, hybrid 10. Of the 20 these have 5 and 1.
AT_LEAST: dict[tuple[str, SearchMode], int] = {
    ("dev", "facets"): 46,
    ("fresh", "facets"): 17,
    ("dev", "hybrid"): 46,
    ("fresh", "hybrid"): 16,
    ("unseen", "facets"): 9,
    ("unseen", "hybrid"): 8,
    ("plain", "facets"): 10,
    ("plain", "hybrid"): 9,
}


@cache
def num_right(mode: SearchMode, together: tuple[str, ...]) -> dict[str, int]:
    """Of each split: the right file came first, and what is shown of it answers."""
    files = [file for file in FILES if file["split"] in together]
    names = tuple(file["id"] for file in files)
    data = RetrievalData(
        name="files",
        document_ids=names,
        documents=tuple(file["text"] for file in files),
        query_ids=(),
        queries=(),
        judgements={},
    )
    asked = [(file, question, answer) for file in files for question, answer in file["questions"]]
    with indexed(load_searched("facets-passages-small-en"), data) as collection:
        found = collection.search([question for _, question, _ in asked], MODES, top_k=1, reasons=True)[mode]
    right = dict.fromkeys((file["split"] for file in files), 0)
    for hits, (file, _, answer) in zip(found, asked, strict=True):
        shown = hits[0].answer.text if hits and hits[0].id == file["id"] and hits[0].answer else ""
        right[file["split"]] += answer in " ".join(shown.split())
    return right


@pytest.mark.parametrize(("split", "mode"), AT_LEAST)
def test_what_is_shown_answers_the_question(split: str, mode: SearchMode) -> None:
    together = ("dev", "fresh") if split in ("dev", "fresh") else (split,)
    assert num_right(mode, together)[split] >= AT_LEAST[split, mode]
