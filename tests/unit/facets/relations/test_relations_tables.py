"""What relations mean: in files, in requests by other names, in the list."""

import json
import shutil
from pathlib import Path

import pytest

from facets.errors import InvalidInputError, NotFoundError
from facets.relations import EntityType, Gazetteer, RelationEngine
from facets.relations.tables import RelationDetails, refused_types

DETAILS = {
    "capital": {
        "description": "Where a government is.",
        "example": "{Paris} is the capital of [France].",
        "aliases": ["capitalCity"],
        "inverse_aliases": ["capitalOf"],
        "head": ["place"],
        "tail": ["place"],
        "pairs": [["France", "Paris"]],
    },
    "spouse": {"symmetric": True, "aliases": ["married to"]},
}
NAMES = Gazetteer(["Ann", "Bob", "Paris", "France"])


@pytest.fixture(scope="module")
def detailed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy with details of two relations."""
    copy = tmp_path_factory.mktemp("detailed") / "toy"
    shutil.copytree(folder, copy)
    shutil.copytree(folder.parent / "toy-run" / "encoder", copy.parent / "toy-run" / "encoder")
    change(copy, lambda relation: relation.update(DETAILS.get(relation["name"], {})))
    return copy


def change(folder: Path, edit) -> None:
    file = folder / "relations.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    for relation in values["relations"]:
        edit(relation)
    file.write_text(json.dumps(values), encoding="utf-8")


@pytest.fixture(scope="module")
def engine(detailed: Path) -> RelationEngine:
    return RelationEngine.load(detailed)


def test_details_are_saved_and_listed(engine: RelationEngine, detailed: Path) -> None:
    copy = detailed.with_name("copy")
    engine.model.save(copy)
    listed = {info.name: info for info in RelationEngine.load(copy).relations()}
    assert RelationDetails.from_dict(listed["capital"].to_dict()) == RelationDetails.from_dict(
        DETAILS["capital"] | {"symmetric": False}
    )
    assert listed["spouse"].symmetric
    assert listed["employer"].head_types == (EntityType.PERSON,)


@pytest.mark.parametrize("name", ["capital", "capitalCity", "capital city", "Capital_City"])
def test_aliases_name_the_relation_however_they_are_spelled(engine: RelationEngine, name: str) -> None:
    [scores] = engine.score(["$ARG2 is the capital of $ARG1"], [name])
    assert [score.relation for score in scores.relations] == ["capital"]


def test_two_names_of_one_relation_are_refused(engine: RelationEngine) -> None:
    with pytest.raises(InvalidInputError, match=r"'capitalCity' and 'capital'.*the same"):
        engine.score(["$ARG1 met $ARG2"], ["capital", "capitalCity"])
    with pytest.raises(NotFoundError, match="near names: capital"):
        engine.score(["$ARG1 met $ARG2"], ["capitol"])


def test_an_inverse_alias_is_scored_the_other_way_round(engine: RelationEngine) -> None:
    [straight] = engine.score(["$ARG1 is ruled from $ARG2"], ["capital"])
    [inverse] = engine.score(["$ARG2 is ruled from $ARG1"], ["capitalOf", "employer"])
    asked = {score.relation: score for score in inverse.relations}
    assert set(asked) == {"capitalOf", "employer"}
    assert asked["capitalOf"].score == pytest.approx(straight.relations[0].score, abs=1e-5)


def test_a_slot_of_an_inverse_alias_gives_heads(engine: RelationEngine) -> None:
    [tail] = engine.fill_slot("Paris", "capitalOf", ["France is ruled from Paris."], finder=NAMES)
    assert (tail.tail, tail.mentions[0].pair.head.text) == ("France", "France")


def test_a_symmetric_relation_is_found_once_in_the_order_of_the_text(engine: RelationEngine) -> None:
    for text in ("Ann is married to Bob.", "Bob wed Ann."):
        [pairs] = engine.extract([text], finder=NAMES, max_relations_per_pair=None, relations=["spouse"])
        [pair] = [pair for pair in pairs if pair.relations]
        assert text.startswith(pair.head.text)


def test_evidence_names_training_patterns_and_known_pairs(engine: RelationEngine) -> None:
    [scores] = engine.score(["$ARG1 is ruled from $ARG2"], ["capital", "spouse"])
    best = scores.best
    assert best.relation == "capital" and best.known_pairs == (("France", "Paris"),)
    assert best.similar_patterns[0].pattern == "$ARG1 is ruled from $ARG2"
    assert best.similar_patterns[0].score == pytest.approx(1.0, abs=1e-3)
    [scores] = engine.score(["$ARG1 is ruled from $ARG2"], ["capital"], evidence=False)
    assert scores.best.similar_patterns == ()


BORN = RelationDetails(head_types=(EntityType.PERSON,), tail_types=(EntityType.PLACE,))
BORN_ON = RelationDetails(head_types=(EntityType.PERSON,), tail_types=(EntityType.DATE, EntityType.NUMBER))
COLUMNS = {kind: column for column, kind in enumerate(EntityType)}


def test_dates_are_refused_where_none_is_taken_and_others_where_only_dates_are() -> None:
    _, tails = refused_types([BORN, BORN_ON, RelationDetails()])
    assert tails[:, COLUMNS[EntityType.DATE]].tolist() == [True, False, False]
    assert tails[:, COLUMNS[EntityType.PLACE]].tolist() == [False, True, False]
    assert not tails[:, COLUMNS[EntityType.UNKNOWN]].any()
    assert refused_types([]).shape == (2, 0, len(COLUMNS))
