"""A PostgreSQL for one run of the tests, or one of their own; skipped, with the reason, where there can be none."""

import atexit
import os
from collections.abc import Callable
from functools import cache

import pytest

from benchmarks.faults.postgres import PostgresPair, PostgresServer, programs, user


def _need_postgres() -> None:
    pytest.importorskip("psycopg_pool", reason="the extra postgres is not installed")
    if programs() is None:
        pytest.skip("no PostgreSQL here: install Debian's postgresql")
    if os.geteuid() == 0 and user() is None:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")


def new_server(*, fsync: bool = False) -> PostgresServer:
    """A server that goes when the tests end."""
    _need_postgres()
    server = PostgresServer(fsync=fsync)
    atexit.register(server.remove)
    return server


def new_pair(*, synchronous: bool = True) -> PostgresPair:
    """A primary and a standby that go when the tests end."""
    _need_postgres()
    pair = PostgresPair(synchronous=synchronous)
    atexit.register(pair.remove)
    return pair


server: Callable[[], PostgresServer] = cache(new_server)
"""One for the whole run, which need not survive a power cut."""
