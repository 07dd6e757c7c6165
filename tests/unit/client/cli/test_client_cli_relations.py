"""``facets relations`` and ``facets entail``."""

import json

import pytest
from fake_relations import BORN, NAMES, TEXT


def test_relations_of_a_text_for_people_and_programs(facets):
    shown = facets("relations", TEXT, "-e", NAMES[0], "-e", "Paris", "--top-k", 1, "--evidence").stdout
    assert TEXT in shown and "2 ordered pairs of 2 entities" in shown
    assert "in training: $ARG1 wed $ARG2 (0.90)" in shown and "of: Ann - Bo" in shown
    assert "facet 1 matches its facet 2, cosine 0.500" in shown
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
    assert "no entity is" in facets("relations", TEXT, *names, "--head", "Ann", "-r", "spouse").stdout
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
        (["entail", "--file", "one.tsv"], "line 1: expected two texts with a tab between"),
    ],
)
def test_wrong_input_is_one_sentence(facets, tmp_path, arguments, part):
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "one.tsv").write_text("one\n")
    (tmp_path / "latin.txt").write_bytes("Orl\u00e9ans".encode("latin-1"))
    error = facets(*arguments, code=2).stderr
    assert part in error and len(error.strip().splitlines()) == 1
