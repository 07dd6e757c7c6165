"""Calls one function in a process of its own: ``python -m facets_server.runtime.heavy_child``; see ``heavy``.

Standard input has the limit of memory in bytes, the function and its arguments; standard output gets whether the
function has returned, and what it returned or raised. Imports little, because each call waits for it.
"""

import os
import pickle
import sys
import threading
import time
from contextlib import suppress

_CHECK_S = 1.0


def main() -> None:
    """Calls the function."""
    max_bytes = pickle.load(sys.stdin.buffer)
    with suppress(ImportError, ValueError, OSError):  # such as a system without this limit
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, max_bytes))
    os.nice(10)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    replies, sys.stdout = sys.stdout.buffer, sys.stderr  # what the function prints is no reply
    try:
        function, arguments = pickle.load(sys.stdin.buffer)
        reply = pickle.dumps((True, function(*arguments)))
    except Exception as error:  # raised by the server
        reply = pickle.dumps((False, error))
    replies.write(reply)
    replies.flush()


def _end_with(server: int) -> None:
    while os.getppid() == server:
        time.sleep(_CHECK_S)
    os._exit(1)


if __name__ == "__main__":
    main()
