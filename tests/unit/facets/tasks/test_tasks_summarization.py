"""Summaries: greedy choice against brute force, counts, offsets, budgets, queries, odd documents."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from facets import scoring
from facets.errors import InvalidInputError
from facets.tasks import selection
from facets.tasks.interface import TextModel
from facets.tasks.selection import select_sentences
from facets.tasks.summarization import summarize

TEXT = "The cat plays.\n\nA dog barks.  The truck is on the road. A kitten and a puppy sleep! Piano music is fine."
SENTENCES = [
    "The cat plays.",
    "A dog barks.",
    "The truck is on the road.",
    "A kitten and a puppy sleep!",
    "Piano music is fine.",
]


def _problem(seed: int, num_sentences: int, num_words: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    facets = torch.randn(num_sentences, 2, 4, generator=generator)
    words = torch.nn.functional.normalize(torch.randn(num_words, 4, generator=generator), dim=-1)
    weights = torch.rand(num_words, generator=generator) + 0.05
    return facets, words, weights / weights.sum()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    num_sentences=st.integers(1, 30),
    num_words=st.integers(1, 12),
    num_picks=st.integers(1, 8),
    keep=st.booleans(),
)
def test_lazy_choice_equals_the_plain_greedy_one(
    seed: int, num_sentences: int, num_words: int, num_picks: int, keep: bool
) -> None:
    facets, words, weights = _problem(seed, num_sentences, num_words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "_KEPT_COSINES", 10**6 if keep else 0)
        patch.setattr(selection, "_COSINES_AT_A_TIME", 50)
        patch.setattr(selection, "_FIRST_BLOCK", 2)
        costs = np.ones(num_sentences, dtype=np.int64)
        picked = select_sentences(facets, words, weights, costs_S=costs, budget=num_picks)
    assert len(picked) == min(num_picks, num_sentences)
    covered = scoring.word_coverage(facets, words).double()
    best = torch.zeros(num_words, dtype=torch.float64)
    for item in picked:
        gains = (covered - best).clamp_min(0) @ weights.double()
        assert item.gain == pytest.approx(gains[item.sentence].item(), abs=1e-6)
        open_gains = [
            g for s, g in enumerate(gains.tolist()) if s not in {p.sentence for p in picked[: picked.index(item)]}
        ]
        assert item.gain == pytest.approx(max(open_gains), abs=1e-5)
        best = torch.maximum(best, covered[item.sentence])
    assert len({item.sentence for item in picked}) == len(picked)


def test_equal_sentences_are_picked_first_come() -> None:
    facets, words, weights = _problem(1, 3, 6)
    copies = facets[[0, 1, 0, 1, 2, 0]].repeat(10, 1, 1)
    first = select_sentences(copies, words, weights, costs_S=np.ones(60, dtype=np.int64), budget=1)[0]
    assert first.sentence in (0, 1, 4)


def test_sentences_that_add_nothing_follow_in_the_order_of_the_document() -> None:
    facets, words, weights = _problem(2, 1, 6)
    picked = select_sentences(facets.repeat(5, 1, 1), words, weights, costs_S=np.ones(5, dtype=np.int64), budget=4)
    assert [item.sentence for item in picked] == [0, 1, 2, 3]
    assert [item.gain for item in picked[1:]] == [0.0, 0.0, 0.0]


def test_summary_covers_the_topics(model: TextModel) -> None:
    (summary,) = summarize(model, [TEXT], num_sentences=3)
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


@pytest.mark.parametrize("num_sentences", [1, 2, 3, 5, 6, 100])
def test_exactly_as_many_sentences_as_asked_for_or_all(model: TextModel, num_sentences: int) -> None:
    (summary,) = summarize(model, [SENTENCES], num_sentences=num_sentences)
    assert len(summary.sentences) == min(num_sentences, 5)


def test_three_sentences_when_nothing_is_said(model: TextModel) -> None:
    assert len(summarize(model, [SENTENCES])[0].sentences) == 3


def test_orders_and_gains(model: TextModel) -> None:
    (original,) = summarize(model, [SENTENCES], num_sentences=4)
    (selected,) = summarize(model, [SENTENCES], num_sentences=4, order="selection")
    assert [s.sentence for s in original.sentences] == sorted(s.sentence for s in selected.sentences)
    assert [s.selection for s in selected.sentences] == [0, 1, 2, 3]
    gains = [s.gain for s in selected.sentences]
    assert gains == sorted(gains, reverse=True) and gains[0] > 0 and sum(gains) <= 1 + 1e-6
    assert sorted(original.sentences, key=lambda s: s.selection) == list(selected.sentences)


def test_shorter_summaries_are_the_start_of_longer_ones(model: TextModel) -> None:
    orders = [
        [s.sentence for s in summarize(model, [SENTENCES], num_sentences=n, order="selection")[0].sentences]
        for n in (1, 2, 3, 4)
    ]
    assert all(long[: len(short)] == short for short, long in itertools.pairwise(orders))


@pytest.mark.parametrize("max_words", [3, 6, 9, 12, 1000])
def test_word_budget_is_kept(model: TextModel, max_words: int) -> None:
    (summary,) = summarize(model, [SENTENCES], max_words=max_words)
    assert 1 <= summary.num_words <= max_words
    left = max_words - summary.num_words
    chosen = {s.sentence for s in summary.sentences}
    assert all(len(text.split()) > left for i, text in enumerate(SENTENCES) if i not in chosen)
    assert summary.num_words == len(summary.text.split())


def test_word_budget_below_every_sentence_keeps_the_best_one(model: TextModel) -> None:
    (summary,) = summarize(model, [SENTENCES], max_words=1)
    (best,) = summarize(model, [SENTENCES], num_sentences=1)
    assert [s.sentence for s in summary.sentences] == [s.sentence for s in best.sentences]


@pytest.mark.parametrize("text", ["Piano.", "qwxz vbnm", "?!", "the of is", "\U0001f408\U0001f408"])
def test_one_sentence_documents_are_their_own_summary(model: TextModel, text: str) -> None:
    (summary,) = summarize(model, [text])
    assert summary.text == text and summary.sentences[0].gain >= 0


def test_documents_of_unknown_words_are_summarized_from_the_start(model: TextModel) -> None:
    (summary,) = summarize(model, [["Qwxz.", "Vbnm.", "Asdf."]], num_sentences=2)
    assert [(s.sentence, s.gain) for s in summary.sentences] == [(0, 0.0), (1, 0.0)]


@pytest.mark.parametrize(("query", "expected"), [("kitten", {0, 1, 3}), ("a driver", {2}), ("concert violin", {4})])
def test_query_turns_the_summary_to_itself(model: TextModel, query: str, expected: set[int]) -> None:
    (summary,) = summarize(model, [SENTENCES], num_sentences=1, query=query)
    assert summary.sentences[0].sentence in expected


def test_query_of_unknown_words_still_gives_a_summary(model: TextModel) -> None:
    (summary,) = summarize(model, [SENTENCES], num_sentences=2, query="qwxz")
    assert len(summary.sentences) == 2


def test_documents_do_not_depend_on_each_other(model: TextModel) -> None:
    together = summarize(model, [TEXT, SENTENCES[:2], "Piano music."], num_sentences=2, query="cat")
    alone = [summarize(model, [d], num_sentences=2, query="cat")[0] for d in (TEXT, SENTENCES[:2], "Piano music.")]
    assert [[s.sentence for s in x.sentences] for x in together] == [[s.sentence for s in x.sentences] for x in alone]
    assert summarize(model, []) == []


def test_long_document_with_many_words(model: TextModel) -> None:
    words = model.words.vocabulary.words
    rng = np.random.default_rng(0)
    document = [" ".join(rng.choice(words, 10)) for _ in range(3000)]
    (summary,) = summarize(model, [document], num_sentences=40)
    assert len(summary.sentences) == 40 and summary.num_sentences_in_document == 3000


@pytest.mark.parametrize(
    ("documents", "field"),
    [
        (["Fine.", " \n"], "documents[1]"),
        ([["Fine.", ""]], "documents[0].sentences[1]"),
        ([["Fine."], []], "documents[1]"),
    ],
)
def test_blank_documents_are_refused_by_name(model: TextModel, documents: list[str | list[str]], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        summarize(model, documents)
    assert caught.value.field == field and field in str(caught.value)
    assert model.encoded == []


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"num_sentences": 0}, "num_sentences"),
        ({"max_words": -1}, "max_words"),
        ({"num_sentences": 1, "max_words": 1}, "max_words"),
        ({"order": "random"}, "order"),
        ({"query": "  "}, "query"),
    ],
)
def test_bad_options_are_refused_by_name(model: TextModel, options: dict[str, int | str], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        summarize(model, [TEXT], **options)
    assert caught.value.field == field


def test_one_string_instead_of_documents_is_a_type_error(model: TextModel) -> None:
    with pytest.raises(TypeError, match="sequence"):
        summarize(model, TEXT)
