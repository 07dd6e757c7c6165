"""Collections of passages with a real server process: every mode, spans after kill -9, odd input, right answers."""

import json
import os
import subprocess

import pytest
from facets_client import Document, FacetsClient
from facets_client.errors import FailedPreconditionError
from server_process import COMMAND, ROOT, ServerProcess, client_environment
from toys import toy_passage_model

pytestmark = pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs server processes of its own")

SHIPPED = ROOT / "models" / "facets-passages-small-en"
TEXTS = {
    "dog": "The dog plays music.",
    "man": "A man is lifting weights in a garage.",
    "long": " ".join(["The dog plays the guitar.", "A man lifting weights in the garage.", "Music."] * 9),
    "emoji": "\U0001f600 The guitar caf\u00e9 plays.",
}


@pytest.fixture(scope="session")
def toy_passages(tmp_path_factory):
    folders = []
    for name, space in (("toy-passages", "toy"), ("toy-far", "elsewhere")):
        folders.append(tmp_path_factory.mktemp("passages") / name)
        toy_passage_model(name=name, space=space).save(folders[-1])
    return folders


def test_answers_and_spans_survive_kill(spawn, toy_passages):
    arguments = [part for folder in toy_passages for part in ("--model", str(folder))]
    server = spawn(arguments=arguments)
    with FacetsClient(server.target, timeout_s=60) as client:
        made = client.create_collection("news")
        assert (made.model, made.space) == ("toy-passages", "toy")
        client.upsert("news", [Document(name, text) for name, text in TEXTS.items()])
        before = seen(client)
    server.kill()
    server = spawn(arguments=arguments)
    with FacetsClient(server.target, timeout_s=60) as client:
        assert seen(client) == before
        with pytest.raises(FailedPreconditionError, match=r"space toy.*toy-far of space elsewhere"):
            client.search("news", ["dog"], model="toy-far")
        moved = list(client.reindex_collection("news", model="toy-far"))[-1].collection
        assert moved.space == "elsewhere" and client.search("news", ["dog"], mode="facets")[0].hits[0].answer


def seen(client):
    """What a search says of every hit, in every mode; offsets are those of the text."""
    said = []
    for mode in ("hybrid", "facets", "lexical"):
        for hit in client.search("news", ["the guitar plays"], mode=mode, evidence=True)[0].hits:
            assert hit.answer and 0 <= hit.answer.start < hit.answer.end <= len(hit.text)
            words = [hit.text[span.start : span.end].lower() for span in hit.matched_spans]
            assert set(words) <= {"guitar", "plays"} and (words or mode != "lexical")
            said.append((mode, hit.id, round(hit.score, 4), hit.answer, words, [m.second_span for m in hit.evidence]))
    assert len(said) > len(TEXTS)
    found = client.get_documents("news", list(TEXTS), include_facets=True).documents
    return said, [(one.id, one.token_stats, one.facet_spans) for one in found]


QUESTIONS = {
    "capital city of France": ("paris", "capital"),
    "how vaccines protect against disease": ("vaccine", "immunity"),
    "Which drink is made from fermented grapes?": ("wine", "grapes"),
    "What is the capital of the Netherlands?": ("amsterdam", "capital"),
    "insects that pollinate plants and make honey": ("bee", "pollination"),
    "another name for ping pong": ("table-tennis", "ping"),
}


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """A function that runs ``facets`` against a server with the samples."""
    if not (SHIPPED / "model.safetensors").is_file():
        pytest.skip("the model of passages is not there")
    folder = tmp_path_factory.mktemp("answers")
    environment = client_environment(folder)
    with ServerProcess(folder / "data", SHIPPED) as server:
        command = [*COMMAND, "--target", server.target]

        def run(*arguments):
            shown = subprocess.run([*command, *arguments], check=True, capture_output=True, text=True, env=environment)
            return shown.stdout

        run("index", str(ROOT / "samples" / "wikipedia.jsonl"), "-c", "samples", "--create")
        yield run


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_right_article_is_first_and_its_answer_is_shown(shipped, question):
    article, word = QUESTIONS[question]
    hit = json.loads(shipped("--json", "search", question, "-c", "samples", "-k", "1"))["hits"][0]
    assert hit["id"] == article
    assert word in hit["text"][hit["answer"]["start"] : hit["answer"]["end"]].lower()


@pytest.mark.slow
def test_nothing_relevant_is_said_of_what_nobody_wrote_about(shipped):
    out = shipped("search", "how to renew a parking permit in Lisbon", "-c", "samples")
    assert "nothing relevant" in out or "confidence" not in out  # a model without a curve has no confidence
