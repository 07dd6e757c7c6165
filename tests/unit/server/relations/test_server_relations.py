"""RelationService over gRPC, around the engine with a made model."""

import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from facets_proto.v1 import relations_pb2
from facets_server.relations.service import EntityFinders, EntitySource
from facets_server.runtime.config import RelationsConfig, ServerConfig
from grpc_health.v1 import health_pb2
from server_failures import failure
from server_fake_relations import NUM_FACETS, TRAINED, fake_relations
from server_fakes import limited

from facets.relations import engine, recognizer

TEXT = "Marie Curie was born in Warsaw . Pierre Curie is married to Marie Curie ."
NAMES = ("Marie Curie", "Pierre Curie", "Warsaw")
BORN = "$ARG1 was born in $ARG2"
INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND


@pytest.fixture(scope="module")
def stub(make_module_server):
    return make_module_server(others=[fake_relations()]).relations


@pytest.fixture(scope="module")
def small(make_module_server):
    return make_module_server(others=[fake_relations()], limits=limited(max_gazetteer_names=3)).relations


def text_of(text, *spans):
    return relations_pb2.RelationText(
        text=text, entities=[relations_pb2.EntitySpan(start=start, end=end) for start, end in spans]
    )


def extraction(*texts, **fields):
    return relations_pb2.ExtractRelationsRequest(texts=texts, **fields)


def returned(reply):
    return {
        (pair.head.text, score.relation, pair.tail.text)
        for text in reply.texts
        for pair in text.pairs
        for score in pair.pattern_score.relations
    }


def test_extraction_from_spans_shows_relations_with_offsets_and_confidence(stub):
    reply = stub.ExtractRelations(extraction(text_of(TEXT, (24, 30), (0, 11))), timeout=60)
    (pair,) = reply.texts[0].pairs
    assert TEXT[pair.head.start : pair.head.end] == pair.head.text == "Marie Curie"
    assert TEXT[pair.tail.start : pair.tail.end] == pair.tail.text == "Warsaw"
    assert TEXT[pair.sentence_start : pair.sentence_end].startswith("Marie Curie was born")
    (score,) = pair.pattern_score.relations
    assert (score.relation, score.accepted, score.probability) == ("birthPlace", True, 1.0)
    assert score.universal_schema_score == 1.0
    assert not score.HasField("meeting") and not pair.pattern_score.facets
    assert reply.texts[0].num_pairs == 2
    assert reply.model.name == "fake-relations"


def test_unrelated_pairs_and_rejected_relations_are_reported_when_asked_for(stub):
    request = extraction(text_of(TEXT), gazetteer_names=NAMES, include_unrelated=True, top_k=2, evidence=True)
    reply = stub.ExtractRelations(request, timeout=60)
    pairs = reply.texts[0].pairs
    assert len(pairs) == reply.texts[0].num_pairs == 4
    assert all(len(pair.pattern_score.relations) == 2 for pair in pairs)
    unrelated = next(pair for pair in pairs if pair.head.text == "Warsaw")
    assert not any(score.accepted for score in unrelated.pattern_score.relations)
    assert 0 <= unrelated.pattern_score.no_relation_probability <= 1
    assert all(score.HasField("meeting") for pair in pairs for score in pair.pattern_score.relations)
    assert [facet.facet for facet in unrelated.pattern_score.facets] == list(range(NUM_FACETS))


def test_calls_that_come_together_load_one_pipeline(monkeypatch):
    names, never = [], threading.Event()
    monkeypatch.setattr(recognizer, "SpacyEntities", lambda name: names.append(name) or never.wait(0.3))
    finders = EntityFinders(RelationsConfig(ner_pipeline="pipeline"))
    with ThreadPoolExecutor(4) as workers:
        for _ in range(4):
            workers.submit(finders.get, EntitySource.NER, (), has_spans=False)
    assert names == ["pipeline"]


