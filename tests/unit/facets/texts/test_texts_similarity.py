"""Similarity: every method on texts with a known answer, odd texts, explanations, calibrated scores."""

import itertools
import threading
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from facets_client.generated.types import Method
from facets_proto.v1 import texts_pb2
from numpy.typing import NDArray

from facets import scoring
from facets.errors import ConfigError, InvalidInputError
from facets.language.interruption import interrupted_by
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary
from facets.model.contract import TextModel
from facets.texts.similarity import WORD_METHODS, PairScorer, SimilarityMethod, score_pairs
from facets.texts.words import fit_common_components

TEXTS = ["the cat is a dog", "kitten puppy", "truck on the road", "piano concert music", "violin, music."]
CASES = [(method, False) for method in SimilarityMethod] + [(m, True) for m in SimilarityMethod if m in WORD_METHODS]


@pytest.fixture
def fitted(model: TextModel) -> TextModel:
    pytest.importorskip("ot", reason="the extra 'wmd' is not installed")
    model.common_components.update(fit_common_components(model, [*TEXTS, "the of is", "of the", "is", "of"]))
    return model


@pytest.mark.parametrize(("method", "attention"), CASES)
def test_related_texts_score_higher_and_order_does_not_matter(
    fitted: TextModel, method: SimilarityMethod, attention: bool
) -> None:
    pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[0], TEXTS[3]), (TEXTS[3], TEXTS[4]), (TEXTS[3], TEXTS[2])]
    scores = score_pairs(fitted, pairs, method, attention=attention).scores
    assert scores.dtype == np.float32 and scores.shape == (4,)
    assert scores[0] > scores[1] and scores[2] > scores[3]
    turned = score_pairs(fitted, [(b, a) for a, b in pairs], method, attention=attention).scores
    np.testing.assert_allclose(turned, scores, atol=1e-5)


def test_a_call_that_waits_for_the_model_does_not_stop_others(model: TextModel) -> None:
    is_waiting, may_go_on = threading.Event(), threading.Event()

    def wait_once(texts: Sequence[str]) -> NDArray[np.float32]:
        is_waiting.set()
        assert may_go_on.wait(60)
        return model.encode(texts)

    pair = [("the cat", "kitten puppy")]
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(score_pairs, model, pair, encoder=SimpleNamespace(encode=wait_once, embed=wait_once))
        assert is_waiting.wait(60)
        try:
            second = threads.submit(score_pairs, model, pair).result(timeout=30)
        finally:
            may_go_on.set()
        assert first.result().scores.tolist() == second.scores.tolist()


@pytest.mark.parametrize("method", [method for method in SimilarityMethod if not method.row.needs_common_component])
def test_texts_of_fewer_facets_are_compared_and_explained_by_every_method(
    passage_model: TextModel, method: SimilarityMethod
) -> None:
    pytest.importorskip("ot", reason="the extra 'wmd' is not installed")
    result = score_pairs(passage_model, [("cat", "kitten dog"), ("cat", "piano"), ("cat", "cat")], method, explain=True)
    assert result.scores[0] > result.scores[1]
    assert result.scores[2] == pytest.approx(method.row.range[1], abs=1e-5)
    assert {match.first_facet for match in result.explanations[0].matches} == {0}
    assert {match.second_facet for match in result.explanations[0].matches} <= {0, 1}


@pytest.mark.parametrize(("method", "attention"), CASES)
@pytest.mark.parametrize("odd", ["qwxz vbnm", "the of is", "?! ...", "zzzz", "a \U0001f408 \u732b ox", "the " * 50])
def test_odd_texts_give_finite_scores_in_range(
    fitted: TextModel, method: SimilarityMethod, attention: bool, odd: str
) -> None:
    pairs = [(odd, TEXTS[0]), (TEXTS[0], odd), (odd, odd), (odd, "unknwn wrds")]
    scores = score_pairs(fitted, pairs, method, attention=attention).scores
    assert np.isfinite(scores).all()
    low, high = method.row.range
    assert scores.min() >= low - 1e-5 and scores.max() <= high + 1e-5
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_each_distinct_text_is_encoded_once(model: TextModel) -> None:
    scorer = PairScorer(model, [("a cat", "a dog"), ("a cat", "a car"), ("a dog", "a cat")])
    for method in SimilarityMethod.CODEBOOK, SimilarityMethod.MAX_FACET:
        scorer.scores(method)
    scorer.scores(SimilarityMethod.AVERAGE, attention=True)
    scorer.explanations(SimilarityMethod.SIF, attention=True)
    assert sorted(model.encoded) == ["a car", "a cat", "a dog"]


