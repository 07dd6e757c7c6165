import numpy as np
import pytest
from toys import toy_word_pieces

from facets.language.wordnet import wordnet
from facets.relations.entailment import word_features
from facets.relations.frames import Finding, Frames, frames
from facets.relations.model import PatternPieces
from facets.relations.tables import WORD_FEATURES
from facets.relations.wording import Wording, read_clause, read_wording

LINES = """
# a comment
buy | buy; purchase | own | want
own | own; have; ~belong to
want | want
spouse | is married to; ~is married to; marry; ~marry
sell to | sell to; ~buy from
sue | sue; take . to court
sell | sell | | own; !own
older | older than; ~younger than | !~older
leader | leader of; head of
""".splitlines()


def read(pattern: str) -> Wording:
    return read_wording(pattern.split(), wordnet())


@pytest.fixture(scope="module")
def table() -> Frames:
    return Frames(LINES, wordnet())


@pytest.mark.parametrize(
    ("pattern", "words", "is_exchanged", "tense"),
    [
        ("$ARG1 bought $ARG2", "buy .", False, "past"),
        ("$ARG2 was bought by $ARG1", "buy .", False, "past"),
        ("$ARG1 has been bought by $ARG2", "buy .", True, "past"),
        ("$ARG1 , acquired by $ARG2", "acquire .", True, "past"),
        ("$ARG1 managed to buy $ARG2", "buy .", False, "past"),
        ("$ARG1 is the owner of $ARG2", "owner of .", False, "present"),
        ("$ARG1 is $ARG2 's wife", "wife of .", False, "present"),
        ("$ARG1 's wife is $ARG2", "wife of .", True, "present"),
        ("$ARG1 took $ARG2 to court", "take . to court", False, "past"),
        ("$ARG1 is playing for $ARG2", "play for .", False, "present"),
    ],
)
def test_a_pattern_is_read_as_a_clause(pattern: str, words: str, is_exchanged: bool, tense: str) -> None:
    clause = read_clause(pattern.split(), wordnet())
    assert " ".join(forms[0] for forms in clause.words) == words
    assert (clause.is_exchanged, clause.tense) == (is_exchanged, tense)


@pytest.mark.parametrize(
    ("premise", "hypothesis", "forward", "backward"),
    [
        ("$ARG1 bought $ARG2", "$ARG1 owns $ARG2", "implied", "apart"),
        ("$ARG1 bought $ARG2", "$ARG2 belongs to $ARG1", "implied", "apart"),
        ("$ARG1 bought $ARG2", "$ARG2 was purchased by $ARG1", "implied", "implied"),
        ("$ARG1 bought $ARG2", "$ARG2 bought $ARG1", "apart", "apart"),
        ("$ARG1 bought $ARG2", "$ARG1 wanted $ARG2", "implied", "apart"),
        ("$ARG1 bought $ARG2", "$ARG1 wants $ARG2", "apart", "apart"),
        ("$ARG1 is married to $ARG2", "$ARG2 is married to $ARG1", "implied", "implied"),
        ("$ARG1 sold the house to $ARG2", "$ARG2 bought the house from $ARG1", "implied", "implied"),
        ("$ARG1 sold the house to $ARG2", "$ARG2 bought the boat from $ARG1", "apart", "apart"),
        ("$ARG1 sued $ARG2", "$ARG1 took $ARG2 to court", "implied", "implied"),
        ("$ARG1 bought $ARG2 in 1990", "$ARG1 bought $ARG2", "implied", "apart"),
        ("$ARG1 may have bought $ARG2", "$ARG1 owns $ARG2", "apart", "apart"),
        ("$ARG1 bought $ARG2", "$ARG1 does not own $ARG2", "apart", "apart"),
        ("$ARG1 is the first leader of $ARG2", "$ARG1 is head of $ARG2", "implied", "apart"),
        ("$ARG1 is the daughter of the leader of $ARG2", "$ARG1 is head of $ARG2", "", ""),
        ("$ARG1 sold shares in $ARG2", "$ARG1 owned $ARG2", "", ""),
        ("$ARG1 persecuted $ARG2", "$ARG1 was persecuted by $ARG2", "apart", "apart"),
    ],
)
def test_the_table_says_what_follows(table: Frames, premise: str, hypothesis: str, forward: str, backward: str) -> None:
    first, second = read(premise), read(hypothesis)
    assert _said(table.compare(first, second)) == forward
    assert _said(table.compare(second, first)) == backward


