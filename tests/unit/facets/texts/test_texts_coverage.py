"""Summaries by models of passages: words by repetition, sentences by likeness; queries, odd and long documents."""

import numpy as np
import pytest

from facets.language.sentences import Sentence
from facets.model.contract import TextModel
from facets.scoring import added_coverage
from facets.texts import coverage
from facets.texts.coverage import coverages_of
from facets.texts.summarization import summarize

SENTENCES = [
    "The cat plays near qwxz.",
    "The dog barks of qwxz.",
    "The truck is the road.",
    "Kitten, the puppy sleep!",
    "Piano music is fine.",
]


def _covered(model: TextModel, texts: list[str]) -> coverage.Covered:
    document = [Sentence(text, 0, len(text), text) for text in texts]
    [covered] = coverages_of(model, [document], None, query="", encoder=model)
    return covered


def test_sentences_cover_the_words_they_hold_and_the_sentences_they_resemble(passage_model: TextModel) -> None:
    covered = _covered(passage_model, SENTENCES)
    vectors = passage_model.embed(SENTENCES)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    num_words = covered.covered.shape[1] - len(SENTENCES)
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
        float(added_coverage(covered.covered[:, part], covered.repetition) @ covered.weights[part]) for part in parts
    ]
    np.testing.assert_allclose(totals, [0.5, 0.5], atol=1e-5)


@pytest.mark.parametrize(("query", "expected"), [("kitten", {0, 1, 3}), ("a driver", {2}), ("concert violin", {4})])
def test_query_turns_the_summary_to_itself(passage_model: TextModel, query: str, expected: set[int]) -> None:
    (summary,) = summarize(passage_model, [SENTENCES], num_sentences=1, query=query)
    assert summary.sentences[0].sentence in expected


def test_documents_do_not_depend_on_each_other(passage_model: TextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [SENTENCES, SENTENCES[:2], "Piano music. The cat! The cat again."]
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
