"""Heavy, rare work: one call at a time, in a process with a limit of memory, at low priority."""

import logging
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any

from facets.errors import OverloadedError
from facets.language.interruption import Run, apart_in
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.fair_queue import FairLock, without_turn

logger = logging.getLogger(__name__)

_COMMAND = (sys.executable, "-P", "-m", "facets_server.runtime.heavy_child")
_MAX_WAITING = 16
_MAX_BYTES = 2 * 1024**3
_RETRY_AFTER_S = 10.0


class HeavyWork:
    """Runs the work of ``facets.language.interruption.apart`` for one call at a time; waiting callers take turns."""

    def __init__(self, *, max_bytes: int = _MAX_BYTES, max_waiting: int = _MAX_WAITING) -> None:
        self._max_bytes = max_bytes
        problem = f"{max_waiting} calls wait for such work, the limit: try again later"
        refusal = partial(OverloadedError, problem, retry_after_s=_RETRY_AFTER_S)
        self._lock = FairLock(max_waiting=max_waiting, refusal=refusal)

    def of(self, call: CallContext) -> AbstractContextManager[None]:
        """Within the block, heavy work waits for the work of other calls; raises OverloadedError if too many wait."""
        return apart_in(partial(self._taken, call))

    @contextmanager
    def _taken(self, call: CallContext) -> Iterator[Run]:
        with self._lock.acquire(call):
            yield partial(self._run, call)

    def _run(self, call: CallContext, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function in a new process, which ends with the call; raises what the function raises."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with tempfile.TemporaryFile() as order:
            pickle.dump(self._max_bytes, order)
            pickle.dump((function, arguments), order)
            order.seek(0)
            process = subprocess.Popen(
                _COMMAND, stdin=order, stdout=subprocess.PIPE, env=environment, start_new_session=True
            )
        call.over.add_done_callback(lambda _: process.kill())
        reply = b""
        with process, without_turn():
            with suppress(subprocess.TimeoutExpired):
                reply = process.communicate(timeout=call.time_remaining())[0]
            process.kill()
        call.check()
        if process.returncode > 0:
            raise RuntimeError(f"the process of heavy work ended with status {process.returncode}")
        # Without memory, the process raises an error, or aborts, or the system kills it.
        has_returned, result = pickle.loads(reply) if reply else (False, MemoryError())
        if has_returned:
            return result
        if isinstance(result, MemoryError) or "bad_alloc" in str(result):
            logger.warning("%s: no memory, the limit is %d bytes", call.method, self._max_bytes)
            limit = f"{self._max_bytes / 1024**3:.3g} GiB"
            raise OverloadedError(f"needs more memory than such a call may have, {limit}: ask for less") from None
        raise result
