"""Heavy work runs in a process of its own, one call at a time."""

import os
import threading
import time
from functools import partial

import numpy as np
import pytest
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError
from facets_server.runtime.heavy import HeavyWork
from waiting import wait_until

from facets.diagnose import describe
from facets.errors import InvalidInputError, OverloadedError
from facets.language.interruption import apart

MIB = 1024**2


def run(heavy, function, *arguments, call=None):
    with heavy.of(call or CallContext(caller="a")), apart() as run_apart:
        return run_apart(function, *arguments)


def test_heavy_work_runs_in_another_process_at_low_priority():
    assert run(HeavyWork(), os.getpid) != os.getpid()
    numbers = np.arange(5_000_000)  # more than a pipe holds, both ways
    assert (run(HeavyWork(), np.negative, numbers) == -numbers).all()
    assert run(HeavyWork(), os.nice, 0) == min(19, os.nice(0) + 10)
    with apart() as run_apart:
        assert run_apart(os.getpid) == os.getpid()  # without a server


def test_what_heavy_work_raises_is_raised():
    with pytest.raises(InvalidInputError, match="has no facets"):
        run(HeavyWork(), partial(describe, owners_N=np.arange(2)), np.zeros((2, 3)))
    with pytest.raises(ZeroDivisionError):
        run(HeavyWork(), divmod, 1, 0)


def test_work_above_its_memory_is_refused():
    heavy = HeavyWork(max_bytes=256 * MIB)
    with pytest.raises(OverloadedError, match="more memory"):
        run(heavy, bytes, 512 * MIB)
    assert len(run(heavy, bytes, MIB)) == MIB


def test_a_process_that_aborts_for_want_of_memory_is_no_internal_error():
    with pytest.raises(OverloadedError, match="more memory"):
        run(HeavyWork(), os.abort)


def test_work_ends_with_its_call(tmp_path):
    heavy, call, outcomes, begun = HeavyWork(), CallContext(caller="a"), [], tmp_path / "begun"
    code = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(60)"

    def work():
        try:
            run(heavy, exec, code, call=call)
        except CallCancelledError as error:
            outcomes.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(begun.exists)
    call.end()
    thread.join(10)
    assert outcomes and run(heavy, os.getpid)
    with pytest.raises(DeadlineExceededError):
        run(heavy, time.sleep, 60, call=CallContext(caller="a", deadline=time.monotonic() + 1))


def test_others_wait_and_too_many_are_refused():
    heavy, answers, refused = HeavyWork(max_waiting=1), [], []

    def work():
        try:
            answers.append(run(heavy, time.sleep, 0.5))
        except OverloadedError as error:
            refused.append(error.retry_after_s)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(answers) == 2 and len(refused) == 1 and refused[0] > 0
