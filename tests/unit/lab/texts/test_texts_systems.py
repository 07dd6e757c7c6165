"""Baselines: what they pick, what is left out when it is not there."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.texts import systems
from facets_lab.texts.systems import (
    AverageEncoder,
    Budget,
    CoverageSummarizer,
    RankingSummarizer,
    by_centroid,
    by_graph,
    by_place,
    by_seed,
    summarization_baselines,
)
from numpy.typing import NDArray
from toys import toy_model

from facets.language.tokenizer import Tokenizer
from facets.texts.coverage import PAPER_COVERAGE, CoverageConfig

DOCUMENT = (
    "A man plays the guitar in the garage.",
    "The dog.",
    "Music and guitar music and the guitar man plays.",
    "Qwxz vbnm!",
    "The man in the garage plays guitar music.",
)


def _embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Counts of the letters."""
    return np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], dtype=np.float32)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (Budget(), [0, 1, 4]),
        (Budget(num_sentences=9), [0, 1, 2, 3, 4]),
        (Budget(max_words=10), [1, 4]),
        (Budget(max_words=1), [4]),  # the best one, though too long
    ],
)
def test_budget_takes_what_fits_in_the_order_of_the_document(budget: Budget, expected: list[int]) -> None:
    assert budget.fill(DOCUMENT, [4, 0, 1, 2, 3]) == " ".join(DOCUMENT[i] for i in expected)


def _summarizers() -> list[CoverageSummarizer | RankingSummarizer]:
    model = toy_model()
    return [
        CoverageSummarizer("model", model, CoverageConfig()),
        CoverageSummarizer("paper", model, PAPER_COVERAGE),
        CoverageSummarizer("sentence-average", model, CoverageConfig(), AverageEncoder(model)),
        RankingSummarizer("first", by_place),
        RankingSummarizer("random", by_seed(0)),
        RankingSummarizer("centroid", by_centroid(_embed)),
    ]


@pytest.mark.parametrize("summarizer", _summarizers(), ids=lambda summarizer: summarizer.name)
@pytest.mark.parametrize("budget", [Budget(num_sentences=2), Budget(max_words=9), Budget(max_words=1)], ids=str)
def test_summaries_keep_the_budget_and_are_never_empty(
    summarizer: CoverageSummarizer | RankingSummarizer, budget: Budget
) -> None:
    documents = [DOCUMENT, ("Qwxz vbnm!",)]
    for document, summary in zip(documents, summarizer.summaries(documents, budget), strict=True):
        chosen = [sentence for sentence in document if sentence in summary]
        assert chosen and summary == " ".join(chosen)
        if budget.max_words is None:
            assert len(chosen) == min(2, len(document))
        else:
            assert len(summary.split()) <= budget.max_words or len(chosen) == 1


def test_words_as_in_the_paper_prefer_sentences_by_gain_a_word() -> None:
    # All words of the first sentence are in the second too, which wastes words on the known "the".
    document = ("guitar music", "guitar music the the the the the the")
    (words,) = (s for s in summarization_baselines(toy_model(), PAPER_COVERAGE) if s.name == "words")
    assert words.summaries([document], Budget(1)) == ["guitar music"]


def test_sentence_average_covers_with_one_vector_a_sentence() -> None:
    model = toy_model()
    facets = AverageEncoder(model).encode(["guitar music", "dog"])
    rows = model.words.vocabulary.rows(["guitar", "music", "dog"])
    units = model.words.unit_vectors[rows]
    assert facets.shape == (2, 1, 32)
    assert facets[:, 0] == pytest.approx(np.stack([units[:2].mean(axis=0), units[2]]), abs=1e-6)


def test_centroid_is_the_most_typical_sentence() -> None:
    assert by_centroid(_embed)(["aaab", "zzz", "aab", "ab"])[-1] == 1


def test_random_is_the_same_every_run() -> None:
    first, second = by_seed(4), by_seed(4)
    orders = [list(first(DOCUMENT)) for _ in range(5)]
    assert orders == [list(second(DOCUMENT)) for _ in range(5)]
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders) and orders[0] != orders[1]


@pytest.mark.parametrize("algorithm", ["textrank", "lexrank"])
def test_graph_rankings_rank_every_sentence_and_shared_words_win(algorithm: str) -> None:
    pytest.importorskip("sumy", reason="the extra 'train' is not installed")
    rank = by_graph(algorithm, Tokenizer(), ["the", "a", "in", "and"])
    ranked = list(rank(["The cat and moon.", "A fish in the sun.", "Cats, fish, trees!", "The tree and star."]))
    assert sorted(ranked) == [0, 1, 2, 3] and ranked[0] == 2  # it shares a stem with each of the others
    assert list(rank(["One."])) == [0] and sorted(rank(["One two.", "The in."])) == [0, 1]


def test_missing_packages_are_left_out_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def not_installed() -> None:
        raise ImportError("package not installed")

    monkeypatch.setattr(systems, "EMBEDDERS", {"minilm": not_installed, "model2vec": lambda: _embed})
    with caplog.at_level(logging.WARNING):
        assert [system.name for system in systems.embedding_baselines()] == ["model2vec"]
    assert [record.getMessage() for record in caplog.records] == [
        "the baseline minilm is left out: package not installed"
    ]


@pytest.mark.parametrize(
    ("command", "line", "names"),
    [
        ("sts", "5.0\ta man\tman\n1.0\tdog\tguitar\n2.0\tmusic\tthe garage\n", ["letters"]),
        ("phrase-pairs", "1\ta man\tman\n0\tdog plays\tguitar\n", ["letters", "words"]),
        ("phrase-choice", "a man\tman\ta\tman\tdog\tplays\tmusic\tthe\n", ["letters", "words"]),
    ],
)
def test_commands_add_baselines(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    line: str,
    names: list[str],
) -> None:
    monkeypatch.setattr(systems, "EMBEDDERS", {"letters": lambda: _embed})
    monkeypatch.setattr(systems, "BASELINE_MODELS", ())
    toy_model().save(tmp_path / "toy")
    (tmp_path / "data.tsv").write_text(line)
    assert main([command, str(tmp_path / "data.tsv"), "--model", str(tmp_path / "toy"), "--baselines"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert list(models) == ["toy", *names] and list(models["letters"]) == ["cosine"]


def test_summarization_adds_baselines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("rouge_score", "sumy"):
        pytest.importorskip(module, reason="the extra 'train' is not installed")
    monkeypatch.setattr(systems, "minilm", lambda: _embed)
    monkeypatch.setattr(systems, "BASELINE_MODELS", ())
    toy_model().save(tmp_path / "toy")
    record = {"id": "1", "sentences": DOCUMENT, "references": [DOCUMENT[4]]}
    (tmp_path / "data.jsonl").write_text(json.dumps(record) + "\n")
    arguments = ["--model", str(tmp_path / "toy"), "--baselines", "--words", "10"]
    assert main(["summarization", str(tmp_path / "data.jsonl"), *arguments]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert {name: list(methods) for name, methods in models.items()} == {
        "toy": ["coverage"],
        "random": ["ranking"],
        "first": ["ranking"],
        "sentence-average": ["coverage"],
        "words": ["coverage"],
        "minilm-centroid": ["ranking"],
        "textrank": ["ranking"],
        "lexrank": ["ranking"],
    }
    assert all(metrics["length"] <= 10 for methods in models.values() for metrics in methods.values())
