"""Records show the field that answers: which part of a text is the problem, and which solves it."""

import time

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, SearchRequest, Span
from facets.documents.answers import sections_of, solutions_of
from facets.documents.fields import FieldText, SearchedText


def solutions(text: str, problem: str) -> list[str]:
    start = text.index(problem)
    return [text[one.start : one.end] for one in solutions_of(SearchedText(text), start, start + len(problem))]


@pytest.mark.parametrize(
    "text",
    [
        "Problem: It is dark.\nSince: Monday\nResolution: Turn it on.\nStatus: closed",
        "**Issue**\n\nIt is dark.\n\n**Fix**\n\nTurn it on.\n\n**Status**\n\nclosed",
        "## Symptom\nIt is dark.\n\n## Proposed solution\nTurn it on.\n\n## Contact\nAnna",
        "It is dark in here.\n\nResolution notes: Turn it on.",
        "Reported by: Ann Lee\nObserved: It is dark. Nobody sees.\nFix: Turn it on.",
        "Q: It is dark.\nA: Turn it on.\n\nQ: It is cold.\nA: Close it.",
        "Q1. It is dark.\nA1. Turn it on.\n\nQ2. It is cold.\nA2. Close it.",
        "**Question:** It is dark.\n\n**Answer:** Turn it on.\n\n**Question:** It is cold.\n\n**Answer:** Close it.",
        "| Problem | It is dark. |\n| Solution | Turn it on. |",
        "Problem\tIt is dark.\nSolution\tTurn it on.",
        "St\u00f6rung: It is dark.\nAbhilfe: Turn it on.",
        "Probl\u00e8me : It is dark.\nSolution : Turn it on.",
        "Pregunta: It is dark.\nRespuesta: Turn it on.",
    ],
)
def test_a_problem_leads_to_its_solution(text: str) -> None:
    assert solutions(text, "It is dark") == ["Turn it on."]


@pytest.mark.parametrize(
    "text",
    [
        "It is dark. Turn it on.",
        "Problem: It is dark.",
        "Q: It is dark.\n\nQ: It is cold.\nA: Close it.",
        "Problem: It was cold.\nSolution: Close it.\nContact: It is dark.",
        "Seen by: It is dark.\nFix: Turn it on.",
        "The answer to the question is 7.\nIt is dark.",
    ],
)
def test_what_no_label_solves_has_no_solution(text: str) -> None:
    assert solutions(text, "It is dark") == []


def test_a_field_solves_the_text_or_another_field() -> None:
    fields = (FieldText("problem", "It is dark.", 1.0), FieldText("case.Answer", "Turn it on.", 1.0))
    searched = SearchedText("It is very dark.", fields)
    for found in (solutions_of(searched, 0, 5), solutions_of(searched, 0, 5, "problem")):
        assert [(section.field, section.end) for section in found] == [("case.Answer", 11)]
    assert solutions_of(searched, 0, 5, "case.Answer") == []


def test_the_solution_is_shown_with_the_problem(engine: CollectionEngine) -> None:
    text = "Problem: My screen is dark.\nResolution: Turn the screen on. " + "Then wait. " * 40 + "\nStatus: closed"
    span = [text.index("My"), text.index("\n")]
    short = "Question: Why is my screen dark?\nAnswer: It is off."
    spans = [np.array([span] * 2), np.array([[10, 32]] * 2)]
    documents = [
        Document(id=str(i), text=one, facet_embeddings=np.eye(2, 32) * (i + 1), facet_spans=own)
        for i, (one, own) in enumerate(zip((text, short), spans, strict=True))
    ]
    engine.upsert("docs", documents)
    request = SearchRequest(facets=np.eye(1, 32, dtype=np.float32)[None], texts=["my screen is dark"], top_k=2)
    answers = {hit.id: hit.answer for hit in engine.search("docs", request).hits[0]}
    assert all(isinstance(answer, Span) and "dark" in answer.problem for answer in answers.values())
    long, whole = answers["0"], answers["1"]
    assert long is not None and long.text == "Turn the screen on."
    assert [text[start:end] for start, end in long.words] == ["screen"]
    assert whole is not None and whole.text == "It is off."


@pytest.mark.parametrize(
    "text", ["Q: a\n" * 20_000, "a b c " * 20_000, "#* " * 40_000, "Fix\n" * 20_000, " \n" * 50_000]
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    started = time.process_time()
    sections_of(text)
    assert time.process_time() - started < 2
