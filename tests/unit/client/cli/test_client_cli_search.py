"""How ``facets search`` and ``facets index`` show what people need to judge an answer."""

import io
import json
from dataclasses import replace

import grpc
import pytest
from facets_client.documents.results import hit_parts
from facets_client.generated.types import SearchHit, Span
from fake_server import status_of
from rich.console import Console, Group

ANSWER = "It rained. The cup was won by Ajax of Amsterdam in May. Nobody was surprised."


def found(cup):
    """The reply to a search: two hits, the first with this confidence."""
    near = [{"word": "dog"}, {"word": "cat"}]
    match = {"first_facet": 1, "second_facet": 2, "cosine": 0.75, "first_words": near, "second_words": near}
    answer = {"start": ANSWER.index("Ajax"), "end": ANSWER.index(" in May")}
    first = {"id": "cup", "text": ANSWER, "payload": {"title": "The cup"}, "answer": answer, "evidence": [match]}
    hits = [{**first, "confidence": cup}, {"id": "far", "text": "Nothing of it.", "confidence": 0.04}]

    def reply(request):
        kept = [hit for hit in hits if hit["confidence"] >= request.min_confidence]
        return {"results": [{"hits": kept}], "exhaustive": True, "index_kind": "exact"}

    return {"Search": reply}


def test_people_see_sure_hits_with_title_evidence_and_the_sentence_that_answers(facets, world):
    world.replies |= found(cup=0.9)
    out = " ".join(facets("search", "x", "-c", "news").stdout.split())
    assert "1 confidence 0.90 cup The cup ... The cup was won by Ajax of Amsterdam in May. ..." in out
    assert "query facet 1 (dog, cat) matches document facet 2 (dog, cat), cosine 0.750" in out
    assert "rained" not in out and "far" not in out
    assert "rained" in facets("search", "x", "-c", "news", "--full").stdout
    assert "1 document, 1 less sure hit left out, all matching documents compared (exact)" in out
    seen = json.loads(facets("search", "x", "-c", "news", "--json").stdout)
    assert seen["hits"][0]["payload"] == {"title": "The cup"} and seen["exhaustive"] is True
    assert seen["hits"][0]["evidence"][0]["second_words"][0]["word"] == "dog" and len(seen["hits"]) == 2


def test_nothing_relevant_is_said(facets, world):
    world.replies |= found(cup=0.0967)
    out = " ".join(facets("search", "x", "-c", "news").stdout.split())
    assert "nothing relevant: the surest of 2 has confidence 0.09" in out and "Ajax" not in out
    out = " ".join(facets("search", "x", "-c", "news", "--min-confidence", 0.5).stdout.split())
    assert "nothing relevant: no document has confidence 0.5" in out


def hit(text, answer=None, words=()):
    spans = tuple(Span(text.index(word), text.index(word) + len(word)) for word in words)
    where = None if answer is None else Span(text.index(answer), text.index(answer) + len(answer))
    return SearchHit("a", 1.0, text, {}, (), 1, 0.5, 2.0, tuple(words), where, None, spans, None, 0, 1)


def excerpt(found):
    """The second line of a hit, without styles."""
    (_, part, *_) = hit_parts(1, found)
    return part.renderable


def shown(line):
    """As a terminal shows it, with its styles."""
    file = io.StringIO()
    Console(file=file, force_terminal=True, color_system="standard", width=500, _environ={}).print(line)
    return file.getvalue()


def test_a_problem_and_its_solution_are_not_followed_by_the_row_again():
    solution = Span(0, 11, field="Fix", text="Turn it on.", problem="It is dark.")
    found = replace(hit("| Fault |\n| --- |\n| It is dark. |"), answer=solution)
    lines = shown(Group(*hit_parts(1, found))).splitlines()
    assert str(lines).count("It is dark.") == str(lines).count("Turn it on.") == 1 and "---" not in str(lines)
    assert "| It is dark. |" in shown(Group(*hit_parts(1, found, full=True)))


def test_the_answer_is_marked_and_words_of_the_query_are_bold():
    line = excerpt(hit("One. The cup went to Ajax in May. " + "Three. " * 50, "to Ajax in May", ["cup", "Ajax"]))
    assert line.plain == "... The cup went to Ajax in May. ..."
    assert excerpt(hit("It opens at nine.\n", "at nine")).plain == "It opens at nine."
    assert "\x1b[1mcup\x1b[0m" in shown(line)
    assert "\x1b[33mto \x1b[0m\x1b[1;33mAjax\x1b[0m\x1b[33m in May\x1b[0m" in shown(line)


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("word " * 200 + "here it is" + " word" * 200, "here it is", "here it is"),
        ("tabs\tand\n\nlines\x1b[31m", "lines", "lines [31m"),
        ("caf\u00e9 \U0001f600 au lait. End.", "\U0001f600 au", "caf\u00e9 \U0001f600 au lait. ..."),
        ("only the beginning " * 50, None, "only the beginning"),
    ],
)
def test_an_excerpt_is_short_and_holds_the_beginning_of_the_answer(text, answer, expected):
    line = excerpt(hit(text, answer)).plain
    assert expected in line and len(line) <= 300 + 8
    assert not line.startswith("... ") or f" {line.split()[1]}" in text or answer.startswith(line.split()[1])
    assert "\n" not in line and "\x1b" not in line


def test_index_names_documents_not_read_to_their_end(facets, world, tmp_path):
    world.max_tokens = 3
    (tmp_path / "in.jsonl").write_text('{"id": "short", "text": "a b"}\n{"id": "long", "text": "a b c d e"}\n')
    done = facets("index", "in.jsonl", "-c", "news")
    assert "1 document is stored but not read to the end" in done.stderr
    found = json.loads(facets("--json", "index", "in.jsonl", "-c", "news").stdout)
    assert (found["num_indexed"], found["num_truncated"]) == (2, 1)


def test_index_waits_for_a_server_that_is_away_when_it_asks_for_the_collection(facets, world, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id": "a", "text": "b"}\n')
    noise = "failed to connect to all addresses; last error: UNKNOWN: "
    away = status_of(grpc.StatusCode.UNAVAILABLE, f"{noise}away", retry_after_s=0.01)
    world.faults["GetCollection"].extend([away] * 6)
    done = facets("index", "in.jsonl", "-c", "news", "--max-wait-s", 30)
    assert done.stderr.count("waiting for the server: away") == 1, "said once"
    assert "1 added" in done.stdout
    world.faults["GetCollection"].extend([away] * 50)
    assert "away" in facets("index", "in.jsonl", "-c", "news", "--max-wait-s", 0, code=3).stderr


def test_rerank_shows_texts_in_order_with_their_places(facets, world):
    world.replies["Rerank"] = {"results": [{"index": 1, "confidence": 0.75}, {"index": 0, "confidence": 0.25}]}
    out = facets("rerank", "cat", "a dog barks", "a cat").stdout
    assert out.index("a cat") < out.index("a dog barks") and "0.75" in out
    found = json.loads(facets("--json", "rerank", "cat", "a dog barks", "a cat", "--top-k", 9).stdout)
    assert [(one["index"], one["confidence"]) for one in found["results"]] == [(1, 0.75), (0, 0.25)]
    assert world.calls[-1][1].top_k == 2  # the server rejects a larger value
