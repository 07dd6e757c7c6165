"""Explanations: offsets, attention, nearest words, attended tokens."""

import numpy as np
import pytest

from facets.errors import InvalidInputError
from facets.model.contract import TextModel
from facets.texts.explanation import explain


def test_tokens_stand_where_they_say_and_carry_their_attention(model: TextModel) -> None:
    text = "\U0001f408 The cat sees a Truck."
    (explanation,) = explain(model, [text])
    assert [token.text for token in explanation.tokens] == ["\U0001f408", "The", "cat", "sees", "a", "Truck", "."]
    assert all(text[token.start : token.end] == token.text for token in explanation.tokens)
    assert [token.known for token in explanation.tokens] == [False, True, True, False, False, True, True]
    facets = model.encode([text])[0]
    units = facets / np.linalg.norm(facets, axis=1, keepdims=True)
    for token in explanation.tokens:
        expected = 0.0
        if token.known:
            vector = model.words.unit_vectors[model.words.vocabulary.row(token.text.lower())]
            expected = np.maximum(units @ vector, 0).sum()
        assert token.attention == pytest.approx(expected, abs=1e-5)
    assert not explanation.truncated


def test_facets_are_reported_in_words_and_tokens(model: TextModel) -> None:
    (explanation,) = explain(model, ["cat truck piano violin"], num_words=2)
    assert [facet.facet for facet in explanation.facets] == [0, 1, 2]
    for facet, word in zip(explanation.facets, ["cat", "truck", "piano"], strict=True):
        assert facet.words[0].word == word and facet.words[0].cosine == pytest.approx(1, abs=1e-5)
        assert len(facet.words) == 2
        position, cosine = facet.tokens[0]
        assert explanation.tokens[position].text == word and cosine == pytest.approx(1, abs=1e-5)
    positions = [position for position, _ in explanation.facets[2].tokens]
    assert positions == [2, 3]  # piano, then violin


def test_long_text_is_cut_and_says_so(model: TextModel) -> None:
    (explanation,) = explain(model, ["cat " * 40])
    assert explanation.truncated and len(explanation.tokens) == model.max_tokens


def test_bad_input_is_refused_by_name(model: TextModel) -> None:
    with pytest.raises(InvalidInputError, match=r"texts\[1\]") as caught:
        explain(model, ["cat", " "])
    assert caught.value.field == "texts[1]"
    with pytest.raises(InvalidInputError, match="num_words must be >= 1, got 0"):
        explain(model, ["cat"], num_words=0)
    with pytest.raises(TypeError, match="sequence of str"):
        explain(model, "cat")
