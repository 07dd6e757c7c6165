"""The line that is shown while a server does not answer."""

import io
import threading

from facets_client.cli.settings import Waiting, WatchedClient


class Screen(io.StringIO):
    """Knows when it was written to."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def write(self, text):
        self.written.set()
        return super().write(text)


def test_a_wait_says_where_how_long_and_until_when_and_goes_with_the_answer():
    screen = Screen()
    with Waiting("host:1", 30, screen, first_s=0.01):
        assert screen.written.wait(60)
    first, *_, last = screen.getvalue().split("\r\x1b[K")[1:]
    assert first.startswith("facets: no answer from host:1 yet, trying for 0 s of at most 30 s")
    assert last == ""


def test_an_answer_at_once_shows_nothing():
    screen = Screen()
    with Waiting("host:1", 30, screen, first_s=3600):
        pass
    assert screen.getvalue() == ""


def test_a_watched_client_answers_as_any_other(server):
    with WatchedClient(server.target) as client:
        assert client.models()[0].name
