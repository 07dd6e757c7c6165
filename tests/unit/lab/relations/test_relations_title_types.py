import pytest
from facets_lab.relations.title_types import type_of_opening

from facets.relations import EntityType


@pytest.mark.parametrize(
    ("title", "opening", "kind"),
    [
        ("Ann Lee", "Ann Lee (born 3 May 1950) is an English singer, dancer and model.", EntityType.PERSON),
        ("Cy Poe", "Cy Poe (3 May 1850 - 4 June 1901) made clocks.", EntityType.PERSON),
        ("Ottawa", "Ottawa ( ) is the capital city of Canada.", EntityType.PLACE),
        ("Oslo Bank", "Oslo Bank was one of the largest banks in Norway.", EntityType.ORGANIZATION),
        ("Dune", "Dune is a 1965 science fiction novel by Frank Herbert.", EntityType.WORK),
        ("Alien (film)", "In 1979 it came out.", EntityType.WORK),
        ("Battle of Jena", "On 14 October the armies met.", EntityType.EVENT),
        ("Czech", "Czech is a West Slavic language spoken by ten million.", EntityType.GROUP),
        ("Kiwi", "The kiwi is a type of bird found in New Zealand.", EntityType.THING),
        ("Odd", "Odd says nothing of itself.", EntityType.UNKNOWN),
    ],
)
def test_type_of_opening_reads_the_noun_behind_the_copula(title: str, opening: str, kind: EntityType) -> None:
    assert type_of_opening(title, opening) is kind
