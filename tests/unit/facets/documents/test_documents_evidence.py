"""The evidence of a hit: spans of the facets that met, and the part of the text that answers."""

import textwrap

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, SearchHit, SearchMode, SearchRequest, Span

TEXT = (
    "Na\u00efve caf\u00e9s sell tea to students. The pump of the engine failed in May. "
    "It was repaired by Dr. Lee in June. Nobody knows why."
)


def place(part: str) -> tuple[int, int]:
    return TEXT.index(part), TEXT.index(part) + len(part)


_BOTH = "The pump of the engine failed in May. It was repaired by Dr. Lee in June."
_REPAIR = "pump of the engine failed in May. It was repaired by Dr. Lee"
SPANS = np.array([place("caf\u00e9s sell tea"), place(_REPAIR), (0, 0)])


@pytest.fixture
def filled(engine: CollectionEngine) -> CollectionEngine:
    engine.create_collection("spans", model="m", model_revision="1", num_facets=3, dim=32)
    facets = np.eye(3, 32)
    facets[2] = 0
    engine.upsert("spans", [Document(id="a", text=TEXT, facet_embeddings=facets, facet_spans=SPANS)])
    engine.upsert("docs", [Document(id="a", text=TEXT, facet_embeddings=np.eye(2, 32))])
    return engine


def hit(engine: CollectionEngine, facets: list[int], text: str | None, collection: str = "spans") -> SearchHit:
    query = np.eye(32, dtype=np.float32)[facets][None]
    return engine.search(collection, SearchRequest(facets=query, texts=text and [text], top_k=1)).hits[0][0]  # type: ignore[arg-type]


def answer_in(
    engine: CollectionEngine, text: str, spans: object, query: str | None, mode: SearchMode | None = None
) -> Span:
    """The answer in a document whose first facet is that of the query."""
    own = None if spans is None else np.array(spans)
    engine.upsert("docs", [Document(id="a", text=text, facet_embeddings=np.eye(2, 32), facet_spans=own)])
    facets = np.eye(1, 32, dtype=np.float32)[None]
    request = SearchRequest(facets=facets, texts=query and [query], top_k=1, mode=mode)  # type: ignore[arg-type]
    answer = engine.search("docs", request).hits[0][0].answer
    assert answer is not None
    return answer


def test_a_match_has_the_span_of_the_facet_that_met(filled: CollectionEngine) -> None:
    found = hit(filled, [1, 0], None)
    spans = {match.first_facet: match.second_span for match in found.evidence}
    assert spans[1] is not None and spans[0] is not None
    assert (spans[1].text, spans[1].start) == ("caf\u00e9s sell tea", 6)
    assert TEXT[spans[0].start : spans[0].end] == spans[0].text
    begins = "The pump" if found.evidence[0].first_facet == 0 else "Na\u00efve"
    assert found.answer is not None and found.answer.text.startswith(begins)


def test_the_words_of_the_query_in_the_answer_are_marked(filled: CollectionEngine) -> None:
    answer = hit(filled, [1], "repairs by Dr. Lee").answer
    assert answer is not None and answer.text == _BOTH, "the facet lies in two sentences"
    assert [TEXT[start:end] for start, end in answer.words] == ["repaired", "Dr", "Lee"]


def test_without_words_in_it_the_answer_is_the_sentence_of_the_span(filled: CollectionEngine) -> None:
    answer = hit(filled, [0], "Who repaired it?").answer
    assert answer == Span(start=0, end=33, text="Na\u00efve caf\u00e9s sell tea to students.")
    both = hit(filled, [1], None).answer
    assert both is not None and both.text == _BOTH, "the span lies in two sentences"


@pytest.mark.parametrize("words", [None, "clause9"])
def test_a_long_sentence_is_cut_between_words(engine: CollectionEngine, words: str | None) -> None:
    text = "Before. " + ", ".join(f"and so clause{i} goes on and on for a while" for i in range(20)) + ". After."
    answer = answer_in(engine, text, [[text.index("clause9"), text.index("clause9") + 20]] * 2, words)
    assert "clause9" in answer.text and 450 <= len(answer.text) <= 500
    assert f" {answer.text} " in text