@pytest.mark.parametrize(("method", "attention"), CASES)
def test_no_pairs_give_no_scores(fitted: TextModel, method: SimilarityMethod, attention: bool) -> None:
    result = score_pairs(fitted, [], method, attention=attention, explain=True)
    assert result.scores.shape == (0,) and result.explanations == ()


@pytest.mark.parametrize("blank", ["", "  \n\t", "\u2003"])
def test_blank_text_is_refused_by_name(model: TextModel, blank: str) -> None:
    with pytest.raises(InvalidInputError, match=r"pairs\[1\]\.second") as caught:
        score_pairs(model, [("a", "b"), ("c", blank)])
    assert caught.value.field == "pairs[1].second"
    assert model.encoded == []


@pytest.mark.parametrize("pairs", [("a b", "c d"), [("a", "b", "c")]])
def test_pairs_are_of_two_texts(model: TextModel, pairs: Any) -> None:
    with pytest.raises(TypeError, match=r"pairs\[0\] must be a pair of texts"):
        score_pairs(model, pairs)


def test_attention_of_a_facet_method_is_refused(model: TextModel) -> None:
    with pytest.raises(InvalidInputError, match="codebook") as caught:
        score_pairs(model, [("a", "b")], SimilarityMethod.CODEBOOK, attention=True)
    assert caught.value.field == "attention"


@pytest.mark.parametrize(("attention", "key"), [(False, "plain"), (True, "attention")])
def test_sif_without_its_component_is_a_configuration_error(model: TextModel, attention: bool, key: str) -> None:
    other = {"plain": "attention", "attention": "plain"}[key]
    model.common_components[other] = np.zeros(model.words.dim, dtype=np.float32)
    with pytest.raises(ConfigError, match=f"'{key}'.*fit_common_components"):
        score_pairs(model, [("cat", "dog")], SimilarityMethod.SIF, attention=attention)


def test_wmd_without_its_package_is_a_configuration_error(model: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"wmd needs .*multifacet\[wmd\]"):
        score_pairs(model, [("cat", "dog")], SimilarityMethod.WMD)


def test_repeated_words_move_like_one_word_of_their_joint_weight(fitted: TextModel) -> None:
    texts = ["the cat is a cat , cat on the road", "the dog the road kitten dog the"]
    words = [[word for word in text.split() if word in fitted.words.vocabulary.words and word != ","] for text in texts]
    vectors = [torch.from_numpy(fitted.words.units(fitted.words.vocabulary.rows(own)))[None] for own in words]
    weights = [torch.ones(1, len(own)) for own in words]
    expected = scoring.wmd(vectors[0], weights[0], vectors[1], weights[1]).item()
    assert score_pairs(fitted, [(texts[0], texts[1])], "wmd").scores[0] == pytest.approx(expected, abs=1e-6)


