import pytest
from facets_lab.relations.training.capitals import CapitalizedNames

from facets.relations import EntityType


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("In Paris he met Marie Curie's husband Pierre.", ["Paris", "Marie Curie", "Pierre"]),
        ("The U.S. Navy left the Bank of England.", ["U.S. Navy", "Bank of England"]),
        ("It rained.", []),
        ("Then came Ludwig van Beethoven.", ["Ludwig van Beethoven"]),
        ('Her "Old Rain", a novel, sold 12,500 copies.', ['"Old Rain"', "12,500"]),
        ("", []),
    ],
)
def test_names_are_runs_of_capitals(text: str, names: list[str]) -> None:
    [spans] = CapitalizedNames().find([text])
    assert [text[span.start : span.end] for span in spans] == names


def test_titles_dates_and_numbers_have_kinds() -> None:
    [spans] = CapitalizedNames().find(['On 2 February 1922 "Ulysses" came out in 1,000 copies in Paris.'])
    assert [span.type for span in spans] == [EntityType.DATE, EntityType.WORK, EntityType.NUMBER, EntityType.UNKNOWN]