def test_without_a_source_of_entities_the_server_says_what_to_give_or_install(make_server):
    config = ServerConfig(relations=RelationsConfig(ner_pipeline="en_core_nothing"))
    stub = make_server(others=[fake_relations()], config=config).relations
    found = failure(stub.ExtractRelations, extraction(text_of(TEXT)))
    assert found.code == grpc.StatusCode.FAILED_PRECONDITION
    assert "gazetteer_names" in found.message and "multifacet[entities]" in found.message
    request = extraction(text_of(TEXT), entity_source="ENTITY_SOURCE_GAZETTEER")
    assert failure(stub.ExtractRelations, request).code == grpc.StatusCode.FAILED_PRECONDITION
    assert returned(stub.ExtractRelations(extraction(text_of(TEXT), gazetteer_names=NAMES), timeout=60))


def test_the_server_s_own_gazetteer_finds_entities(make_server, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("\n".join(NAMES) + "\n\n", encoding="utf-8")
    config = ServerConfig(relations=RelationsConfig(gazetteer=names))
    stub = make_server(others=[fake_relations()], config=config).relations
    assert len(returned(stub.ExtractRelations(extraction(text_of(TEXT)), timeout=60))) == 2


def test_a_pipeline_on_the_server_finds_entities(make_server, tmp_path):
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "X", "pattern": name} for name in NAMES])
    pipeline.to_disk(tmp_path / "pipeline")
    config = ServerConfig(relations=RelationsConfig(ner_pipeline=str(tmp_path / "pipeline")))
    stub = make_server(others=[fake_relations()], config=config).relations
    for source in ("ENTITY_SOURCE_NER", "ENTITY_SOURCE_UNSPECIFIED"):
        reply = stub.ExtractRelations(extraction(text_of(TEXT), entity_source=source), timeout=60)
        assert len(returned(reply)) == 2


def counted(monkeypatch, owner, name):
    """Arguments of the calls of a method from now on."""
    method, calls = getattr(owner, name), []
    monkeypatch.setattr(owner, name, lambda given: calls.append(given) or method(given))
    return calls


def test_replies_are_bounded_before_patterns_are_scored(make_server, monkeypatch):
    served = fake_relations()
    stub = make_server(others=[served], limits=limited(max_relation_scores=5, max_relation_characters=300)).relations
    scored = counted(monkeypatch, served.engine.model, "encode_patterns")
    request = extraction(text_of(TEXT), gazetteer_names=NAMES, include_unrelated=True, top_k=3)
    assert failure(stub.ExtractRelations, request).fields == ["texts"]
    scoring = relations_pb2.ScoreRelationsRequest(patterns=[BORN] * 6, top_k=1)
    assert failure(stub.ScoreRelations, scoring).fields == ["patterns"]
    filling = slots({"head": "Warsaw", "relation": "spouse"}, {"head": "Marie Curie", "relation": "spouse"})
    assert failure(stub.FillSlots, filling).fields == ["slots"]
    assert not scored
    request.include_unrelated = False
    for message in ("left within the limit", "characters together, the limit is 300"):
        request.texts.extend([request.texts[0]] * 3)
        failed = failure(stub.ExtractRelations, request)
        assert failed.fields == ["texts"] and message in failed.message
    filling = slots({"head": "marie CURIE ", "relation": "spouse"})
    filling.texts.extend([text_of("Nobody . " * 100)] * 9)  # only the texts that name a head count
    assert stub.FillSlots(filling, timeout=60).slots[0].tails
    filling.texts.extend([filling.texts[0]] * 4)
    assert "texts that name a head have 365 characters together" in failure(stub.FillSlots, filling).message


def test_texts_of_slots_are_read_once_and_patterns_of_a_head_are_scored_once(make_server, monkeypatch):
    served = fake_relations()
    stub = make_server(others=[served]).relations
    read = counted(monkeypatch, engine, "sentences_of")
    scored = counted(monkeypatch, served.engine.model, "encode_patterns")
    asked = [{"head": head, "relation": relation} for relation in TRAINED for head in ("Pierre Curie", "Warsaw", "Bo")]
    filled = stub.FillSlots(slots(*asked), timeout=60).slots
    assert (read, len(scored)) == ([TEXT], 3)  # once for each head
    assert filled == [stub.FillSlots(slots(slot), timeout=60).slots[0] for slot in asked]


