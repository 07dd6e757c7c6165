from pathlib import Path

import numpy as np
import pytest
from facets_lab.relations.entailment import EntailmentData, PairScores, pair_metrics, read_entailment
from toy_retrieval import write_lines

from facets.errors import InvalidInputError

LABELLED = [
    ">\t$ARG1 was born in $ARG2\t$ARG1 grew up in $ARG2\t10\t20",
    "<\t$ARG1 wed $ARG2\t$ARG1 is married to $ARG2\t10\t20",
    ":\t$ARG1 works for $ARG2\t$ARG2 hired $ARG1\t10\t20",
    "N\t$ARG1 works for $ARG2\t$ARG1 wed $ARG2\t10\t2",
]
TRIPLES = [
    "person, was born in, poland\thitler, would attack, poland\tFalse",
    "beverage, contains, caffeine\tcaffeine, is present in, these beverages\tTrue",
    "animal, eats, hay\tthe sheep, grazes on, hay\tTrue",
    "the sheep, grazes on, hay\tanimal, eats, hay\tFalse",
    "disease, can cause, a headache\theadaches, may occur with, pneumonia\tTrue",
    "headaches, may occur with, pneumonia\tdisease, can cause, a headache\tTrue",
]


@pytest.fixture
def labelled(tmp_path: Path) -> EntailmentData:
    return read_entailment(write_lines(tmp_path / "labelled.tsv", LABELLED))


@pytest.fixture
def triples(tmp_path: Path) -> EntailmentData:
    return read_entailment(write_lines(tmp_path / "triples.tsv", TRIPLES))


def test_the_second_triple_is_the_premise_and_shared_entities_place_the_arguments(triples: EntailmentData) -> None:
    assert triples.premises[:3] == ["$ARG1 would attack $ARG2", "$ARG2 is present in $ARG1", "$ARG1 grazes on $ARG2"]
    assert triples.hypotheses[:3] == ["$ARG1 was born in $ARG2", "$ARG1 contains $ARG2", "$ARG1 eats $ARG2"]
    assert triples.relevant.tolist() == [False, True, True, False, True, True]


def test_both_judgements_of_a_pair_make_its_label(triples: EntailmentData) -> None:
    assert triples.directions.tolist() == [0, 0, 1, -1, 0, 0]
    names = [set(np.array(["entails", "entailed by", "paraphrase", "neutral"])[row]) for row in triples.possible]
    assert names[0] == {"entailed by", "neutral"}
    assert names[1] == {"entails", "paraphrase"}
    assert names[4] == names[5] == {"paraphrase"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([LABELLED[0], "?\t$ARG1 a $ARG2\t$ARG1 b $ARG2\t1\t1"], r"line 2: expected label"),
        ([LABELLED[0], ">\t$ARG1 a\t$ARG1 b $ARG2\t1\t1"], "once in each pattern"),
        ([LABELLED[0], TRIPLES[0]], "expected label"),
        ([TRIPLES[1], "a, b\tc, d, e\tTrue"], "expected entity, words, entity"),
        ([TRIPLES[1], "a, b, c\tc, d, e\ttrue"], "expected entity, words, entity"),
        ([], "must have a pair with entailment"),
    ],
)
def test_bad_files_are_reported(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_entailment(write_lines(tmp_path / "pairs.tsv", lines))


@pytest.mark.parametrize(("direction", "accuracy"), [(1.0, 1.0), (-1.0, 0.0), (0.0, 0.5)])
def test_direction_is_judged_where_there_is_entailment(
    labelled: EntailmentData, triples: EntailmentData, direction: float, accuracy: float
) -> None:
    for data, base_rate in ((labelled, 0.5), (triples, 4 / 6)):
        gold = data.directions.astype(np.float64)
        scores = PairScores(np.abs(gold), data.relevant.astype(np.float64), gold * direction)
        assert pair_metrics(scores, data) == {
            "ap": 1.0,
            "base_rate": pytest.approx(base_rate),
            "micro_accuracy": accuracy,
            "macro_accuracy": accuracy,
        }
