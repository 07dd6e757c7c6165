"""The model of passages as its users see it: facets, spans, vectors of queries and texts, any text."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from toys import WORDS, toy_passage_model

from facets.errors import CheckpointError, InvalidInputError
from facets.language.vectors import unit_rows
from facets.model import PassageModel, load
from facets.model.passage_network import NetworkEncoder

SHORT = "The dog plays."
LONG = "The man plays guitar. A dog lifting weights plays music in the garage! " * 6
TEXTS = [SHORT, LONG, "a man", "...", "\U0001f600 \u4e2d\u6587", "Dog\ud800 caf\u00e9 man", "x" * 300]


@pytest.fixture(scope="module")
def model() -> PassageModel:
    return toy_passage_model()


def cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    return (left * right).sum(axis=-1)


def test_facets_have_unit_norm_or_are_zero_rows_at_the_end(model: PassageModel) -> None:
    facets = model.encode(TEXTS)
    assert facets.shape == (len(TEXTS), model.num_facets, model.dim)
    assert facets.dtype == np.float32
    used = facets.any(axis=2)
    assert used[:, 0].all() and (used[:, 1:] <= used[:, :-1]).all()
    np.testing.assert_allclose(np.linalg.norm(facets[used], axis=1), 1.0, atol=1e-5)
    assert used[0].sum() < used[1].sum() <= model.num_facets


def test_the_accurate_model_reads_the_queries_of_the_small_one() -> None:
    small, accurate = (load(f"facets-passages-{name}", PassageModel) for name in ("small-en", "en"))
    queries = ["who pays the rent", "Is it cold outside? Does the heating work?"]
    np.testing.assert_allclose(small.encode_queries(queries).facets, accurate.encode_queries(queries).facets, atol=1e-6)
    assert not np.allclose(small.embed(queries), accurate.embed(queries), atol=1e-2)


def test_a_text_has_the_same_facets_alone_and_among_others(model: PassageModel) -> None:
    together = model.encode_passages(TEXTS)
    for position, text in enumerate(TEXTS):
        alone = model.encode_passages([text])
        used = alone.facets[0].any(axis=1)
        assert (together.facets[position].any(axis=1) == used).all()
        assert cosines(together.facets[position], alone.facets[0])[used].min() > 0.999


def test_spans_lie_in_the_text_and_hold_whole_words(model: PassageModel) -> None:
    passages = model.encode_passages(TEXTS)
    for text, facets, spans in zip(TEXTS, passages.facets, passages.spans, strict=True):
        for facet, (start, end) in zip(facets, spans.tolist(), strict=True):
            if not facet.any():
                assert (start, end) == (0, 0)
                continue
            assert 0 <= start < end <= len(text)
            for border in (start, end):  # Chinese characters are words of their own
                around = text[max(0, border - 1) : border + 1]
                assert len(around) < 2 or not (around.isascii() and around.isalnum())


def test_a_facet_is_a_span_read_in_its_sentence_and_in_the_text_mixed_with_the_whole(model: PassageModel) -> None:
    first, second = "The dog plays.", "A man lifting weights."
    encoder = model.encoder
    text = f"{first} {second}"
    (pieces,) = encoder.split([text])
    whole, in_context = encoder.encode([pieces], [np.array([0, 4, len(pieces)])], query=False)
    assert in_context is not None
    sentences = encoder.split([first, second])
    _, alone = encoder.encode(sentences, [np.array([0, len(own)]) for own in sentences], query=False)
    assert alone is not None
    expected = unit_rows(unit_rows(unit_rows(alone) + 0.5 * unit_rows(in_context)) + 0.7 * unit_rows(whole))
    passages = model.encode_passages([text])
    np.testing.assert_allclose(passages.facets[0, :2], expected, atol=1e-2)
    assert passages.spans[0, :2].tolist() == [[0, len(first)], [len(first) + 1, len(text)]]


def test_a_long_text_keeps_more_facets_for_its_document(model: PassageModel) -> None:
    random = np.random.default_rng(5)
    text = " ".join(f"A {' '.join(random.choice(WORDS, 9))}." for _ in range(60)) + " music 7 guitar"
    passages = model.encode_passages([SHORT, text])
    facets, spans = passages.document(1)
    assert model.num_facets < len(facets) == len(spans) <= 128
    assert np.allclose(np.linalg.norm(facets, axis=1), 1.0, atol=1e-5)
    assert (spans[:, 1] > spans[:, 0]).all() and spans.max() <= len(text)
    short, places = passages.document(0)
    assert short.shape == (model.num_facets, model.dim) and places.shape == (model.num_facets, 2)


def test_no_facet_of_a_text_is_there_twice(model: PassageModel) -> None:
    for text in (*TEXTS, LONG * 12):
        facets_KD = model.encode_passages([text]).document(0)[0]
        cosines_KK = facets_KD @ facets_KD.T - 2 * np.eye(len(facets_KD))
        assert cosines_KK.max() <= 0.9 + 1e-3


@pytest.mark.parametrize("below", ["The dog plays. A man, lifting weights!", LONG])
def test_what_stands_under_a_heading_says_it_too(model: PassageModel, below: str) -> None:
    above = ("# Music\n\n## guitar", "# Music\n\n## garage", "# Music\n\n## ***", "# guitar")
    texts, headings = [f"{heading}\n\n{below}" for heading in above], model.embed(["guitar", "garage"])
    passages, nearness = model.encode_passages(texts), np.zeros((4, 2))
    for place, text in enumerate(texts):
        facets, spans = passages.document(place)
        under = facets[facets.any(axis=1) & (spans[:, 0] >= text.index(below))]
        np.testing.assert_allclose(np.linalg.norm(under, axis=1), 1.0, atol=1e-5)
        nearness[place] = (under @ headings.T).mean(axis=0)
    assert nearness[0, 0] > nearness[2, 0] + 0.05 and nearness[1, 1] > nearness[2, 1] + 0.05
    assert nearness[0, 0] > nearness[3, 0] + 0.05, "a title is in what all facets have in common, and there alone"


def test_several_questions_are_a_facet_each(model: PassageModel) -> None:
    asked = ["Does the dog play music? Who plays guitar?", "The dog plays. Who plays guitar?", "Who plays guitar?"]
    queries = model.encode_queries(asked)
    assert queries.are_questions.tolist() == [True, False, False]
    assert (queries.weights > 0).sum(axis=1).tolist() == [2, 1, 1]


@pytest.mark.parametrize("num_repeats", [1, 60])
def test_a_long_query_has_facets_for_its_parts(model: PassageModel, num_repeats: int) -> None:
    queries = model.encode_queries([SHORT, LONG * num_repeats])
    used = queries.weights > 0
    assert 2 <= used[1].sum() <= 16
    assert (queries.facets.any(axis=2) == used).all()
    np.testing.assert_allclose(queries.weights.sum(axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(queries.facets[used], axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("method", ["encode", "encode_passages", "encode_queries", "embed"])
def test_texts_without_a_word_and_bare_texts_are_refused(model: PassageModel, method: str) -> None:
    for empty in ("", " \n\t", "\u200b\x00"):
        with pytest.raises(InvalidInputError, match="has no words") as caught:
            getattr(model, method)([SHORT, empty])
        assert caught.value.path == ("texts", 1)
    with pytest.raises(TypeError, match="sequence of str"):
        getattr(model, method)(SHORT)
    with pytest.raises(TypeError, match=r"texts\[1\] must be a str, got NoneType"):
        getattr(model, method)([SHORT, None])


def test_facets_that_are_not_finite_are_read_again(caplog: pytest.LogCaptureFixture) -> None:
    model = toy_passage_model()
    texts = ["A man is lifting weights in a garage.", "The dog plays music."]
    expected = model.encode_passages(texts).facets
    calls = []

    def spoiled_once(module: torch.nn.Module, given: object, states: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return states * torch.nan if len(calls) == 1 else states

    assert isinstance(model.encoder, NetworkEncoder)
    with model.encoder.network.register_forward_hook(spoiled_once):
        np.testing.assert_allclose(model.encode_passages(texts).facets, expected, atol=1e-6)
    assert "not finite" in caplog.text


def test_an_encoder_with_damaged_weights_gives_no_vectors() -> None:
    model = toy_passage_model()
    assert isinstance(model.encoder, NetworkEncoder)
    model.encoder.network.norm.bias[0] = torch.nan
    with pytest.raises(CheckpointError, match="not finite"):
        model.encode([SHORT])
