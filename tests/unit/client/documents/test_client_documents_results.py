"""Search results in a notebook and as text."""

from operator import methodcaller
from xml.etree import ElementTree

import pytest
from facets_client.documents.results import SearchResult, SearchResults
from facets_client.generated.types import FacetMatch, ModelVersion, NearestWord, SearchHit, Span, Timings

in_notebook = methodcaller("_repr_html_")  # what a notebook calls
TEXT = 'A & B <script>alert("x")</script> were wed in 1900. Nobody came.'


def hit(**fields):
    word = (NearestWord("<i>wed", 0.5),)
    start = TEXT.index("wed")
    known = {
        **{"id": 'a"<b>', "score": 0.5, "text": TEXT, "payload": {"title": "Q&A <1>"}},
        **{"evidence": (FacetMatch(0, 1, 0.7, 1.0, word, word),), "revision": 1, "facets_score": 0.5},
        **{"lexical_score": 1.0, "matched_words": ("wed",), "answer": Span(start, start + 11), "confidence": 0.9},
        **{"matched_spans": (Span(start, start + 3),), "part": None, "part_number": 0, "num_parts": 1},
    }
    return SearchHit(**{**known, **fields})


def results(*hits):
    return SearchResults(tuple(map(SearchResult, hits)), 1, True, "exact", ModelVersion("m", "r"), Timings())


def parsed(html):
    return ElementTree.fromstring(html.replace("&harr;", "-"))


def test_html_is_well_formed_escaped_and_marked():
    html = in_notebook(results((hit(), hit(id="second", answer=None, confidence=None, matched_spans=()))))
    tree = parsed(html)
    assert [item.find("code").text for item in tree.iter("li")] == ['a"<b>', "second"]
    assert ["".join(mark.itertext()) for mark in tree.iter("mark")] == ["wed in 1900"], "one mark, without gaps"
    assert [word.text for word in next(tree.iter("mark")).iter("strong")] == ["wed"]
    assert tree.find(".//script") is None and "<i>wed" not in html
    assert "confidence 0.90" in html and "score 0.500" in html
    assert next(tree.iter("style")).text.startswith(".facets-out{")


def test_several_queries_and_none_found():
    tree = parsed(in_notebook(results((hit(),), ())))
    text = "".join(tree.itertext())
    assert "query 2" in text and "nothing found" in text


def test_results_are_gone_through_counted_and_indexed():
    found = results((hit(), hit(id="second")), ())
    assert [one.id for one in found[0].hits] == [one.id for one in found[0]] == ['a"<b>', "second"]
    assert [len(result) for result in found] == [2, 0] and found[0][-1].id == "second"


def test_hits_as_rows_of_a_table():
    rows = results((hit(), hit(id="second", answer=None))).to_dicts()
    assert [(row["query"], row["rank"], row["id"]) for row in rows] == [(0, 1, 'a"<b>'), (0, 2, "second")]
    assert rows[0]["payload"] == {"title": "Q&A <1>"} and rows[1]["answer"] is None


def test_hits_as_an_arrow_table():
    pytest.importorskip("pyarrow", reason="the extra parquet brings it")
    table = results((hit(), hit(id="second", answer=None, confidence=None))).to_arrow()
    assert table.column("id").to_pylist() == ['a"<b>', "second"]
    assert table.column("confidence").to_pylist() == [0.9, None]


def test_a_hit_that_hardly_answers_is_marked():
    found = results((hit(), hit(id="second", confidence=0.08)))
    assert [item.get("class") for item in parsed(in_notebook(found)).iter("li")] == [None, "dim"]
    assert "confidence 0.08, hardly an answer" in str(found) and str(found).count("hardly") == 1


def test_as_text():
    first, second = str(results((hit(),))).splitlines()
    assert first == ' 1  confidence 0.90  a"<b>  Q&A <1>'
    assert second.startswith("    A & B <script>")
    assert str(results(())) == "nothing found"


def test_a_dataframe_where_pandas_is():
    pytest.importorskip("pandas")
    frame = results((hit(), hit(id="second"))).to_pandas()
    assert frame["rank"].tolist() == [1, 2] and frame["id"].tolist()[1] == "second"
