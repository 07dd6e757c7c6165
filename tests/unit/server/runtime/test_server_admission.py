"""Which calls are admitted and which are refused."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import AdmissionConfig
from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError

from facets.errors import OverloadedError


def admit(admission, caller="a"):
    return asyncio.run(admission.admit(CallContext(caller=caller)))


def test_one_caller_leaves_places_to_others():
    admission = Admission(AdmissionConfig(max_concurrent_requests=16, max_queued_requests=0))
    held = [admit(admission) for _ in range(14)]
    with pytest.raises(OverloadedError, match="14 calls run"):
        admit(admission)
    with pytest.raises(OverloadedError) as refused:
        admission.permits.check_room(CallContext(caller="a"))
    assert 0 < refused.value.retry_after_s <= 10
    admission.permits.check_room(CallContext(caller="b"))
    held.append(admit(admission, "b"))
    assert admission.idle_s() == 0.0
    for permit in held:
        permit.close()
    assert admission.is_idle()
    assert 0.0 < admission.idle_s() < 10.0


def test_one_caller_has_its_share_of_the_streams():
    admission = Admission(AdmissionConfig(max_streams=3))
    with admission.stream_slot(CallContext(caller="a")), admission.stream_slot(CallContext(caller="a")):
        with pytest.raises(OverloadedError, match="for one caller"), admission.stream_slot(CallContext(caller="a")):
            pass
    with admission.stream_slot(CallContext(caller="a")):
        assert admission.streams.num_held == 1


@pytest.mark.parametrize(
    ("held", "caller", "num_bytes", "is_taken"),
    [
        ({}, "a", 1000, True),  # alone
        ({"a": 1000}, "b", 1, False),
        ({"a": 40}, "a", 10, True),
        ({"a": 40}, "a", 11, False),  # half of it for one caller
        ({"a": 50}, "b", 37, True),
        ({"a": 50}, "b", 38, False),  # an eighth is kept for small callers
        ({"a": 50, "b": 37}, "c", 12, True),
        ({"a": 50, "b": 37}, "c", 14, False),
    ],
)
def test_the_memory_of_requests_is_bounded_by_caller_and_in_total(held, caller, num_bytes, is_taken):
    memory = Admission(AdmissionConfig(max_memory_bytes=100)).memory
    taken = [memory.taken(CallContext(caller=name), size) for name, size in held.items()]
    call, gone = CallContext(caller=caller), CallContext(caller=caller)
    if is_taken:
        memory.taken(call, num_bytes).close()
        return
    with pytest.raises(OverloadedError) as refused:
        memory.taken(call, num_bytes)
    assert refused.value.retry_after_s > 0
    gone.end()
    with pytest.raises(CallCancelledError):
        memory.taken(gone, num_bytes, waits=True)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(memory.taken, call, num_bytes, waits=True)
        assert not waiting.done()
        for stack in taken:
            stack.close()
        waiting.result(30).close()


@pytest.mark.parametrize("end", ["cancelled", "deadline"])
def test_a_wait_that_ends_early_leaves_nothing_behind(end):
    admission = Admission(AdmissionConfig(max_concurrent_requests=1, max_queued_requests=3))

    async def run():
        held = await admission.admit(CallContext(caller="a"))
        call = CallContext(caller="a")
        if end == "deadline":
            call.deadline = call.started + 0.05
        waiting = asyncio.ensure_future(admission.admit(call))
        while not admission.permits.num_waiting:
            await asyncio.sleep(0)
        if end == "cancelled":
            waiting.cancel()
        with pytest.raises((asyncio.CancelledError, DeadlineExceededError, CallCancelledError)):
            await waiting
        assert not admission.permits.num_waiting
        held.close()
        (await admission.admit(CallContext(caller="a"))).close()

    asyncio.run(run())
    assert admission.is_idle()