def test_slots_are_filled_best_first(stub):
    request = relations_pb2.FillSlotsRequest(
        slots=[{"head": "marie curie", "relation": "birthPlace"}, {"head": "Nobody", "relation": "spouse"}],
        texts=[text_of(TEXT), text_of("Marie Curie left Paris .")],
        gazetteer_names=[*NAMES, "Paris"],
    )
    reply = stub.FillSlots(request, timeout=60)
    best = reply.slots[0].tails[0]
    assert best.accepted and best.probability == 1.0
    assert (best.mentions[0].text, best.mentions[0].pair.tail.text) == (0, "Warsaw")
    assert {mention.text for tail in reply.slots[0].tails for mention in tail.mentions} == {0, 1}
    assert not reply.slots[1].tails
    scores = [tail.score for tail in reply.slots[0].tails]
    assert scores == sorted(scores, reverse=True)
    request.top_k = 1
    assert [len(slot.tails) for slot in stub.FillSlots(request, timeout=60).slots] == [1, 0]


def test_patterns_are_scored_against_all_or_some_relations(stub):
    reply = stub.ScoreRelations(relations_pb2.ScoreRelationsRequest(patterns=[BORN, "$ARG2 hired $ARG1"]), timeout=60)
    assert reply.scores[0].relations[0].relation == "birthPlace"
    assert [len(score.relations) for score in reply.scores] == [3, 3]
    assert [score.known for score in reply.scores] == [True, False]
    request = relations_pb2.ScoreRelationsRequest(patterns=[BORN], relations=["spouse"], evidence=True)
    (score,) = stub.ScoreRelations(request, timeout=60).scores
    assert [one.relation for one in score.relations] == ["spouse"]
    assert not score.relations[0].accepted
    assert not score.relations[0].HasField("universal_schema_score") or score.known
    assert score.relations[0].HasField("meeting")


def test_entailment_shows_both_directions(stub):
    pairs = [("$ARG1 , the beloved wife of $ARG2", "$ARG1 , wife of $ARG2"), ("$ARG1 was not born in $ARG2", BORN)]
    request = relations_pb2.DetectEntailmentRequest(pairs=[{"premise": one, "hypothesis": two} for one, two in pairs])
    results = stub.DetectEntailment(request, timeout=60).entailments
    labels = [relations_pb2.EntailmentLabel.Name(result.label) for result in results]
    assert labels == ["ENTAILMENT_LABEL_ENTAILS", "ENTAILMENT_LABEL_CONTRADICTS"]
    assert [result.negation_differs for result in results] == [False, True]
    for result in results:
        assert result.direction == pytest.approx(result.forward_score - result.backward_score)


def test_a_relation_is_added_by_examples_used_and_deleted(stub):
    adding = relations_pb2.AddRelationRequest(name="mentor", examples=["$ARG1 was taught by $ARG2"], threshold=0.25)
    added = stub.AddRelation(adding, timeout=60).relation
    listed = stub.ListRelations(relations_pb2.ListRelationsRequest(), timeout=60).relations
    assert [relation.name for relation in listed] == sorted([*TRAINED, "mentor"])
    assert (added.name, added.threshold, added.added, added.num_pairs) == ("mentor", 0.25, True, 0)
    scoring = relations_pb2.ScoreRelationsRequest(patterns=["$ARG1 was taught by $ARG2"], top_k=1)
    assert stub.ScoreRelations(scoring, timeout=60).scores[0].relations[0].relation == "mentor"
    assert failure(stub.AddRelation, adding).code == grpc.StatusCode.ALREADY_EXISTS
    deleted = stub.DeleteRelation(relations_pb2.DeleteRelationRequest(name="mentor"), timeout=60).relation
    assert deleted == added
    assert failure(stub.DeleteRelation, relations_pb2.DeleteRelationRequest(name="mentor")).code == (NOT_FOUND)