def _said(finding: Finding) -> str:
    return "implied" if finding.implied else "apart" if finding.apart else ""


def test_a_way_of_going_implies_going_but_not_the_reverse() -> None:
    forward = frames().compare(read("$ARG1 strolled to $ARG2"), read("$ARG1 went to $ARG2"))
    assert 0.5 <= forward.implied <= 1.0
    assert not frames().compare(read("$ARG1 went to $ARG2"), read("$ARG1 tiptoed to $ARG2")).implied


@pytest.mark.parametrize("line", ["a | b | c | d | e", "a", "a | b | nothing", "a | ~"])
def test_a_bad_line_of_the_table_is_reported(line: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Frames([line], wordnet())


@pytest.mark.parametrize(
    ("premise", "hypothesis", "contradicts"),
    [
        ("$ARG1 sold $ARG2", "$ARG1 owns $ARG2", True),
        ("$ARG1 sold $ARG2", "$ARG1 owned $ARG2", False),
        ("$ARG1 is older than $ARG2", "$ARG1 is younger than $ARG2", True),
        ("$ARG1 is older than $ARG2", "$ARG2 is younger than $ARG1", False),
        ("$ARG1 bought $ARG2", "$ARG1 sold $ARG2", False),
        ("$ARG1 may be older than $ARG2", "$ARG1 is younger than $ARG2", False),
    ],
)
def test_exclusions_contradict_in_both_directions(
    table: Frames, premise: str, hypothesis: str, contradicts: bool
) -> None:
    first, second = read(premise), read(hypothesis)
    assert (table.contradiction(first, second)[0] > 0.5) is contradicts
    assert table.contradiction(first, second) == table.contradiction(second, first)


def features_of(premise: str, hypothesis: str) -> dict[str, tuple[float, float]]:
    found = word_features([tuple(premise.split())], [tuple(hypothesis.split())])
    columns = zip(found.forward[0].tolist(), found.backward[0].tolist(), strict=True)
    return dict(zip(WORD_FEATURES, columns, strict=True))


@pytest.mark.parametrize(
    ("premise", "hypothesis", "exchanged"),
    [
        ("$ARG1 defeated $ARG2", "$ARG1 was defeated by $ARG2", 1.0),
        ("$ARG1 defeated $ARG2", "$ARG2 was defeated by $ARG1", 0.0),
        ("$ARG1 is the father of $ARG2", "$ARG2 is the father of $ARG1", 1.0),
        ("$ARG1 is married to $ARG2", "$ARG2 is married to $ARG1", 0.0),
        ("$ARG1 is made of $ARG2", "$ARG2 makes $ARG1", 0.0),
    ],
)
def test_exchanged_roles_are_seen_through_the_voice(premise: str, hypothesis: str, exchanged: float) -> None:
    assert features_of(premise, hypothesis)["roles_exchanged"] == (exchanged, exchanged)


def test_opposites_are_converse_when_the_arguments_are_exchanged() -> None:
    assert features_of("$ARG1 is the wife of $ARG2", "$ARG2 is the husband of $ARG1")["converse"] == (1.0, 1.0)
    assert features_of("$ARG1 loves $ARG2", "$ARG1 hates $ARG2")["opposite"] == (1.0, 1.0)


def test_a_long_pattern_loses_its_middle_and_never_an_argument() -> None:
    pieces = toy_word_pieces()
    words = ["music"] * 30
    for place in (1, 10, 15, 16, 30):
        pattern = ["$ARG2", *words]
        pattern.insert(place, "$ARG1")
        [row] = PatternPieces(pieces, 12).rows([pattern])
        assert len(row) == 12
        assert np.isin([len(pieces), len(pieces) + 1], row).all()
    middle = [*words, "$ARG1", "$ARG2", *words]
    [row] = PatternPieces(pieces, 12).rows([middle])
    assert np.isin([len(pieces), len(pieces) + 1], row).all()
    assert len(row) == 12
