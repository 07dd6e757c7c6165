"""The same words on other lines, in other marks: similarity, explanations and vectors read what a text says."""

import pytest

from facets.model.facet_model import FacetModel
from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets.texts import SimilarityMethod, explain, score_pairs

PLAIN = (
    "When it was raised again, the old crane that stood in the harbour fell over on the fourth of March, because a "
    "cable broke in heavy rain. Nobody was hurt."
)
WRAPPED = """\
When it was raised again, the old crane that stood in the har-
bour fell over on the fourth of March, because a cable broke in
heavy rain. Nobody was hurt.
"""
OTHER = "A crane in the harbour stood upright on the fifth of March."


@pytest.fixture(scope="module")
def passages() -> PassageModel:
    return load(None, PassageModel)


@pytest.fixture(scope="module")
def sentences() -> FacetModel:
    return load(None, FacetModel)


@pytest.mark.parametrize("method", [name for name in SimilarityMethod if "wmd" not in name])
def test_wrapped_text_has_the_score_of_the_same_text_unwrapped(
    passages: PassageModel, sentences: FacetModel, method: SimilarityMethod
) -> None:
    model = passages if method.row.task == "passages" else sentences
    pairs = [(PLAIN, OTHER), (WRAPPED, OTHER), (PLAIN, WRAPPED), (PLAIN, PLAIN)]
    plain, wrapped, across, same = score_pairs(model, pairs, method).scores
    assert wrapped == pytest.approx(plain, abs=2e-3)  # bfloat16
    assert across == pytest.approx(same, abs=2e-3)


def test_differences_stand_where_the_text_has_them(passages: PassageModel) -> None:
    (comparison,) = score_pairs(passages, [(WRAPPED, PLAIN.replace("fourth", "fifth"))]).comparisons
    (difference,) = [one for one in comparison.differences if one.kind in ("number", "date")]
    assert WRAPPED[difference.first_start : difference.first_end] == "fourth"


def test_explained_tokens_are_words_and_stand_where_the_text_has_them(sentences: FacetModel) -> None:
    plain, wrapped = explain(sentences, [PLAIN, WRAPPED])
    assert [token.text for token in wrapped.tokens] == [token.text for token in plain.tokens]
    (harbour,) = (token for token in wrapped.tokens if token.text == "harbour")
    assert WRAPPED[harbour.start : harbour.end] == "har-\nbour"
    assert [round(token.attention, 3) for token in wrapped.tokens] == [
        round(token.attention, 3) for token in plain.tokens
    ]


def test_facets_of_a_text_without_a_known_word_have_no_words(sentences: FacetModel) -> None:
    (explanation,) = explain(sentences, ["\u732b\u304c\u72ac\u3092\u8ffd\u3046"])
    assert [facet.words for facet in explanation.facets] == [()] * len(explanation.facets)