def test_a_server_without_a_model_for_relations_says_so(running):
    found = failure(running.relations.ScoreRelations, relations_pb2.ScoreRelationsRequest(patterns=[BORN]))
    assert (found.code, found.details["ResourceInfo"].resource_type) == (NOT_FOUND, "model")
    assert "--model" in found.message
    with pytest.raises(grpc.RpcError) as raised:
        running.health.Check(health_pb2.HealthCheckRequest(service="facets.v1.RelationService"), timeout=60)
    assert raised.value.code() == NOT_FOUND
    checked = running.health.Check(health_pb2.HealthCheckRequest(), timeout=60)
    assert checked.status == health_pb2.HealthCheckResponse.SERVING


def slots(*slots):
    return relations_pb2.FillSlotsRequest(slots=slots, texts=[text_of(TEXT)], gazetteer_names=NAMES)


def entailment(*pairs):
    return relations_pb2.DetectEntailmentRequest(pairs=[{"premise": one, "hypothesis": two} for one, two in pairs])


def addition(**fields):
    return relations_pb2.AddRelationRequest(**{"name": "x", "examples": [BORN], **fields})


@pytest.mark.parametrize(
    ("request_", "field", "part"),
    [
        (extraction(), "texts", "0 items"),
        (extraction(text_of(TEXT, (0, 11)), text_of(" ")), "texts[1].text", "has no words"),
        (extraction(text_of(TEXT, (0, 11), (24, 99))), "texts[0].entities[1]", "99"),
        (extraction(*[text_of(TEXT)] * 40, text_of(TEXT, (11, 0))), "texts[40].entities[0]", "[11, 0)"),
        (extraction(text_of(TEXT, (24, 30), (0, 11), (6, 14))), "texts[0].entities[2]", "overlap"),
        (extraction(text_of(TEXT), text_of(TEXT, (0, 4_000_000_000))), "texts[1].entities[0]", "4000000000"),
        (extraction(text_of(TEXT, (0, 11)), gazetteer_names=["a"]), "texts[0].entities", "cannot be combined"),
        (extraction(text_of(TEXT, (0, 11)), entity_source="ENTITY_SOURCE_NER"), "texts[0].entities", "be combined"),
        (extraction(text_of(TEXT), gazetteer_names=["Warsaw", " "]), "gazetteer_names[1]", "letter"),
        (extraction(text_of(TEXT), gazetteer_names=["a"] * 4), "gazetteer_names", "limit is 3"),
        (extraction(text_of(TEXT, (0, 11)), relations=["spouse", ""]), "relations[1]", "has no words"),
        (extraction(text_of(TEXT, (0, 11)), top_k=0), "top_k", "1 to "),
        (extraction(text_of(TEXT), max_relations_per_pair=51), "max_relations_per_pair", ""),
        (extraction(text_of(TEXT, (0, 11)), entity_source=9), "entity_source", "number 9"),
        (extraction(text_of(TEXT, (0, 11)), model="fake"), "model", "a model for sentences"),
        (slots(), "slots", ""),
        (slots({"head": " ", "relation": "spouse"}), "slots[0].head", ""),
        (slots({"head": "A", "relation": ""}), "slots[0].relation", ""),
        (slots({"head": "A", "relation": "nonsense"}), NOT_FOUND, ""),
        (entailment((BORN, BORN), (BORN, "$ARG1 runs")), "pairs[1].hypothesis", ""),
        (entailment(("", BORN)), "pairs[0].premise", ""),
        (entailment(), "pairs", ""),
        (relations_pb2.ListRelationsRequest(page_token="x"), "page_token", ""),
        (addition(name=""), "name", ""),
        (addition(examples=[BORN, "$ARG1"]), "examples[1]", ""),
        (addition(threshold=float("nan")), "threshold", ""),
        (addition(name="spouse"), grpc.StatusCode.ALREADY_EXISTS, ""),
    ],
)
def test_bad_requests_name_their_field(small, request_, field, part):
    found = failure(getattr(small, type(request_).__name__.removesuffix("Request")), request_)
    assert (found.code, found.fields) == ((INVALID, [field]) if isinstance(field, str) else (field, []))
    assert part in found.message
