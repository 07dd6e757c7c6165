"""The words of a collection that name the facets of an encoder: when they are read, kept, waited for and left out."""

import logging
import threading
import time
from contextlib import closing
from copy import copy

import numpy as np
import pytest
from toys import shared_passage_model

from facets.documents import CollectionEngine, Document
from facets.documents.words import CollectionWords
from facets.errors import NotReadyError
from facets.language.interruption import interrupted_by
from facets.model.contract import EncoderSettings

PETS = ["The dog plays music.", "A dog and a guitar.", "Guitar music."]
SPORTS = ["Lifting weights.", "A garage with weights.", "The garage."]
NEVER = 30.0


class Encoder:
    """An encoder whose words wait while the gate is closed, and fail with an error, if it has one."""

    def __init__(self):
        self.model = copy(shared_passage_model())
        self.model.encoder_settings = EncoderSettings(
            pooling="mean", query_prompt="", document_prompt="", similarity="cosine", backend="torch"
        )
        self.gate, self.error, self.asked = threading.Event(), None, []
        self.gate.set()

    def embed(self, texts):
        self.asked += texts
        assert self.gate.wait(NEVER)
        if self.error:
            raise self.error
        return self.model.embed(texts)


@pytest.fixture
def engine(tmp_path):
    with closing(CollectionEngine.open(tmp_path)) as engine:
        engine.create_collection("c", model="m", model_revision="1", num_facets=1, dim=32, language="en")
        yield engine


@pytest.fixture
def encoder():
    return Encoder()


@pytest.fixture
def words(engine, encoder):
    with closing(CollectionWords(engine, lambda _: encoder)) as words:
        yield words


def store(engine, texts, first=0):
    facets = np.ones((1, 32), dtype=np.float32)
    engine.upsert(
        "c", [Document(id=str(first + i), text=text, facet_embeddings=facets) for i, text in enumerate(texts)]
    )


def read(engine, words, encoder, *, wait_s=NEVER):
    found = words.of(engine.record("c"), encoder, wait_s=wait_s)
    return None if found is None else {word.lower() for word in found.vocabulary.words}


def test_words_of_deleted_and_replaced_documents_are_not_shown_again(engine, words, encoder):
    assert read(engine, words, encoder) is None and not encoder.asked
    store(engine, PETS)
    assert read(engine, words, encoder) == {"dog", "plays", "music", "guitar"}
    engine.delete("c", ids=[str(i) for i in range(len(PETS))])
    store(engine, SPORTS)
    encoder.gate.clear()
    assert read(engine, words, encoder, wait_s=0.0) is None
    encoder.gate.set()
    assert read(engine, words, encoder) == {"lifting", "weights", "garage"}
    store(engine, ["The guitar."])  # replaces the only text with "lifting"
    assert read(engine, words, encoder) == {"guitar", "weights", "garage"}
    assert encoder.asked.count("garage") == 1


def test_the_old_words_serve_while_those_of_a_grown_collection_are_encoded(engine, words, encoder):
    store(engine, PETS)
    old = read(engine, words, encoder)
    store(engine, SPORTS, first=3)
    assert read(engine, words, encoder) == old and "garage" not in encoder.asked
    store(engine, ["The man."], first=6)
    encoder.gate.clear()
    assert read(engine, words, encoder) == old
    encoder.gate.set()
    deadline = time.monotonic() + NEVER
    while read(engine, words, encoder) == old and time.monotonic() < deadline:
        time.sleep(0.01)
    assert read(engine, words, encoder) == old | {"lifting", "weights", "garage", "man"}


def test_calls_wait_for_words_from_the_start_of_the_work_and_until_they_end(engine, words, encoder):
    encoder.gate.clear()
    store(engine, PETS)
    started = time.monotonic()
    assert read(engine, words, encoder, wait_s=0.2) is None
    assert time.monotonic() - started >= 0.2
    again = time.monotonic()
    assert read(engine, words, encoder, wait_s=0.2) is None
    assert time.monotonic() - again < 0.15
    is_over = threading.Event()
    threading.Timer(0.05, is_over.set).start()

    def check():
        if is_over.is_set():
            raise TimeoutError

    with pytest.raises(TimeoutError), interrupted_by(check):
        read(engine, words, encoder)
    assert time.monotonic() - again < NEVER / 2
    encoder.gate.set()


@pytest.mark.parametrize(("error", "num_logged"), [(RuntimeError("out of memory"), 1), (NotReadyError("closing"), 0)])
def test_a_failure_is_logged_once_and_not_repeated_at_once(engine, words, encoder, caplog, error, num_logged):
    encoder.error = error
    store(engine, PETS)
    with caplog.at_level(logging.WARNING):
        assert [read(engine, words, encoder) for _ in range(3)] == [None] * 3
    assert len(caplog.records) == num_logged and len(encoder.asked) == 4


def test_after_the_end_the_words_are_those_that_are_there(engine, words, encoder):
    store(engine, PETS)
    old = read(engine, words, encoder)
    words.close()
    assert read(engine, words, encoder) == old
    store(engine, SPORTS)
    assert read(engine, words, encoder) is None


def test_words_in_a_script_that_the_encoder_does_not_know_are_left_out(engine, words, encoder):
    store(engine, [*PETS, "ሰላም music", "ሰላም"])
    assert read(engine, words, encoder) == {"dog", "plays", "music", "guitar"}
    engine.delete("c", ids=[*"0123"])
    found = words.of(engine.record("c"), encoder, wait_s=NEVER)
    assert found.nearest(np.ones((1, 32), np.float32), 3) == [[]]
