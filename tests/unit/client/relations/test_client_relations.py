"""Methods of the clients about relations."""

import pytest
from facets_client import AlreadyExistsError, NotFoundError, PairLimits
from fake_relations import BORN, NAMES, RELATIONS, TEXT, fake_probability


def test_relations_of_many_texts_in_order_over_several_requests(client, world):
    texts = [f"{TEXT} {i}" for i in range(10)]
    found = client.extract_relations(texts, gazetteer=NAMES, top_k=2, evidence=True)
    assert world.count("ExtractRelations") == 3  # at most four texts a request
    assert [item.num_pairs for item in found] == [2] * 10
    assert [entity.text for entity in found[3].entities] == NAMES and found[3].entities[0].type == "person"
    assert found[3].num_not_asserted == 0
    pair = found[7].pairs[0]
    assert (pair.head.text, pair.tail.text) == tuple(NAMES)
    assert texts[7][pair.tail.start : pair.tail.end] == "Paris"
    scores = pair.pattern_score.relations
    assert [score.probability for score in scores] == sorted((s.probability for s in scores), reverse=True)
    assert scores[0].meeting.cosine == 0.5
    assert pair.pattern_score.facets[0].relations[0].relation == "birthPlace"
    assert pair.relations == tuple(score for score in scores if score.accepted)
    assert {score.universal_schema_score for score in scores} <= {None, 0.5}


def test_spans_and_options_travel(client, world):
    client.extract_relations(
        [TEXT],
        spans=[[(0, 10, "person"), (23, 28)]],
        entity_source="spans",
        relations=["spouse"],
        pair_limits=PairLimits(max_tokens_between=5),
        include_unrelated=True,
        max_relations_per_pair=3,
        model="m",
    )
    sent = world.calls[-1][1]
    assert sent.max_relations_per_pair == 3
    assert [(span.start, span.end, span.type) for span in sent.texts[0].entities] == [(0, 10, 1), (23, 28, 0)]
    assert (sent.entity_source, sent.model, list(sent.relations)) == (1, "m", ["spouse"])
    assert sent.pair_limits.max_tokens_between == 5 and not sent.pair_limits.HasField("max_pairs")
    assert not sent.HasField("top_k") and sent.include_unrelated


def test_relations_say_what_they_mean(client):
    spouse = client.list_relations()[-1]
    assert (spouse.name, spouse.symmetric, spouse.example) == ("spouse", True, "[Ann] wed {Bo}.")
    assert (spouse.aliases, spouse.head_types) == (("marriedTo",), ("person",))
    (pattern,) = client.score_relations([BORN], relations=["spouse"], evidence=True)
    assert pattern.relations[0].known_pairs == (("Ann", "Bo"),)


def test_slots_of_several_requests_each_with_all_texts(client, world):
    texts = [TEXT, f"{TEXT} Again."]
    slots = [(NAMES[0], relation) for relation in RELATIONS]
    found = client.fill_slots(slots, texts, gazetteer=NAMES)
    assert world.count("FillSlots") == 2  # at most two slots a request
    assert all(len(request.texts) == 2 for name, request in world.calls if name == "FillSlots")
    assert [[tail.tail for tail in tails] for tails in found] == [["Paris", "Paris"]] * 3
    assert [tail.mentions[0].text for tail in found[0]] == [0, 1]


def test_patterns_in_order_over_several_requests(client, world):
    patterns = [f"$ARG1 {i} $ARG2" for i in range(8)]
    found = client.score_relations(patterns)
    assert world.count("ScoreRelations") == 2
    assert [score.pattern for score in found] == patterns
    best = max(fake_probability(patterns[3], name) for name in RELATIONS)
    assert found[3].relations[0].probability == pytest.approx(best)
    assert (found[3].best is None) == (best < 0.5)


def test_many_scores_make_requests_smaller(make_client, world):
    world.max_relation_scores = 6
    client = make_client()
    client.score_relations([f"$ARG1 {i} $ARG2" for i in range(8)], relations=list(RELATIONS))
    assert world.count("ScoreRelations") == 4


def test_entailment_in_the_order_of_the_pairs(client, world):
    pairs = [(f"$ARG1 {i} $ARG2", BORN) for i in range(5)]
    found = client.detect_entailment(pairs)
    assert world.count("DetectEntailment") == 2
    assert [result.premise for result in found] == [premise for premise, _ in pairs]
    assert (found[0].label, found[0].confidence, found[0].direction) == ("entailed_by", 0.625, 0.5)


def test_relations_are_added_listed_and_deleted(client):
    added = client.add_relation("mentor", ["$ARG1 taught $ARG2"], threshold=0.0)
    assert (added.threshold, added.added, added.examples) == (0.0, True, ("$ARG1 taught $ARG2",))
    assert [relation.name for relation in client.list_relations()] == [*RELATIONS, "mentor"]
    with pytest.raises(AlreadyExistsError):
        client.add_relation("mentor", [BORN])
    assert client.delete_relation("mentor") == added
    with pytest.raises(NotFoundError):
        client.delete_relation("mentor")
