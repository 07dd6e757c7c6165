import pytest

from facets.relations.wording import Wording, read_wording
from facets.relations.wordnet import wordnet


def read(pattern: str) -> Wording:
    return read_wording(tuple(pattern.split()), wordnet())


@pytest.mark.parametrize(
    ("pattern", "acts"),
    [
        ("$ARG1 wrote $ARG2", True),
        ("$ARG2 wrote $ARG1", False),
        ("$ARG1 was written by $ARG2", False),
        ("$ARG2 was written in 1900 by $ARG1", True),
        ("$ARG2 , written by $ARG1", True),
        ("$ARG1 is near a lake by $ARG2", True),
    ],
)
def test_the_voice_says_who_acts(pattern: str, acts: bool) -> None:
    assert read(pattern).head_acts is acts


@pytest.mark.parametrize(
    "pattern",
    [
        "$ARG1 may have been killed by $ARG2",
        "$ARG1 tried to restrain $ARG2",
        "$ARG1 was allegedly born in $ARG2",
        "$ARG1 is believed to be in $ARG2",
    ],
)
def test_what_may_be_is_hedged(pattern: str) -> None:
    assert read(pattern).is_hedged
    assert not read("$ARG1 moved to $ARG2").is_hedged


def test_content_leaves_function_words_out() -> None:
    assert read("$ARG1 was also the largest city of $ARG2").content == ("largest", "city")
    assert read("$ARG1 is in $ARG2").content == ()


def test_participles_keep_their_preposition() -> None:
    assert read("$ARG1 is made of $ARG2").frame == "of"
    assert read("$ARG1 is made by $ARG2").frame == read("$ARG1 moved to $ARG2").frame == ""


def test_mutual_and_negated_words_are_seen() -> None:
    assert read("$ARG1 is married to $ARG2").is_mutual
    assert read("$ARG1 never met $ARG2").is_negated


def test_of_thousands_of_words_the_first_count() -> None:
    """Each is compared with each of the other pattern: 40 million for two patterns that a request may hold."""
    letters = "abcdefghij"
    long = ["$ARG1", *("w" + first + second + third for first in letters for second in letters for third in letters)]
    assert len(read(" ".join([*long, "$ARG2"])).content) == 64
