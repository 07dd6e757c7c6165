"""Explanations: offsets, attention, nearest words, attended tokens."""

import time

import numpy as np
import pytest

from facets.errors import InvalidInputError
from facets.model.contract import TextModel
from facets.model.facet_model import FacetModel
from facets.model.loading import load
from facets.model.passage_model import PassageModel
from facets.texts import SimilarityMethod, score_pairs
from facets.texts.explanation import explain
from facets.texts.topics import CURVE, TextTopics, suggest_topics


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
            vector = model.words.unit_vectors[model.words.vocabulary.rows([token.text.lower()])[0]]
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


def words_of(topics: TextTopics) -> list[str]:
    return [topic.words[0].word for topic in topics.topics]


def test_topics_are_words_with_vectors_that_can_be_searched_with(model):
    first, second = suggest_topics(model, ["cat truck", "piano"], num_words=2)
    assert set(words_of(first)) == {"cat", "truck"}  # the third facet says truck again
    assert words_of(second) == ["piano"]
    np.testing.assert_allclose(np.linalg.norm(first.vectors, axis=1), 1.0, atol=1e-6)
    assert first.vectors.shape == (2, model.dim)
    assert all(len(topic.words) == 2 for topic in first.topics)
    assert all(topic.novelty < 0.3 and topic.likelihood is None for topic in first.topics)


def test_avoided_topics_are_left_out(model):
    assert words_of(suggest_topics(model, ["cat truck violin"], avoid=["puppy", "concert"])[0]) == ["truck"]
    assert suggest_topics(model, ["cat"], avoid=["cat"])[0].topics == ()


def test_what_is_kept_is_read_behind_the_text(model):
    kept = suggest_topics(model, ["cat"], keep=["piano music"])[0]
    assert model.encoded[-1] == "cat piano music"
    assert words_of(kept)[0] == "piano"


def test_of_a_long_text_the_last_sentences_are_read(model):
    text = " ".join(["A cat and a dog are here."] * 30) + "\n\nThe violin and the piano are\nin the concert."
    suggest_topics(model, [text])
    assert model.encoded[-1].endswith("The violin and the piano are in the concert.")
    assert len(model.tokenizer.words(model.encoded[-1:])[0]) <= model.max_tokens


def test_at_most_so_many_topics_and_the_likeliest_first(model):
    model.score_curves[CURVE] = np.array([[0.0, 1.0], [0.1, 0.6]])
    topics = suggest_topics(model, ["cat truck violin"])[0].topics
    told = [topic.likelihood for topic in topics]
    assert told == sorted(told, reverse=True)
    assert all(0.1 <= one <= 0.6 for one in told)
    assert len(suggest_topics(model, ["cat truck violin"], num_topics=2)[0].topics) == 2


@pytest.mark.parametrize(
    ("texts", "options", "path"),
    [
        ([" "], {}, ("texts", 0)),
        (["cat"], {"num_topics": 0}, "num_topics"),
        (["cat"], {"num_words": 0}, "num_words"),
        (["cat"], {"keep": ["dog"], "avoid": ["truck", "dog"]}, ("avoid", 1)),
        (["cat"], {"keep": ["xyzzy"]}, ("keep", 0)),
        (["cat"], {"avoid": ["the of"]}, ("avoid", 0)),
        (["cat"], {"avoid": [""]}, ("avoid", 0)),
    ],
)
def test_what_cannot_be_is_said_with_its_place(model, texts, options, path):
    with pytest.raises(InvalidInputError) as raised:
        suggest_topics(model, texts, **options)
    assert raised.value.path == (path if isinstance(path, tuple) else (path,)) or raised.value.path == path


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
    (difference,) = comparison.differences
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


@pytest.mark.parametrize("part", [",", "$", "a b.\n\n\n\n"])
def test_time_of_an_explained_score_grows_with_the_text(sentences: FacetModel, part: str) -> None:
    def cost(num_chars: int, variant: int) -> float:
        text = f"{variant} {part * (num_chars // len(part))}"
        start = time.process_time()
        score_pairs(sentences, [(text, f"{text} end")], "codebook", explain=True)
        return time.process_time() - start

    cost(1_000, 0)  # loads what is loaded on first use
    short, long = (min(cost(num_chars, variant) for variant in range(3)) for num_chars in (8_000, 32_000))
    assert long < 5 * short
