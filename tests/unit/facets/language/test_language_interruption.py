import threading
import time

import pytest
from leaving import looks_until_gone

from facets.language.interruption import interrupted_by
from facets.language.tokenizer import Tokenizer


@pytest.mark.parametrize("method", ["words", "tokenize"])
def test_tokenizing_stops_when_nobody_waits(method):
    tokenizer = Tokenizer()
    texts = [" ".join(f"{'(' * 60}{i}x{k}" for i in range(1000)) for k in range(100)]  # minutes
    started = time.monotonic()
    assert looks_until_gone(2, lambda: getattr(tokenizer, method)(texts)) == 3
    assert time.monotonic() - started < 30


def test_no_more_is_tokenized_than_is_wanted():
    tokenizer = Tokenizer()
    texts = ["(" * 32_000 + str(i) for i in range(40)] + ["one two, three " * 1000]
    started = time.monotonic()
    few = tokenizer.words(texts, most=5)
    assert time.monotonic() - started < 5  # all of it: half a minute
    assert few[:40] == [["("] * 5] * 40
    assert few[40] == ["one", "two", ",", "three", "one"]
    assert tokenizer.words(["a b, c"], most=10) == tokenizer.words(["a b, c"])


def test_others_tokenize_beside_a_long_text():
    tokenizer = Tokenizer()
    tokenizer.words(["spaCy is imported"])
    stop = threading.Event()

    def check():
        if stop.is_set():
            raise TimeoutError

    def work():
        with pytest.raises(TimeoutError), interrupted_by(check):
            tokenizer.tokenize(["(" * 100 + " " + "(" * 100] * 100_000)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        started = time.monotonic()
        for i in range(3):
            assert tokenizer.words([f"new{i} word{i}"]) == [[f"new{i}", f"word{i}"]]
        assert time.monotonic() - started < 10
    finally:
        stop.set()
        thread.join(30)
    assert not thread.is_alive()
