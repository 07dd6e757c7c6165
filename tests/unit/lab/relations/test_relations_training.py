from pathlib import Path

import numpy as np
import pytest
from facets_lab.relations.data import FactorizationConfig, RelationMatrix, load_matrix
from facets_lab.relations.entailment import EntailmentData, PairScores, pair_metrics, read_entailment
from facets_lab.relations.training import factorize
from relation_toys import TOY_ENTAILMENT, TOY_RELATIONS, make_toy_relation_checkpoint
from toy_retrieval import write_lines

from facets.errors import InvalidInputError
from facets.model import load
from facets.relations.model import RelationModel
from facets.relations.patterns import mirrored

LINES = [
    "a\tb\t$ARG1 met $ARG2\t2",
    "a\tb\t$ARG1 , friend of $ARG2\t1",
    "c\td\t$ARG1 met $ARG2\t1",
    "c\td\t$ARG1 , friend of $ARG2\t1",
    "e\tf\t$ARG1 once saw $ARG2\t1",
]
FACTS = [("a", "b", "knows"), ("g_(x)", "h", "knows"), ("c_(x)", "d", "knows"), ("a", "b", "unheard")]
RELATIONS = ("bornIn", "knows")


def matrix(folder: Path, lines: list[str] | None = None, **limits: int) -> RelationMatrix:
    return load_matrix(
        [write_lines(folder / "cells.tsv", LINES if lines is None else lines)],
        FACTS,
        RELATIONS,
        max_patterns_per_pair=limits.get("per_pair", 100),
        max_pairs_per_pattern=limits.get("per_pattern", 100),
    )


def test_the_matrix_holds_texts_and_facts_of_their_pairs(tmp_path: Path) -> None:
    loaded = matrix(tmp_path)
    assert loaded.relations == RELATIONS
    sizes = dict(zip([*loaded.patterns, *loaded.relations], loaded.row_sizes.tolist(), strict=True))
    assert sizes["$ARG1 met $ARG2"] == 2
    assert sizes["knows"] == 2  # no text has (g, h)
    assert sizes["bornIn"] == 0
    assert "$ARG1 once saw $ARG2" not in sizes  # one pattern, one pair
    assert sorted(loaded.names) == ["a\tb", "c\td"]
    assert loaded.pair_sizes.tolist() == [3, 3]


def test_factorization_ranks_seen_pairs_first(tmp_path: Path) -> None:
    lines = [f"{group}{n}\tx\t$ARG1 {group} {p} $ARG2\t1" for group in "ab" for n in range(6) for p in range(4)]
    loaded = matrix(tmp_path, lines)
    settings = FactorizationConfig(dim=16, num_epochs=60, batch_size=64)
    rows, pairs = factorize(loaded, settings, seed=1)
    scores = rows @ pairs.T
    row = loaded.patterns.index("$ARG1 a 0 $ARG2")
    own = loaded.pairs_of(row)
    others = np.setdiff1d(np.arange(len(loaded.names)), own)
    assert scores[row, own].mean() > scores[row, others].mean() + 1.0


def test_training_teaches_which_argument_is_which_and_leaves_symmetric_relations(tmp_path: Path) -> None:
    model = load(make_toy_relation_checkpoint(tmp_path / "toy"), RelationModel)
    for relation, patterns in TOY_RELATIONS.items():
        row = model.relations.names.index(relation)
        centre = model.relations.facets[row].mean(axis=0)
        given = model.encode(patterns)
        other = model.encode([" ".join(mirrored(pattern.split())) for pattern in patterns])
        gains = (given @ centre).max(axis=1) - (other @ centre).max(axis=1)
        if relation == "spouse":
            assert abs(gains).max() < 0.2
        else:
            assert gains.min() > 0.1
    assert model.relations.details[model.relations.names.index("spouse")].symmetric


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
    return read_entailment(write_lines(tmp_path / "labelled.tsv", TOY_ENTAILMENT))


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
        ([TOY_ENTAILMENT[0], "?\t$ARG1 a $ARG2\t$ARG1 b $ARG2\t1\t1"], r"line 2: expected label"),
        ([TOY_ENTAILMENT[0], ">\t$ARG1 a\t$ARG1 b $ARG2\t1\t1"], "once in each pattern"),
        ([TOY_ENTAILMENT[0], TRIPLES[0]], "expected label"),
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
