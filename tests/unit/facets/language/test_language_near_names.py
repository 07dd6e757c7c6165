"""Names that a mistyped one may stand for."""

import pytest

from facets.language.near_names import NearNames

NAMES = ["Noam Chomsky", "Karen Sp\u00e4rck Jones", "Kevin Knight", "Kathleen McKeown", "birthPlace", "placeOfBirth"]
NEAR = NearNames(NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Noam Chomski", "Noam Chomsky"),
        ("KNIGHT, KEVIN", "Kevin Knight"),
        ("K. Knight", "Kevin Knight"),
        ("knight", "Kevin Knight"),
        ("karen sparck-jones", "Karen Sp\u00e4rck Jones"),
        ("kathleen mckeown", "Kathleen McKeown"),
        ("birth_place", "birthPlace"),
        ("place of birth", "placeOfBirth"),
    ],
)
def test_the_meant_name_comes_first(text: str, expected: str) -> None:
    assert NAMES[NEAR.find(text, top_k=3)[0]] == expected


def test_among_names_of_the_same_words_the_one_in_that_order_comes_first() -> None:
    near = NearNames(["author 1-2", "Author 2-1", "author 1-2"])
    assert near.find("author 2-1", top_k=3) == [1, 0, 2]
    assert near.find("author 1-2", top_k=3) == [0, 2, 1]


def test_at_most_top_k_names_come_back_in_their_order() -> None:
    near = NearNames(["Lee A", "Lee A", "Lee B", "Lee C"])
    assert near.find("Lee A", top_k=2) == [0, 1]
    assert NearNames([]).find("Lee", top_k=2) == []
