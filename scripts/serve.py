"""Starts the service on this machine, indexes the bundled samples, shows some searches, and keeps serving.

What ``make serve`` runs. Everything is done with the two commands a user has, ``facets-server`` and ``facets``;
this script only starts them one after the other. Ctrl-C, SIGTERM or a closed terminal drains the server and ends with
its exit code; on Linux the server also drains when this script is killed.
"""

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from facets_client import FacetsClient, FacetsClientError

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = Path("samples", "wikipedia.jsonl")  # in ROOT
COLLECTION = "samples"
QUERIES = ("capital city of France", "how do plants turn sunlight into food")
START_LIMIT_S = 120.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PR_SET_PDEATHSIG = 1  # of prctl(2)

TRY = """
The server is up at {target}, its page at {page}. In another terminal, in this folder:

  source {activate}{export}
  facets search "how vaccines protect against disease" --collection {collection} --top-k 3
  facets search "another name for ping pong" --collection {collection} --where topic=sport --explain
  facets search "renew a parking permit" --collection {collection}
  facets explain "The striker scored in extra time."
  facets similarity "A dog is barking." "A puppy makes noise."
  facets index YOUR-FILE.jsonl --collection mine --create
  facets --help

Documents are kept in {data_dir}. Ctrl-C stops the server.
"""


class _StopServingError(Exception):
    """One of the signals to stop came."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until told to stop; returns the server's exit code."""
    arguments = _parser().parse_args(argv)
    sentence = _port_problem(arguments.host, arguments.port)
    if sentence:
        sys.stderr.write(f"serve: {sentence}\n")
        return 2
    for number in STOP_SIGNALS:
        signal.signal(number, _stop)
    arguments.http_port = _free_port(arguments.host, arguments.http_port)
    os.environ.setdefault("FACETS_SERVER_BACKUP_DIR", f"{arguments.data_dir}-backups")  # for the button of the page
    os.environ.setdefault("FACETS_SERVER_BACKUP_KEEP", "20")
    server = start_server(_server_command(arguments))
    try:
        _show(arguments, server)
        return server.wait()
    except _StopServingError:
        return _drain(server)
    except (FacetsClientError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"serve: the samples could not be shown: {error}\n")
        return _drain(server) or 1
    finally:
        if server.poll() is None:
            _drain(server)


def start_server(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Starts a process that gets SIGTERM when this one ends, however it ends; the latter on Linux alone."""
    if sys.platform != "linux":
        return subprocess.Popen(command)
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def follow_the_parent() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it has ended meanwhile
            os.kill(os.getpid(), signal.SIGTERM)

    return subprocess.Popen(command, preexec_fn=follow_the_parent)  # safe: no thread runs yet


def _show(arguments: argparse.Namespace, server: subprocess.Popen[bytes]) -> None:
    target = f"{arguments.host}:{arguments.port}"
    if not _wait_until_serving(target, server):
        return  # it said why
    state = arguments.data_dir.resolve() / "samples.index-state"
    rejected = arguments.data_dir.resolve() / "samples.rejected.jsonl"
    load = ["index", str(SAMPLES), "--collection", COLLECTION, "--create"]
    _facets(target, load, hidden=["--state", str(state), "--rejected", str(rejected)])
    for query in QUERIES:
        _facets(target, ["search", query, "--collection", COLLECTION, "--top-k", "3"])
    activate = Path(sys.executable).parent / "activate"
    export = "" if arguments.port == 50051 else f"\n  export FACETS_TARGET={target}"
    names = {"target": target, "page": f"http://{arguments.host}:{arguments.http_port}/", "activate": activate}
    sys.stdout.write(TRY.format(**names, export=export, collection=COLLECTION, data_dir=arguments.data_dir))
    sys.stdout.flush()


def is_up(statuses: Mapping[str, str]) -> bool:
    """Whether the server serves all that it has models for; one that is named alone leaves services without."""
    return statuses[""] == "SERVING"


def _wait_until_serving(target: str, server: subprocess.Popen[bytes]) -> bool:
    """Polls the health service; False when the server ended."""
    end = time.monotonic() + START_LIMIT_S
    with FacetsClient(target, timeout_s=1.0) as client:
        while server.poll() is None:
            try:
                if is_up(client.health()):
                    return True
            except FacetsClientError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.2)
    return False


def _facets(target: str, words: Sequence[str], *, hidden: Sequence[str] = ()) -> None:
    """Runs ``facets`` and shows its line first; ``hidden`` options are left out of that."""
    shown = " ".join(f'"{word}"' if " " in word else word for word in words)
    sys.stdout.write(f"\n$ facets {shown}\n")
    sys.stdout.flush()
    command = [str(Path(sys.executable).with_name("facets")), "--target", target, *words, *hidden]
    subprocess.run(command, check=True, cwd=ROOT)


def _server_command(arguments: argparse.Namespace) -> list[str]:
    options = {
        "--host": arguments.host,
        "--port": arguments.port,
        "--http-port": arguments.http_port,
        "--data-dir": arguments.data_dir,
        "--log-level": arguments.log_level,
    }
    command = [str(Path(sys.executable).with_name("facets-server"))]
    for name, value in options.items():
        command += [name, str(value)]
    return command + (["--model", arguments.model] if arguments.model else [])


def _drain(server: subprocess.Popen[bytes]) -> int:
    """Asks the server to stop and waits until its running calls have ended."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    server.terminate()
    return server.wait()


def _stop(number: int, frame: FrameType | None) -> None:
    raise _StopServingError


def _port_problem(host: str, port: int) -> str:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return f"port {port} cannot be used ({error.strerror}): choose another one, make serve PORT={port + 1}"
    return ""


def _free_port(host: str, wanted: int) -> int:
    """The wanted port, or any that is free: the page is a guest, and no reason not to start."""
    if not _port_problem(host, wanted):
        return wanted
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Serves the bundled samples on this machine.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=50051, help="port to listen on")
    parser.add_argument("--http-port", type=int, default=8080, help="port of the page, any free one if it is in use")
    parser.add_argument("--data-dir", type=Path, default=Path("data/serve"), help="where documents are kept")
    parser.add_argument("--model", default="", help="shipped model or checkpoint folder; default: the shipped one")
    parser.add_argument("--log-level", default="WARNING", help="INFO shows every request")
    return parser


if __name__ == "__main__":
    sys.exit(main())
