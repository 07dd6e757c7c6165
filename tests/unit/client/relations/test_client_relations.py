"""Both clients' methods about relations, and ``facets relations`` and ``facets entail``."""

import json

import pytest
from facets_client import AlreadyExistsError, InvalidArgumentError, NotFoundError, PairLimits
from fake_relations import RELATIONS, fake_probability

TEXT = "\u00c9mile Zola was born in Paris."
NAMES = ["\u00c9mile Zola", "Paris"]
SPANS = [(0, 10), (23, 28)]
BORN = "$ARG1 was born in $ARG2"


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
        spans=[SPANS],
        entity_source="spans",
        relations=["spouse"],
        pair_limits=PairLimits(max_tokens_between=5),
        include_unrelated=True,
        max_relations_per_pair=3,
        model="m",
    )
    sent = world.calls[-1][1]
    assert sent.max_relations_per_pair == 3
    assert [(span.start, span.end) for span in sent.texts[0].entities] == SPANS
    assert (sent.entity_source, sent.model, list(sent.relations)) == (1, "m", ["spouse"])
    assert sent.pair_limits.max_tokens_between == 5 and not sent.pair_limits.HasField("max_pairs")
    assert not sent.HasField("top_k") and sent.include_unrelated


def test_an_error_names_the_text_by_its_place_in_the_whole(client):
    texts = [TEXT] * 6 + ["REFUSE"] + [TEXT] * 3
    with pytest.raises(InvalidArgumentError, match=r"texts\[6\]") as raised:
        client.extract_relations(texts, gazetteer=NAMES)
    assert raised.value.field_violations[0].field == "texts[6]"


def test_spans_may_have_types(client, world):
    client.extract_relations([TEXT], spans=[[(0, 10, "person"), (23, 28)]])
    assert [span.type for span in world.calls[-1][1].texts[0].entities] == [1, 0]


def test_relations_say_what_they_mean(client):
    spouse = client.list_relations()[-1]
    assert (spouse.name, spouse.symmetric, spouse.example) == ("spouse", True, "[Ann] wed {Bo}.")
    assert (spouse.aliases, spouse.head_types) == (("marriedTo",), ("person",))
    (pattern,) = client.score_relations([BORN], relations=["spouse"], evidence=True)
    assert pattern.relations[0].known_pairs == (("Ann", "Bo"),)


@pytest.mark.parametrize(
    ("spans", "problem"),
    [
        ([], "one list"),
        ([[(-1, 4)]], "must be 0 to"),
        ([[(0, 2**33)]], "must be 0 to"),
        ([[(0, 4, "planet")]], "must be one of person"),
    ],
)
def test_spans_that_cannot_work_are_refused_before_anything_is_sent(client, world, spans, problem):
    with pytest.raises(ValueError, match=problem):
        client.extract_relations([TEXT], spans=spans)
    assert not world.calls


@pytest.mark.parametrize("arguments", [{"texts": TEXT}, {"texts": [TEXT], "gazetteer": "Paris"}])
def test_one_string_is_no_list(client, arguments):
    with pytest.raises(TypeError, match="must be a sequence"):
        client.extract_relations(**arguments)


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


@pytest.mark.parametrize("command", ["relations", "entail"])
def test_help_shows_examples(facets, command):
    assert f"facets {command}" in facets(command, "--help").stdout.partition("Examples:")[2]


def test_relations_of_a_text_for_people_and_programs(facets):
    shown = facets("relations", TEXT, "-e", NAMES[0], "-e", "Paris", "--top-k", 1, "--evidence").stdout
    assert TEXT in shown and "2 ordered pairs of 2 entities" in shown
    assert "in training: $ARG1 wed $ARG2 (0.90)" in shown and "of: Ann - Bo" in shown
    assert "facet 1 met its facet 2, cosine 0.500" in shown
    answer = json.loads(facets("--json", "relations", TEXT, "--span", "0:10", "--span", "23:28").stdout)
    assert (answer["text"], answer["num_pairs"]) == (TEXT, 2)
    assert "no sentence has two entities" in facets("relations", TEXT, "-e", "Nobody").stdout
    asked = facets("relations", TEXT[:-1] + "?", "-e", NAMES[0], "-e", "Paris").stdout
    assert "2 not asserted (--unrelated shows them)" in asked


