"""PostgreSQL on loopback for tests and faults: one server, or a primary with a standby that takes over.

Uses Debian's programs, or those on the PATH; never runs as root. Tests are skipped where there are none.
"""

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until


def programs() -> Path | None:
    """Folder with ``initdb`` and ``pg_ctl``; None if there is none."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if on_path := shutil.which("pg_ctl"):
        places.append(Path(on_path).resolve().parent)
    return next((place for place in places if (place / "initdb").exists()), None)


def user() -> str | None:
    """User that runs PostgreSQL when we are root; None if there is none."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


class PostgresServer:
    """A server on loopback in a temporary folder.

    Args:
        fsync: Whether it survives a power cut; it survives a kill anyway.
        port: Port to listen on; 0: any free one.
        primary: Server of which this one is a standby; None: a primary of its own.
    """

    def __init__(self, *, fsync: bool = False, port: int = 0, primary: "PostgresServer | None" = None) -> None:
        found = programs()
        assert found is not None, "no PostgreSQL found"
        self._programs = found
        self.folder = Path(tempfile.mkdtemp(prefix="facets-postgres-"))
        self._user = user() if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.folder, self._user)
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", port))
            self.port = free.getsockname()[1]
        if primary is None:
            self._run("initdb", "-U", "facets", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        else:
            source = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "facets")
            self._run("pg_basebackup", *source, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync")
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        self.settings = f"{settings} -c fsync={'on' if fsync else 'off'}"
        self.start()

    def start(self) -> None:
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", self.settings, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stops the server; ``immediate`` is a crash."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def kill(self) -> None:
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        (self.folder / "data" / "postmaster.pid").unlink()

    def catch_up_with(self, primary: "PostgresServer") -> None:
        """Waits until this standby has everything that its primary has."""
        [last] = primary.ask("SELECT pg_current_wal_lsn()")
        wait_until(lambda: self.ask("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", last) == (True,))

    def ask(self, statement: str, *values: object) -> tuple[Any, ...]:
        """First row that a statement returns; empty if none."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement, values)  # type: ignore[arg-type]  # constant statements
            return tuple((cursor.fetchone() if cursor.description else None) or ())

    def processes(self) -> list[int]:
        """Process ids of the postmaster and its children."""
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        return [
            postmaster,
            *(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == postmaster),
        ]

    def promote(self) -> None:
        """Lets a standby take writes without waiting for a standby of its own."""
        self._run("pg_ctl", "-w", "promote")
        self.synchronous("")

    def synchronous(self, names: str) -> None:
        """Makes commits wait for the standbys of these names."""
        self.ask(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self.ask("SELECT pg_reload_conf()")
        connected = "SELECT bool_or(sync_state IN ('sync', 'quorum')) FROM pg_stat_replication"
        wait_until(lambda: not names or self.ask(connected) == (True,))

    def remove(self) -> None:
        try:
            if (self.folder / "data" / "postmaster.pid").exists():
                self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self.folder / "data"), *arguments]
        if self._user:  # by a program: a process with threads of gRPC must not fork, as subprocess would for `user=`
            entry = pwd.getpwnam(self._user)
            command = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups", *command]
        # Output goes into a file: the server keeps the streams of pg_ctl open.
        with (self.folder / f"{program}.out").open("w") as output:
            subprocess.run(command, check=True, timeout=60, stdout=output, stderr=output, cwd="/")

    def url(self, database: str) -> str:
        return f"postgres://facets@127.0.0.1:{self.port}/{database}"

    def new_database(self, options: str = "") -> str:
        name = f"test_{uuid.uuid4().hex[:12]}"
        self.ask(f"CREATE DATABASE {name} {options}")
        return self.url(name)


class PostgresPair:
    """A primary and a standby behind one address.

    Args:
        synchronous: Whether a commit waits until the standby has it.

    Attributes:
        primary: Server that takes writes.
        standby: Copy of the primary; None after a failover.
    """

    def __init__(self, *, synchronous: bool = True) -> None:
        self._synchronous = synchronous
        self.primary = PostgresServer()
        self.standby: PostgresServer | None = PostgresServer(primary=self.primary)
        self._ports = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        if synchronous:
            self.primary.synchronous("*")

    def new_database(self) -> str:
        """Creates an empty database and returns its address, which names both servers."""
        name = self.primary.new_database().rpartition("/")[2]
        return f"postgres://facets@{self._ports}/{name}?target_session_attrs=read-write"

    def fail_over(self, *, pause_s: float = 0.0) -> float:
        """Kills the primary and promotes the standby after a pause.

        Returns:
            When the standby takes writes, in monotonic seconds.
        """
        assert self.standby is not None
        self.primary.kill()
        time.sleep(pause_s)
        self.standby.promote()
        self._lost, self.primary, self.standby = self.primary, self.standby, None
        return time.monotonic()

    def restore_standby(self) -> None:
        """Starts a new standby where the lost primary was."""
        self._lost.remove()
        self.standby = PostgresServer(port=self._lost.port, primary=self.primary)
        if self._synchronous:
            self.primary.synchronous("*")

    def remove(self) -> None:
        for server in (self.standby, self.primary):
            if server is not None:
                server.remove()


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


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
