"""Starts the server, and beside it indexes the samples and shows two searches: what ``make serve`` runs.

It uses only the two user commands, ``facets-server`` and ``facets``. The server takes the place of this process, with
its signals and its exit code.
"""

import argparse
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from facets_client import FacetsClient, FacetsClientError

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
START_LIMIT_S = 120.0
COMMANDS = (
    ("index", "samples/wikipedia.jsonl", "--collection", "samples", "--create"),
    ("search", "capital city of France", "--collection", "samples", "--top-k", "3"),
    ("search", "how do plants turn sunlight into food", "--collection", "samples", "--top-k", "3"),
)
TRY = """
The server is up at {target}, its page at {page}. In another terminal, in this folder:

  source {activate}
  export FACETS_TARGET={target}
  facets search "how vaccines protect against disease" --collection samples --top-k 3
  facets search "another name for ping pong" --collection samples --where topic=sport --explain
  facets search "renew a parking permit" --collection samples
  facets explain "The striker scored in extra time."
  facets similarity "A dog is barking." "A puppy makes noise."
  facets index YOUR-FILE.jsonl --collection mine --create
  facets --help

Documents are kept in {data_dir}. Ctrl-C stops the server.
"""


def main() -> None:
    """Becomes the server; a child process shows the samples."""
    parser = argparse.ArgumentParser(description="Serves the bundled samples on this machine.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=50051, help="port to listen on")
    parser.add_argument("--http-port", type=int, default=8080, help="port of the page; any free port if it is in use")
    parser.add_argument("--data-dir", type=Path, default=Path("data/serve"), help="folder for the documents")
    parser.add_argument("--model", default="", help="shipped model or checkpoint folder; default: the shipped one")
    parser.add_argument("--log-level", default="WARNING", help="INFO shows every request")
    options = parser.parse_args()
    if free_port(options.host, options.port) is None:
        sys.exit(f"serve: port {options.port} cannot be used: choose another one, make serve PORT={options.port + 1}")
    options.http_port = free_port(options.host, options.http_port) or free_port(options.host, 0)
    if os.fork() == 0:
        try:
            show_samples(options)
        except (FacetsClientError, subprocess.CalledProcessError) as error:
            sys.exit(f"serve: the samples could not be shown: {error}")
        except KeyboardInterrupt:
            sys.exit()
    else:
        os.environ.setdefault("FACETS_SERVER_BACKUP_DIR", f"{options.data_dir}-backups")  # the page's backup button
        given = [(f"--{name.replace('_', '-')}", str(value)) for name, value in vars(options).items() if value]
        os.execv(BIN / "facets-server", ["facets-server", *(word for pair in given for word in pair)])


def show_samples(options: argparse.Namespace) -> None:
    """Indexes the samples and searches them, as soon as the parent process serves."""
    target, server = f"{options.host}:{options.port}", os.getppid()
    deadline = time.monotonic() + START_LIMIT_S
    with FacetsClient(target, timeout_s=1.0) as client:
        while True:
            try:
                if client.health()[""] == "SERVING":
                    break
            except FacetsClientError:
                if os.getppid() != server:  # it has ended and said why
                    return
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.2)
    data_dir = options.data_dir.resolve()
    for words in COMMANDS:
        print("\n$ facets", " ".join(f'"{word}"' if " " in word else word for word in words), flush=True)
        rejected = ["--rejected", str(data_dir / "samples.rejected.jsonl")] if words[0] == "index" else []
        subprocess.run([BIN / "facets", "--target", target, *words, *rejected], check=True, cwd=ROOT)
    page = f"http://{options.host}:{options.http_port}/"
    print(TRY.format(target=target, page=page, activate=BIN / "activate", data_dir=options.data_dir), flush=True)


def free_port(host: str, port: int) -> int | None:
    """The port (0: any free one), or None if it cannot be used."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return None
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