def test_without_spans_words_alone_say_which_sentence_answers(filled: CollectionEngine) -> None:
    answer = hit(filled, [0], "Lee", "docs").answer
    assert answer is not None and answer.text == "It was repaired by Dr. Lee in June."
    assert hit(filled, [0], "unheard of", "docs").answer is None
    found = hit(filled, [0], None, "docs")
    assert found.answer is None and found.evidence[0].second_span is None
    lexical = filled.search("docs", SearchRequest(texts=["tea"], mode="lexical", top_k=1)).hits[0][0]
    assert lexical.answer is not None and lexical.answer.text.startswith("Na\u00efve")


@pytest.mark.parametrize("before", ["", "Nobody was hurt. " * 40])
def test_the_first_line_of_a_wrapped_sentence_is_no_heading(engine: CollectionEngine, before: str) -> None:
    said = "The crane in the harbour that everybody knows was repaired in June by the firm from Lubeck."
    text = textwrap.fill(f"{before}{said} It stands still on Sundays, so nobody hears it.", 44)
    first = text.index("crane")
    answer = answer_in(engine, text, [[first, first + 5], [text.index("Sundays"), len(text)]], None)
    assert " ".join(answer.text.split()) == said


@pytest.mark.parametrize("heading", ["# Fees\n\n", "Fees\n", "FEES\n", "4. Fees\n"])
def test_a_heading_that_met_gives_way_to_what_is_said(engine: CollectionEngine, heading: str) -> None:
    text = (
        f"Rules of the garden\n\n{heading}The plot costs 94 a year, paid by the end\nof January. Students pay half.\n"
    )
    places = (text.lower().index("fees"), text.index("The plot"), text.index("Students"))
    lengths = (len("fees"), len("The plot costs 94"), len("Students pay half"))
    spans = np.array([[first, first + length] for first, length in zip(places, lengths, strict=True)])
    facets = np.eye(3, 32, dtype=np.float32)
    facets[2, 0] = 0.5
    engine.create_collection("rules", model="m", model_revision="r", num_facets=3, dim=32)
    engine.upsert("rules", [Document(id="a", text=text, facet_embeddings=facets, facet_spans=spans)])
    found = engine.search("rules", SearchRequest(facets=np.eye(1, 32, dtype=np.float32)[None], top_k=1)).hits[0][0]
    assert found.evidence[0].second_span is not None and found.evidence[0].second_span.text.lower() == "fees"
    assert found.answer is not None and found.answer.text == "Students pay half."


def test_a_query_facet_of_weight_zero_is_no_evidence(filled: CollectionEngine) -> None:
    query = np.eye(2, 32, dtype=np.float32)[None]
    found = filled.search("spans", SearchRequest(facets=query, top_k=1, weights=np.array([[0.0, 1.0]]))).hits[0][0]
    assert [match.first_facet for match in found.evidence] == [1]
    assert found.score == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("mode", ["hybrid", "facets", "lexical"])
def test_the_header_row_of_a_table_is_no_answer(engine: CollectionEngine, mode: SearchMode) -> None:
    text = "| Price | X-20 | X-20S |\n|---|---|---|\n| Pan | 30 | 40 |\n| **Lid** \\| top | 9 | 12 |\n"
    spans = np.array(
        [(text.index(first), text.index(last) + len(last)) for first, last in [("Price", "X-20S"), ("Lid", "12")]]
    )
    facets = np.eye(2, 32)
    facets[1, 0] = 0.9
    engine.upsert("docs", [Document(id="a", text=text, facet_embeddings=facets, facet_spans=spans)])
    request = SearchRequest(facets=np.eye(1, 32, dtype=np.float32)[None], texts=["X-20S price lid"], top_k=1, mode=mode)
    answer = engine.search("docs", request).hits[0][0].answer
    assert answer is not None and answer.text == "**Lid** \\| top | 9 | 12"
    assert answer.columns == ("Price", "X-20", "X-20S") and answer.cells == ("Lid | top", "9", "12")


def test_of_a_wide_row_the_cells_of_the_query_are_given(engine: CollectionEngine) -> None:
    lines = ["|".join(f"{name}{i}" for i in range(200)) for name in ("column", "value")]
    text = f"|{lines[0]}|\n{'|---' * 200}|\n|{lines[1]}|"
    answer = answer_in(engine, text, [[len(text) - 5, len(text)]] * 2, "what is in column150")
    assert len(answer.columns) == len(answer.cells) == 12
    pairs = list(zip(answer.columns, answer.cells, strict=True))
    assert pairs[0] == ("column0", "value0") and ("column150", "value150") in pairs
