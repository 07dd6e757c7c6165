"""Summaries: greedy choice against brute force, counts, offsets, budgets, queries, odd documents."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from facets.errors import InvalidInputError
from facets.language.sentences import Sentence
from facets.model.contract import TextModel
from facets.scoring import added_coverage
from facets.texts import coverage, summarization
from facets.texts.coverage import Covered, block_coverage, coverages_of, words_to_cover
from facets.texts.summarization import select_sentences, summarize
from facets.texts.words import known_rows

TEXT = "The cat plays.\n\nA dog barks.  The truck is on the road. A kitten and a puppy sleep! Piano music is fine."
SENTENCES = [
    "The cat plays.",
    "A dog barks.",
    "The truck is on the road.",
    "A kitten and a puppy sleep!",
    "Piano music is fine.",
]


def _problem(seed: int, num_sentences: int, num_words: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    covered = torch.rand(num_sentences, num_words, generator=generator).sub(0.3).clamp_min(0)
    return covered, torch.rand(num_words, generator=generator) + 0.05


def _reference_selection(
    covered: torch.Tensor, weights: torch.Tensor, costs: np.ndarray, budget: int, repetition: float
) -> list[float]:
    """Plain greedy choice, every gain from the definition; the gains, as ties may be broken otherwise."""
    covered, weights = covered.double(), weights.double()

    def coverage(sentences: list[int]) -> float:
        return float(added_coverage(covered[sentences], repetition) @ weights)

    everything = coverage(list(range(len(covered)))) or 1.0
    open_sentences = [s for s in range(len(covered)) if costs[s] <= budget] or list(range(len(covered)))
    chosen: list[int] = []
    gains = []
    while open_sentences:
        gain = max(coverage([*chosen, s]) - coverage(chosen) for s in open_sentences)
        best = next(s for s in open_sentences if coverage([*chosen, s]) - coverage(chosen) >= gain * (1 - 1e-5) - 1e-12)
        gains.append((coverage([*chosen, best]) - coverage(chosen)) / everything)
        chosen.append(best)
        budget -= costs[best]
        open_sentences = [s for s in open_sentences if s != best and costs[s] <= budget]
    return gains


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    num_sentences=st.integers(1, 30),
    num_words=st.integers(1, 12),
    budget=st.integers(1, 20),
    repetition=st.sampled_from([0.3, 0.8, 1.0]),
    count=st.booleans(),
)
def test_lazy_choice_equals_the_plain_greedy_one(
    seed: int, num_sentences: int, num_words: int, budget: int, repetition: float, count: bool
) -> None:
    covered, weights = _problem(seed, num_sentences, num_words)
    lengths = np.random.default_rng(seed).integers(1, 9, num_sentences)
    costs = np.ones_like(lengths) if count else lengths
    expected = _reference_selection(covered, weights, costs, budget, repetition)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summarization, "GAINS_AT_A_TIME", 50)
        patch.setattr(summarization, "FIRST_BLOCK", 2)
        patch.setattr(summarization, "REPETITION", repetition)
        picked = select_sentences(Covered(covered, weights), costs_S=costs, budget=budget)
    assert [item.gain for item in picked] == pytest.approx(expected, abs=1e-4)
    assert len({item.sentence for item in picked}) == len(picked)
    if len(picked) == num_sentences:
        assert sum(item.gain for item in picked) == pytest.approx(1.0 if covered.sum() > 0 else 0.0, abs=1e-4)


@pytest.mark.parametrize("at_a_time", [1, 40, 10**6])
def test_coverage_of_blocks_equals_the_definition(
    model: TextModel, monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    monkeypatch.setattr(coverage, "COSINES_AT_A_TIME", at_a_time)
    sentences = [*SENTENCES, "Qwxz vbnm.", "The cat, the dog."]
    own_rows = [known_rows(model.words.vocabulary, words) for words in model.tokenizer.words(sentences)]
    words_UD, _ = words_to_cover(model, own_rows)
    facets = model.encode(sentences)
    fast = block_coverage(model, own_rows, words_UD, facets)
    vectors = model.words.unit_vectors
    for s, sentence in enumerate(sentences):
        rows = [r for r in model.words.vocabulary.rows(model.tokenizer.words([sentence])[0]) if r < len(model.words)]
        for u, word in enumerate(words_UD.numpy()):
            unit = facets[s] / np.linalg.norm(facets[s], axis=1, keepdims=True)
            facet = max(0.0, float((unit @ word).max()))
            own = max([0.0, *(float(vectors[r] @ word) for r in rows if model.words.vocabulary.words[r] not in ",.")])
            assert fast[s, u].item() == pytest.approx(0.3 * facet**2 + 0.7 * own**2, abs=1e-5)


def test_many_words_and_sentences_keep_the_heaviest_words(model: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "MAX_WORDS", 3)
    texts = ["Cat cat dog.", "Cat dog puppy.", "The piano."]
    rows = [known_rows(model.words.vocabulary, words) for words in model.tokenizer.words(texts)]
    monkeypatch.setattr(coverage, "ALPHA", 1e9)
    words_UD, weights_U = words_to_cover(model, rows)
    assert len(words_UD) == 3 and sorted(weights_U.tolist())[1:] == pytest.approx([4 / 9, 1.0])
    monkeypatch.setattr(coverage, "KEPT_COSINES", 3)
    assert len(words_to_cover(model, rows)[0]) == 1
    (summary,) = summarize(model, [SENTENCES], num_sentences=2)
    assert len(summary.sentences) == 2


def test_summary_covers_the_topics(model: TextModel) -> None:
    (summary,) = summarize(model, [TEXT], num_sentences=3, use_importance=False)  # none of them is what it is about
    places = {sentence.sentence for sentence in summary.sentences}
    assert {2, 4} <= places and places & {0, 1, 3}
    assert summary.num_sentences_in_document == 5


def test_offsets_of_raw_text_and_of_given_sentences(model: TextModel) -> None:
    (raw,) = summarize(model, [TEXT], num_sentences=5)
    (given_sentences,) = summarize(model, [SENTENCES], num_sentences=5)
    assert [s.text for s in raw.sentences] == [s.text for s in given_sentences.sentences] == SENTENCES
    assert all(TEXT[s.start : s.end] == s.text for s in raw.sentences)
    joined = " ".join(SENTENCES)
    assert all(joined[s.start : s.end] == s.text for s in given_sentences.sentences)


@pytest.mark.parametrize("max_words", [3, 6, 9, 12, 1000])
def test_word_budget_is_kept(model: TextModel, max_words: int) -> None:
    (summary,) = summarize(model, [SENTENCES], max_words=max_words)
    assert 1 <= summary.num_words <= max_words
    left = max_words - summary.num_words
    chosen = {s.sentence for s in summary.sentences}
    assert all(len(text.split()) > left for i, text in enumerate(SENTENCES) if i not in chosen)
    assert summary.num_words == len(summary.text.split())


@pytest.mark.parametrize(
    ("documents", "options", "field"),
    [
        (["Fine.", " \n"], {}, "documents[1]"),
        ([["Fine.", ""]], {}, "documents[0].sentences[1]"),
        ([["Fine."], []], {}, "documents[1]"),
        ([TEXT], {"num_sentences": 0}, "num_sentences"),
        ([TEXT], {"max_words": -1}, "max_words"),
        ([TEXT], {"num_sentences": 1, "max_words": 1}, "max_words"),
        ([TEXT], {"query": "  "}, "query"),
    ],
)
def test_bad_input_is_refused_by_name(model: TextModel, documents: list, options: dict, field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        summarize(model, documents, **options)
    assert caught.value.field == field and field in str(caught.value)
    assert options or model.encoded == []


PASSAGES = [
    "The cat plays near qwxz.",
    "The dog barks of qwxz.",
    "The truck is the road.",
    "Kitten, the puppy sleep!",
    "Piano music is fine.",
]


def _covered(model: TextModel, texts: list[str]) -> coverage.Covered:
    document = [Sentence(text, 0, len(text), text) for text in texts]
    [covered] = coverages_of(model, [document], query="", encoder=model)
    return covered


def test_sentences_cover_the_words_they_hold_and_the_sentences_they_resemble(passage_model: TextModel) -> None:
    covered = _covered(passage_model, PASSAGES)
    vectors = passage_model.embed(PASSAGES)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    num_words = covered.covered.shape[1] - len(PASSAGES)
    np.testing.assert_allclose(covered.covered[:, num_words:], np.clip(units @ units.T, 0, 1) ** 2, atol=1e-5)
    held = covered.covered[:, :num_words].numpy()
    words = [
        {"cat", "plays", "near", "qwxz"},
        {"dog", "barks", "qwxz"},
        {"truck", "road"},
        {"kitten", "puppy", "sleep"},
    ]
    words.append({"piano", "music", "fine"})
    assert held.sum(axis=1).tolist() == [len(own) for own in words]
    shared = held.sum(axis=0) == 2
    assert shared.sum() == 1 and held[:, shared].ravel().tolist() == [1, 1, 0, 0, 0]
    # Twice as often: four times the weight of another word that the vocabulary lacks.
    weights = covered.weights[:num_words]
    assert weights[shared].item() == pytest.approx(4 * weights[~shared].max().item(), rel=1e-4)
    parts = [slice(0, num_words), slice(num_words, None)]
    totals = [
        float(added_coverage(covered.covered[:, part], coverage.REPETITION) @ covered.weights[part]) for part in parts
    ]
    np.testing.assert_allclose(totals, [0.5, 0.5], atol=1e-5)


@pytest.mark.parametrize(("query", "expected"), [("kitten", {0, 1, 3}), ("a driver", {2}), ("concert violin", {4})])
def test_query_turns_the_summary_to_itself(passage_model: TextModel, query: str, expected: set[int]) -> None:
    (summary,) = summarize(passage_model, [PASSAGES], num_sentences=1, query=query)
    assert summary.sentences[0].sentence in expected


def test_documents_do_not_depend_on_each_other(passage_model: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [PASSAGES, PASSAGES[:2], "Piano music. The cat! The cat again."]
    together = summarize(passage_model, documents, num_sentences=2, query="cat")
    monkeypatch.setattr(coverage, "SENTENCES_AT_A_TIME", 3)
    assert summarize(passage_model, documents, num_sentences=2, query="cat") == together
    assert [summarize(passage_model, [d], num_sentences=2, query="cat")[0] for d in documents] == together
    assert summarize(passage_model, []) == []


def test_long_documents_are_covered_by_their_heaviest_words_and_by_centres(
    passage_model: TextModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = passage_model.words.vocabulary.words
    rng = np.random.default_rng(0)
    document = [" ".join(rng.choice(words, 6)) for _ in range(300)]
    monkeypatch.setattr(coverage, "MAX_WORDS", 5)
    covered = _covered(passage_model, document)
    assert 5 + 200 < covered.covered.shape[1] <= 5 + coverage.MAX_TARGETS < 5 + len(document)  # some centres are equal
    (summary,) = summarize(passage_model, [document], num_sentences=40)
    assert len(summary.sentences) == 40