def test_texts_and_names_of_files(facets, tmp_path):
    (tmp_path / "texts.txt").write_text(f"{TEXT}\n\n{TEXT}\n", encoding="utf-8")
    (tmp_path / "names.txt").write_text("\n".join(NAMES), encoding="utf-8-sig")
    out = facets("--json", "relations", "--file", "texts.txt", "--gazetteer", "names.txt", "--unrelated").stdout
    answers = [json.loads(line) for line in out.splitlines()]
    assert [len(answer["pairs"]) for answer in answers] == [2, 2]
    assert facets("--json", "relations", "-f", "-", "-e", "Paris", stdin=TEXT).stdout.count("\n") == 1


def test_slots_patterns_and_known_relations(facets):
    names = ("-e", NAMES[0], "-e", "Paris")
    assert "best mention" in facets("relations", TEXT, *names, "--head", NAMES[0], "-r", "spouse").stdout
    tails = json.loads(facets("--json", "relations", TEXT, *names, "--head", NAMES[0], "-r", "spouse").stdout)
    assert (tails["relation"], tails["tails"][0]["tail"]) == ("spouse", "Paris")
    assert "no entity stands" in facets("relations", TEXT, *names, "--head", "Ann", "-r", "spouse").stdout
    assert "(no relation)" in facets("relations", "-p", BORN).stdout
    assert "negated by 'not'" in facets("relations", "-p", "$ARG1 is not $ARG2").stdout
    listed = facets("relations", "--list").stdout
    assert "spouse (both ways)" in listed and "[Ann] wed {Bo}." in listed and "person" in listed
    assert len(json.loads(facets("--json", "relations", "--list").stdout)["relations"]) == 3
    assert "0.375" in facets("relations", "--add", "mentor", "-p", BORN).stdout
    assert "mentor" in facets("relations", "--delete", "mentor").stdout


def test_entailment_for_people_and_programs(facets, tmp_path):
    shown = facets("entail", "$ARG1 is not $ARG2", BORN).stdout
    assert "entailed by (one is negated)" in shown and "0.62" in shown
    (tmp_path / "pairs.tsv").write_text(f"{BORN}\t{BORN}\n$ARG1 a $ARG2\t{BORN}\n", encoding="utf-8")
    lines = facets("--json", "entail", "--file", "pairs.tsv").stdout.splitlines()
    assert [json.loads(line)["label"] for line in lines] == ["entailed_by"] * 2


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["relations"], "expected texts"),
        (["relations", TEXT, "--span", "x"], "START:END"),
        (["relations", TEXT, TEXT, "--span", "0:4"], "one text"),
        (["relations", TEXT, "-e", "Paris", "--ner"], "several"),
        (["relations", TEXT, "--gazetteer", "missing.txt"], "missing.txt"),
        (["relations", TEXT, "--gazetteer", "empty.txt"], "at least one name"),
        (["relations", TEXT, "--gazetteer", "latin.txt"], "UTF-8"),
        (["relations", TEXT, "-e", "Paris", "--head", "x"], "exactly one --relation"),
        (["relations", TEXT, "-e", "Paris", "-r", "spouce"], "spouse"),
        (["relations", "--list", "--delete", "x"], "exclude"),
        (["relations", "--list", "--head", "x"], "exclude"),
        (["relations", "--list", "-p", BORN], "exclude"),
        (["relations", "--add", "x", "-p", BORN, TEXT], "exclude"),
        (["relations", "-p", BORN, TEXT], "exclude"),
        (["relations", "--threshold", "0.1", "-p", BORN], "--add"),
        (["relations", "--add", "x", "-p", "REFUSE"], "examples[0]"),
        (["relations", "--delete", "spouse"], "no relation"),
        (["relations", "-p", "REFUSE"], "patterns[0]"),
        (["entail", BORN], "two texts"),
        (["entail", "REFUSE", BORN], "pairs[0]"),
    ],
)
def test_wrong_input_is_one_sentence(facets, tmp_path, arguments, part):
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "latin.txt").write_bytes("Orl\u00e9ans".encode("latin-1"))
    error = facets(*arguments, code=2).stderr
    assert part in error and len(error.strip().splitlines()) == 1