def test_texts_of_many_pieces_take_little_memory_and_can_be_interrupted(model: TextModel) -> None:
    pytest.importorskip("ot", reason="the extra 'wmd' is not installed")
    pieces = ["".join(three) for three in itertools.product("bcdefghijklmnopq", repeat=3)]
    vocabulary = Vocabulary(["a##", *("##" + piece for piece in pieces)], np.arange(len(pieces), -1, -1))
    vectors = np.random.default_rng(0).standard_normal((len(vocabulary), 8)).astype(np.float32)
    model.words, model.max_tokens = WordVectors(vocabulary, vectors), 128
    repeated = " ".join(["a" + pieces[0] * 40] * 100)
    different = [
        " ".join("a" + "".join(own[n : n + 40]) for n in range(0, len(own), 40)) for own in (pieces, pieces[::-1])
    ]
    pairs = [(repeated, "a " + repeated), (different[0], different[1])]
    checks: list[None] = []
    tracemalloc.start()
    try:
        with interrupted_by(lambda: checks.append(None)):
            same, _ = score_pairs(model, pairs, "wmd").scores
            peak, num_checks = tracemalloc.get_traced_memory()[1], len(checks)
            score_pairs(model, pairs * 5, "wmd")
    finally:
        tracemalloc.stop()
    assert same == pytest.approx(0, abs=1e-6)
    assert peak < 64 * 2**20
    assert len(checks) - 2 * num_checks >= 4  # of the other four long pairs


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("method", sorted(WORD_METHODS))
def test_explanation_holds_the_weights_that_the_score_used(
    fitted: TextModel, method: SimilarityMethod, attention: bool
) -> None:
    pairs = [("The cat, qwxz road of piano!", "the dog is piano"), ("puppy", "the road dog , qwxz kitten the")]
    result = score_pairs(fitted, pairs, method, attention=attention, explain=True)
    for score, explanation in zip(result.scores, result.explanations, strict=True):
        sides = [explanation.first_tokens, explanation.second_tokens]
        weights = [torch.tensor([[token.weight for token in tokens if token.weight]]) for tokens in sides]
        vectors = [
            torch.from_numpy(
                fitted.words.unit_vectors[
                    fitted.words.vocabulary.rows([token.text.lower() for token in tokens if token.weight])
                ]
            ).unsqueeze(0)
            for tokens in sides
        ]
        if "wmd" in method:
            [again] = scoring.wmd(vectors[0], weights[0], vectors[1], weights[1]).tolist()
        else:
            averages = torch.cat([scoring.average(v, w) for v, w in zip(vectors, weights, strict=True)])
            if method is SimilarityMethod.SIF:
                component = fitted.common_components["attention" if attention else "plain"]
                averages = scoring.remove_component(averages, torch.from_numpy(component))
            again = scoring.cosine_score(averages[:1], averages[1:]).item()
        assert again == pytest.approx(score, abs=1e-5)
    by_text = {token.text: token.weight for token in result.explanations[0].first_tokens}
    assert by_text[","] == by_text["qwxz"] == by_text["!"] == 0


@pytest.mark.parametrize("num_pairs", [1, 700])
def test_many_pairs_are_scored_in_blocks(model: TextModel, num_pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facets.texts.similarity.NUMBERS_AT_A_TIME", 1000)
    monkeypatch.setattr("facets.texts.words.BATCH_WORDS", 7)
    pairs = [(TEXTS[i % 5], TEXTS[i % 3]) for i in range(num_pairs)]
    for method in (SimilarityMethod.CODEBOOK, SimilarityMethod.AVERAGE):
        scores = score_pairs(model, pairs, method).scores
        expected = {pair: score_pairs(model, [pair], method).scores[0] for pair in set(pairs)}
        np.testing.assert_allclose(scores, [expected[pair] for pair in pairs], atol=1e-5)


def test_scores_are_mapped_by_the_curve_of_the_method(model: TextModel) -> None:
    model.score_curves["average+attention"] = np.array([[-1.0, 0.5, 1.0], [0.0, 0.25, 1.0]])
    pairs = [("the cat is a dog", "kitten puppy"), ("cat", "piano"), ("cat", "cat"), ("qwxz", "cat")]
    result = score_pairs(model, pairs, SimilarityMethod.AVERAGE, attention=True, calibrated=True)
    assert result.calibrated is not None and result.calibrated.dtype == np.float32
    expected = np.interp(result.scores, [-1.0, 0.5, 1.0], [0.0, 0.25, 1.0])
    np.testing.assert_allclose(result.calibrated, expected, atol=1e-6)
    assert result.calibrated[2] == pytest.approx(1.0)  # a text with itself
    assert (np.argsort(result.calibrated, kind="stable") == np.argsort(result.scores, kind="stable")).all()


def test_the_proto_and_the_client_have_the_methods_of_the_table() -> None:
    assert texts_pb2.SimilarityMethod.keys()[1:] == [f"SIMILARITY_METHOD_{method.name}" for method in SimilarityMethod]
    assert get_args(Method) == tuple(SimilarityMethod)
