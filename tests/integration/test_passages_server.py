"""Collections of passages with a real server process: every mode, spans after kill -9, odd input."""

import os

import pytest
from facets_client import Document, FacetsClient
from facets_client.errors import FailedPreconditionError
from toys import toy_passage_model

pytestmark = pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs server processes of its own")

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
        client.add([Document(name, text) for name, text in TEXTS.items()], collection="news")
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
