"""Gazetteers and spans of entities."""

import json
import shutil
from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from facets.errors import InvalidInputError, NotFoundError
from facets.model.loading import load
from facets.relations import EntityType, RelationEngine
from facets.relations.entities import Gazetteer
from facets.relations.model import RelationModel
from facets.relations.recognizer import SpacyEntities
from facets.relations.tables import RelationDetails, refused_types

PIECES = st.text(alphabet="aB 1_,-\u00e9\ufdd0\ufdd1\U0001f600", min_size=1, max_size=4)


def obvious_find(names: list[str], text: str) -> list[tuple[int, int, int]]:
    """Every name at every place, then the longest from the left."""
    found = []
    for number, name in enumerate(names):
        for start in range(len(text) - len(name) + 1):
            end = start + len(name)
            inside = text[start - 1 : start].isalnum() and text[start].isalnum()
            inside |= text[end - 1].isalnum() and text[end : end + 1].isalnum()
            if text.startswith(name, start) and not inside:
                found.append((start, -end, number))
    chosen: list[tuple[int, int, int]] = []
    for start, negative_end, number in sorted(found):
        if not chosen or start >= chosen[-1][1]:
            chosen.append((start, -negative_end, number))
    return chosen


@given(st.lists(PIECES, max_size=6), st.lists(PIECES, max_size=12))
def test_gazetteer_equals_a_search_of_every_position(pieces: list[str], text: list[str]) -> None:
    names = list(dict.fromkeys(name for name in pieces if any(map(str.isalnum, name))))
    whole = "".join(text)
    assert Gazetteer(names).find_names(whole) == obvious_find(names, whole)


def test_repetitive_long_names_are_fast() -> None:
    """A full automaton of one such name has a quadratic number of steps to make; here are two hundred."""
    names = [f"{number} " + "x " * 490 for number in range(200)]
    assert Gazetteer(names).find_names("7 " + "x " * 490) == [(0, 982, 7)]


def test_an_endless_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at most 1000 characters, got 40000") as caught:
        Gazetteer(["York", "York", "x" * 40_000])
    assert caught.value.field == "names[2]"


def test_spacy_entities_do_not_depend_on_how_much_is_read_at_a_time(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ann"}])
    nlp.to_disk(tmp_path / "pipeline")
    texts = ["Then Ann came. " * 9, "", "Ann left."] * 5
    few, many = (
        SpacyEntities(str(tmp_path / "pipeline"), chars_at_a_time=chars).find(texts) for chars in (300, 20_000)
    )
    assert few == many
    assert sum(map(len, many)) == 50


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
    return RelationEngine(load(detailed, RelationModel))


def test_details_are_saved_and_listed(engine: RelationEngine, detailed: Path) -> None:
    copy = detailed.with_name("copy")
    engine.model.save(copy)
    listed = {info.name: info for info in RelationEngine(load(copy, RelationModel)).relations()}
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
    texts = ["France is ruled from Paris."]
    [(_, [tail])] = engine.fill_slots([("Paris", "capitalOf")], texts, spans=NAMES.find(texts))
    assert (tail.tail, tail.mentions[0].pair.head.text) == ("France", "France")


def test_a_symmetric_relation_is_found_once_in_the_order_of_the_text(engine: RelationEngine) -> None:
    for text in ("Ann is married to Bob.", "Bob wed Ann."):
        [pairs] = engine.extract([text], spans=NAMES.find([text]), max_relations_per_pair=None, relations=["spouse"])
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
