"""Explanations, scores and summaries in a notebook and as text."""

from operator import methodcaller
from xml.etree import ElementTree

from facets_client.generated.types import (
    AttendedToken,
    FacetMatch,
    FacetWords,
    ModelVersion,
    NearestWord,
    SummarySentence,
    Timings,
    TokenAttention,
    TokenStats,
)
from facets_client.texts.results import Explanation, PairScore, Scores, Summary

TOKENS = (TokenAttention("R&D", 0, 3, 2.0, True), TokenAttention("<b>", 4, 7, 0.5, True))
WORDS = (NearestWord("labs<", 0.5),)


in_notebook = methodcaller("_repr_html_")  # what a notebook calls


def parsed(html):
    return ElementTree.fromstring(html.replace("&harr;", "-"))


def test_an_explanation_shows_attention_and_nearest_words():
    facets = (FacetWords(0, WORDS, (AttendedToken(1, 0.4),)),)
    shown = Explanation(TOKENS, facets, TokenStats(2, 0, False, 2))
    tree = parsed(in_notebook(shown))
    spans = [(span.text, span.get("style")) for span in tree.iter("span")]
    assert spans == [("R&D", "background:rgba(220,80,40,0.60)"), ("<b>", "background:rgba(220,80,40,0.15)")]
    assert [cell.text for cell in tree.iter("td")] == ["0", "labs< 0.50", "<b>"]
    assert [cell.get("scope") for cell in tree.iter("th")] == ["col"] * 3
    assert str(shown) == "R&D <b>\n 0  labs< 0.50"


def test_words_stand_as_in_the_text():
    tokens = (*TOKENS, TokenAttention(".", 7, 8, 0.1, True))
    shown = Explanation(tokens, (), TokenStats(3, 0, False, 3))
    assert str(shown) == "R&D <b>."
    assert "".join(parsed(in_notebook(shown)).find("p").itertext()) == "R&D <b>."


def test_a_score_shows_which_facet_met_which():
    pair = PairScore(0.25, 0.8, (FacetMatch(0, 3, 0.7, 1.0, WORDS, WORDS),), TOKENS, TOKENS)
    scores = Scores((pair,), "max_facet", True, ModelVersion("m", "r"), Timings())
    text = "".join(parsed(in_notebook(scores)).itertext())
    assert "0.80 (0.2500)" in text and "first facet 0 (labs<) - second facet 3 (labs<), cosine 0.70" in text
    assert str(scores) == "0.80 (0.2500)"


def test_a_summary_shows_its_sentences_with_their_place():
    summary = Summary((SummarySentence("A < B.", 2, 10, 16, 0, 0.5),), 7, 3, has_prose=True)
    text = "".join(parsed(in_notebook(summary)).itertext())
    assert "A < B. sentence 3 of 7, gain 0.500" in text
    assert str(summary) == "A < B."
    assert "no sentence" in in_notebook(Summary((), 0, 0, has_prose=True))
