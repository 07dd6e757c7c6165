"""Words that are never most likely, and the trigram model against its definition."""

import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from facets_lab.heads.__main__ import main
from facets_lab.heads.hull import interior
from facets_lab.heads.stolen import TRIGRAM_WEIGHT, TrigramModel

SIZE = 9
TEXT = np.random.default_rng(3).integers(1, SIZE - 1, 300)  # 0 and the last word never come


def slow_probability(first: int, second: int, word: int) -> float:
    """Interpolated Kneser-Ney, word by word."""
    three = Counter(zip(TEXT[:-2], TEXT[1:-1], TEXT[2:], strict=True))
    # The first pair of the text has nothing before it: it counts for one word alone.
    two = Counter((v, w) for _, v, w in three)
    one = Counter(w for _, w in {(TEXT[0], TEXT[1]), *two})

    def discount(counts: Counter) -> float:
        found = Counter(counts.values())
        return found[1] / (found[1] + 2 * found[2]) if found[1] else 0.0

    def smoothed(counts: Counter, context: tuple[int, ...], lower: float) -> float:
        following = {(*context, w): 0 for w in range(SIZE)}
        following = {key: counts[key if context else key[0]] for key in following}
        total, kinds = sum(following.values()), sum(map(bool, following.values()))
        if not total:
            return lower
        return (max(following[(*context, word)] - discount(counts), 0) + discount(counts) * kinds * lower) / total

    lowest = smoothed(one, (), 1 / SIZE)
    return smoothed(three, (first, second), smoothed(two, (second,), lowest))


def test_trigram_probabilities_are_those_of_the_definition_and_sum_to_one() -> None:
    model = TrigramModel(TEXT, SIZE)
    for first, second in [(1, 2), (3, 3), (0, 5), (0, 0), tuple(TEXT[:2])]:
        found = model.probabilities(np.tile([first, second], (SIZE, 1)), np.arange(SIZE))
        assert found.sum() == pytest.approx(1)
        assert found == pytest.approx([slow_probability(first, second, word) for word in range(SIZE)])


def test_largest_probability_is_that_of_the_best_context() -> None:
    model = TrigramModel(TEXT, SIZE)
    seen = list(itertools.pairwise(TEXT.tolist()))
    of_all = np.stack([model.probabilities(np.tile(pair, (SIZE, 1)), np.arange(SIZE)) for pair in seen])
    assert model.largest()[1:-1] == pytest.approx(of_all.max(axis=0)[1:-1])
    assert model.largest()[[0, -1]].tolist() == [0, 0]
    wanted = np.arange(SIZE) == 4
    before = {(u, v) for u, v, w in zip(TEXT[:-2], TEXT[1:-1], TEXT[2:], strict=True) if w == 4}
    assert model.contexts_before(wanted).tolist() == sorted(u * SIZE + v for u, v in before)


def test_few_dimensions_have_interior_words_and_trigrams_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus.txt"
    paragraph = " ".join(f"the w{n % 40} ends in v{n % 7} ." for n in range(60))
    corpus.write_text("".join(f"# {n}\n{paragraph}\n\n" for n in range(40)), encoding="utf-8")
    sizes = ["--dim", "2", "--dim", "24", "--steps", "40", "--num-words", "52", "--num-tokens", "9000"]
    assert main(["stolen", str(corpus), "--work-dir", str(tmp_path / "runs"), "--threads", "1", *sizes]) == 0
    report = json.loads(capsys.readouterr().out)
    flat, wide = ({key: value["mean"] for key, value in run.items()} for run in report["layers"].values())
    assert flat["interior"] > 20 > wide["interior"]
    assert flat["largest_interior"] < flat["largest_vertices"] and flat["largest_interior"] < flat["largest_trigram"]
    assert flat["perplexity_interior_ensemble"] < flat["perplexity_interior"]
    assert flat["perplexity_interior_ensemble"] <= flat["perplexity_interior_trigram"] / TRIGRAM_WEIGHT * 1.001
    assert flat["perplexity_ensemble"] < flat["perplexity"]


def test_a_row_is_interior_exactly_if_it_is_a_mixture_of_others() -> None:
    corners = np.concatenate((np.eye(4), -np.eye(4)))
    mixtures = np.random.default_rng(0).dirichlet(np.ones(8), 30) @ corners
    outside = 3.0 * np.eye(4)[:1]
    assert interior(np.concatenate((outside, corners[1:], mixtures))).tolist() == [False] * 8 + [True] * 30
    assert not interior(np.concatenate((outside, mixtures)), budget_s=0.0).any()
