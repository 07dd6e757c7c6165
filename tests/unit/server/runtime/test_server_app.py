import pytest
from facets_server.runtime import app

from facets.errors import StorageError


def test_what_was_opened_is_closed_when_the_server_cannot_be_made(make_server, monkeypatch):
    closed = []

    def services(parts):
        parts.closing.callback(closed.append, "streams")
        raise StorageError("no room for the next one")

    monkeypatch.setattr(app, "services", services)
    with pytest.raises(StorageError, match="no room"):
        make_server()
    assert closed == ["streams"]
