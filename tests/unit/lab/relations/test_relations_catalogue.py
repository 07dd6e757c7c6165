from pathlib import Path

import pytest
from facets_lab.relations.catalogue import RelationCatalogue, read_phrases

from facets.errors import ConfigError, InvalidInputError
from facets.relations import EntityType

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
    catalogue = RelationCatalogue.from_dict({"relation": [CAPITAL]})
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
        ({"alias": ["capitalOf"]}, "relation.0.alias is no setting; there are name, aliases"),
    ],
)
def test_bad_entries_are_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RelationCatalogue.from_dict({"relation": [CAPITAL | change]})


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
