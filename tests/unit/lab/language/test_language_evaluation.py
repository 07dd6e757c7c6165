import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.language.evaluation import (
    SentencePairs,
    analogy_accuracy,
    evaluate,
    sentence_similarity,
    word_similarity,
)
from scipy.stats import pearsonr

from facets.errors import ConfigError, InvalidInputError
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary

# Royal and gender as axes: the analogies come out right by construction.
WORDS = {
    "king": [1.0, 1.0, 0.0],
    "queen": [1.0, -1.0, 0.0],
    "man": [0.1, 1.0, 0.0],
    "woman": [0.1, -1.0, 0.0],
    "apple": [0.0, 0.0, 1.0],
    "the": [0.3, 0.1, 0.9],
    ".": [9.0, 9.0, 9.0],
}


@pytest.fixture
def words() -> WordVectors:
    return WordVectors(Vocabulary(list(WORDS), np.array([5, 4, 9, 8, 2, 500, 400])), np.array(list(WORDS.values())))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "words/similarity").mkdir(parents=True)
    (tmp_path / "sts").mkdir()
    (tmp_path / "words/similarity/EN-GOOD.txt").write_text("King\tqueen\t2\nking man 8\nking the 1\nking zebra 5\n")
    (tmp_path / "words/similarity/EN-BAD.txt").write_text("king queen 8\nking man 2\nking the 5\n")
    analogies = (
        ": family\nman woman king queen\nman king woman apple\nman king woman zebra\n: gram1-x\nqueen king woman man\n"
    )
    (tmp_path / "words/analogies.txt.xz").write_bytes(lzma.compress(analogies.encode()))
    pairs = "5.0\tThe king.\tKing!\n1.0\tThe queen\tAn apple\n3.0\ta man\tthe king\n2.0\tthe woman\tthe man\n"
    (tmp_path / "sts/stsb-train.tsv").write_text(pairs)
    (tmp_path / "sts/stsb-dev.tsv").write_text(pairs)
    return tmp_path


def test_word_similarity_ranks_known_pairs(words: WordVectors, data: Path) -> None:
    result = word_similarity(words, data / "words/similarity")
    assert result["GOOD"] == pytest.approx(0.5) and result["BAD"] == pytest.approx(-1.0)
    assert result["mean"] == pytest.approx(-0.25) and result["coverage"] == pytest.approx(6 / 7)


def test_analogies_count_right_answers_of_known_questions(words: WordVectors, data: Path) -> None:
    result = analogy_accuracy(words, data / "words/analogies.txt.xz")
    assert result == {"semantic": 0.5, "syntactic": 1.0, "all": pytest.approx(2 / 3), "coverage": 0.75}


def test_average_is_the_cosine_of_plain_averages(words: WordVectors, data: Path) -> None:
    pairs = SentencePairs.read(data / "sts/stsb-dev.tsv", words.vocabulary, Tokenizer())
    assert [row.tolist() for row in pairs.first] == [[5, 0], [5, 1], [2], [5, 3]]  # no punctuation, no unknown words
    result = sentence_similarity(words, pairs, fitted_on=pairs)
    units = words.unit_vectors
    cosines = []
    for first, second in zip(pairs.first, pairs.second, strict=True):
        left, right = units[first].mean(axis=0), units[second].mean(axis=0)
        cosines.append(left @ right / np.linalg.norm(left) / np.linalg.norm(right))
    assert result["average"] == pytest.approx(pearsonr(cosines, pairs.scores)[0], abs=1e-5)
    low = pairs.scores < np.median(pairs.scores)
    assert result["average_low"] == pytest.approx(pearsonr(np.array(cosines)[low], pairs.scores[low])[0], abs=1e-5)
    assert set(result) == {m + low for m in ("average", "probability_average", "sif") for low in ("", "_low")}


def test_main_prints_what_evaluate_gives(words: WordVectors, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words.save(data / "vectors")
    assert main(["words", str(data / "vectors"), "--data", str(data)]) == 0
    assert json.loads(capsys.readouterr().out) == evaluate(WordVectors.load(data / "vectors"), data)


def test_missing_and_damaged_files_are_refused(
    words: WordVectors, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="got no such file"):
        word_similarity(words, data / "sts")
    path = data / "sts/stsb-dev.tsv"
    path.write_text("5.0\tone sentence\n")
    with pytest.raises(InvalidInputError, match=r"line 1: expected .* got 2 fields"):
        SentencePairs.read(path, words.vocabulary, Tokenizer())
    path.write_text("1\tsome sentence\tx\nfive\tone sentence\tanother\n")
    with pytest.raises(InvalidInputError, match="line 2: expected a number as score, got 'five'"):
        SentencePairs.read(path, words.vocabulary, Tokenizer())
    assert main(["words", str(data / "missing"), "--data", str(data)]) == 1
    assert "error: cannot read" in capsys.readouterr().err
