"""Runs a command many times, each in a process of its own on a terminal of its own, and presses Ctrl-C at random.

``python interrupting.py NUMBER SECONDS COMMAND...``: NUMBER times, within SECONDS of each start, now and then twice.
Says as JSON how often each exit code came, and what was said by those that hung or showed a traceback. The command is
imported once and forked, so that a start takes no second.
"""

import collections
import json
import os
import pty
import random
import select
import signal
import sys
import time

from facets_client.cli import main

PATIENCE_S = 60.0


def begin(arguments: list[str]) -> tuple[int, int]:
    """Starts the command; returns its process and the other end of its terminal, once it runs."""
    started, starts = os.pipe()
    process, terminal = pty.fork()
    if not process:
        os.write(starts, b".")
        sys.argv[1:] = arguments
        main()  # raises SystemExit
    os.close(starts)
    os.read(started, 1)
    os.close(started)
    return process, terminal


def read_until_end(terminal: int, seconds: float) -> bytes | None:
    """What the command says until its end; None: it does not end."""
    said, until = b"", time.monotonic() + seconds
    while True:
        if not select.select([terminal], [], [], max(0.0, until - time.monotonic()))[0]:
            return None
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # the other end is closed
            piece = b""
        if not piece:
            return said
        said += piece


def interrupt(arguments: list[str], longest_s: float, chance: random.Random) -> tuple[int | str, str]:
    """Exit code, or ``hung``, and what was said."""
    process, terminal = begin(arguments)
    said = b""
    for pause_s in [chance.uniform(0, longest_s), chance.expovariate(20)][: chance.choice((1, 1, 2))]:
        select.select([], [], [], pause_s)
        os.kill(process, signal.SIGINT)  # of a process that has ended, too: it is still to be waited for
    rest = read_until_end(terminal, PATIENCE_S)
    if rest is None:
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    said += rest or b""
    return ("hung" if rest is None else os.waitstatus_to_exitcode(status)), said.decode("utf-8", "replace")


def run(number: int, longest_s: float, arguments: list[str]) -> None:
    chance, codes, bad = random.Random(7), collections.Counter[str](), []
    for _ in range(number):
        code, said = interrupt(arguments, longest_s, chance)
        codes[str(code)] += 1
        if "Traceback" in said or "Exception ignored" in said or code == "hung":
            bad.append(said)
    sys.stdout.write(json.dumps({"codes": codes, "bad": bad}) + "\n")


if __name__ == "__main__":
    run(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
