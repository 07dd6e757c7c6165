from pathlib import Path

import pytest
from facets_lab.relations.catalogue import RelationCatalogue, read_phrases
from facets_lab.relations.data import Cell, read_cells
from facets_lab.relations.facts import facts_of_cells, write_types
from facets_lab.training.__main__ import main

from facets.errors import ConfigError, InvalidInputError
from facets.relations import EntityType

TYPES = {
    "Ann Lee": EntityType.PERSON,
    "Bob Ray": EntityType.PERSON,
    "Ann": EntityType.PERSON,
    "Oslo": EntityType.PLACE,
    "Norway": EntityType.PLACE,
    "Acme": EntityType.ORGANIZATION,
}


def entry(name: str, head: list[str], tail: list[str], **more: object) -> dict[str, object]:
    return {"name": name, "head": head, "tail": tail, "example": "[A] is {B}.", "description": "d"} | more


CATALOGUE = RelationCatalogue(
    relation=[
        entry("birthPlace", ["person"], ["place"]),
        entry("birthDate", ["person"], ["date"]),
        entry("club", ["person"], ["organization"]),
        entry("party", ["person"], ["organization"]),
        entry("spouse", ["person"], ["person"], symmetric=True),
        entry("location", ["place"], ["place"]),
    ]
)
PHRASES = {
    "$ARG1 was born in $ARG2": ["birthPlace", "birthDate"],
    "$ARG1 joined $ARG2": ["club", "party"],
    "$ARG1 plays for $ARG2": ["club"],
    "$ARG1 married $ARG2": ["spouse"],
    "$ARG1 , $ARG2": ["location"],
    "$ARG1 lies in $ARG2": ["location"],
}


def facts(*cells: tuple[str, str, str, int]) -> list[Cell]:
    return facts_of_cells(cells, PHRASES, CATALOGUE, TYPES)


def test_kinds_of_the_arguments_choose_between_the_relations_of_a_phrase() -> None:
    said = "$ARG1 was born in $ARG2"
    date = "3 May 1950"
    assert facts(("Ann Lee", "Oslo", said, 2), ("Ann Lee", date, said, 1), ("Oslo", "Ann Lee", said, 1)) == [
        ("Ann Lee", date, "kb:birthDate", 1),
        ("Ann Lee", "Oslo", "kb:birthPlace", 2),
    ]


def test_a_day_in_brackets_is_a_birth_and_a_year_is_not() -> None:
    phrases = PHRASES | {"$ARG1 ( $ARG2": ["birthDate"]}
    cells = [("Ann Lee", "1950-05-03", "$ARG1 ( $ARG2", 1), ("Bob Ray", "1950", "$ARG1 ( $ARG2", 3)]
    found = facts_of_cells(cells, phrases, CATALOGUE, TYPES)
    assert found == [("Ann Lee", "1950-05-03", "kb:birthDate", 1)]


def test_what_is_said_both_ways_round_is_left_out_unless_symmetric() -> None:
    lies, married = "$ARG1 lies in $ARG2", "$ARG1 married $ARG2"
    assert facts(("Oslo", "Norway", lies, 1), ("Norway", "Oslo", lies, 1)) == []
    assert facts(("Bob Ray", "Ann Lee", married, 1), ("Ann Lee", "Bob Ray", married, 1)) == [
        ("Ann Lee", "Bob Ray", "kb:spouse", 2)
    ]


def test_facts_are_read_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "cells.tsv").write_text("Ann Lee\tOslo\t$ARG1 was born in $ARG2\t2\n")
    write_types(tmp_path / "types.tsv", TYPES)
    command = ["relation-facts", "--cells", str(tmp_path / "cells.tsv"), "--out", str(tmp_path / "facts.tsv")]
    assert main(command) == 0
    assert list(read_cells(tmp_path / "facts.tsv")) == [("Ann Lee", "Oslo", "kb:birthPlace", 2)]


CONFIGS = Path(__file__).parents[4] / "lab" / "configs"


CAPITAL = {
    "name": "capital",
    "aliases": ["capitalCity"],
    "inverse_aliases": ["capitalOf"],
    "head": ["place"],
    "tail": ["place"],
    "example": "{Paris} is the capital of [France].",
    "description": "Where a government is.",
}


def test_names_aliases_and_inverses_lead_to_the_canonical_relation() -> None:
    catalogue = RelationCatalogue(relation=[CAPITAL])
    assert catalogue.meanings() == {
        "capital": ("capital", False),
        "capitalCity": ("capital", False),
        "capitalOf": ("capital", True),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"head": ["town"]}, "head"),
        ({"head": []}, "head"),
        ({"example": "Paris is the capital of France."}, "example"),
        ({"aliases": ["capitalOf"]}, "one meaning"),
        ({"alias": ["capitalOf"]}, "relation.0.alias is no setting: did you mean aliases"),
    ],
)
def test_bad_entries_are_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RelationCatalogue(relation=[CAPITAL | change])


def test_shipped_catalogue_names_the_relations_people_try_and_has_phrases_for_all() -> None:
    catalogue = RelationCatalogue.from_toml(CONFIGS / "relations-en.toml")
    phrases = read_phrases(CONFIGS / "relation-phrases.tsv")
    assert set(phrases) == {entry.name for entry in catalogue.relation}
    tried = "birthPlace deathPlace capital spouse founder employer location director author isPartOf"
    assert all(len(phrases[name]) >= 15 for name in tried.split())
    assert catalogue.meanings()["authorOf"] == ("author", True)
    assert next(e for e in catalogue.relation if e.name == "spouse").symmetric
    assert catalogue.relation[0].head == [EntityType.PERSON]


def test_shipped_patterns_without_a_relation_are_patterns_and_no_phrases(tmp_path: Path) -> None:
    lines = (CONFIGS / "relation-none-patterns.txt").read_text(encoding="utf-8").splitlines()
    phrases = {phrase for own in read_phrases(CONFIGS / "relation-phrases.tsv").values() for phrase in own}
    assert len(lines) >= 200
    assert not phrases & set(lines)
    (tmp_path / "none.tsv").write_text("".join(f"none\t{line}\n" for line in lines), encoding="utf-8")
    assert len(read_phrases(tmp_path / "none.tsv")["none"]) == len(lines)
    (tmp_path / "bad.tsv").write_text("none\t$ARG1 met\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"line 1"):
        read_phrases(tmp_path / "bad.tsv")
