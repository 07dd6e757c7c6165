import threading

import pytest
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import CallCancelledError
from facets_server.runtime.fair_queue import FairLock, QueueFullError

from facets.errors import NotReadyError


def wait_for(condition):
    for _ in range(10_000):
        if condition():
            return
        threading.Event().wait(0.001)
    raise AssertionError("the condition did not come true within 10 s")


def start(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def of(caller, weight=1.0):
    return CallContext(caller=caller, weight=weight)


def test_the_lock_goes_to_whoever_has_waited_longest_and_a_second_hold_comes_after_the_others():
    lock, order, threads = FairLock(), [], []

    def work(name, num_holds):
        for _ in range(num_holds):
            with lock.hold(CallContext()):
                order.append(name)

    lock.acquire(CallContext())
    for place, (name, num_holds) in enumerate([("bulk", 3), ("single", 1), ("other", 1)]):
        threads.append(start(lambda name=name, num_holds=num_holds: work(name, num_holds)))
        wait_for(lambda place=place: lock.num_waiting == place + 1)
    lock.release(CallContext())
    for thread in threads:
        thread.join(10)
    assert order[:3] == ["bulk", "single", "other"] and order[3:] == ["bulk", "bulk"]
    assert lock.is_idle()


def test_a_lock_keeps_places_for_whoever_comes():
    lock = FairLock(8, num_reserved=2)
    for _ in range(6):
        lock.acquire(of("many"))
    waiting = start(lambda: lock.acquire(of("many")))
    wait_for(lambda: lock.num_waiting == 1)
    lock.acquire(of("other"))  # at once
    assert (lock.num_held, lock.num_waiting) == (7, 1)
    lock.release(of("many"))
    assert lock.num_waiting == 1  # the place of the other one counts
    lock.release(of("other"))
    waiting.join(10)
    for _ in range(6):
        lock.release(of("many"))
    assert lock.is_idle()


def test_in_a_full_queue_who_has_most_places_gives_one_up():
    lock, refused = FairLock(), []
    lock.acquire(of("many"))

    def ask(call):
        try:
            lock.acquire(call, max_waiting=3)
        except QueueFullError:
            refused.append(call.caller)
        else:
            lock.release(call)

    threads = []
    for place in range(3):
        threads.append(start(lambda: ask(of("many"))))
        wait_for(lambda place=place: lock.num_waiting == place + 1)
    ask(of("many"))
    assert refused == ["many"]
    threads.append(start(lambda: ask(of("other"))))
    wait_for(lambda: refused == ["many", "many"])
    assert lock.num_waiting == 3
    lock.release(of("many"))
    for thread in threads:
        thread.join(10)
    assert len(refused) == 2 and lock.is_idle()


def test_a_waiter_that_gave_up_is_passed_over():
    lock, outcome = FairLock(), []
    lock.acquire(CallContext())
    gives_up = CallContext()

    def ask(call):
        try:
            lock.acquire(call)
            outcome.append("held")
        except CallCancelledError:
            outcome.append("gave up")

    first = start(lambda: ask(gives_up))
    wait_for(lambda: lock.num_waiting == 1)
    second = start(lambda: ask(CallContext()))
    wait_for(lambda: lock.num_waiting == 2)
    gives_up.end()
    first.join(10)
    assert lock.num_waiting == 1
    lock.release(CallContext())
    second.join(10)
    assert outcome == ["gave up", "held"]


def test_a_closed_lock_refuses_those_who_wait_and_those_who_come():
    lock, outcome = FairLock(), []
    lock.acquire(CallContext())

    def ask():
        try:
            lock.acquire(CallContext())
        except NotReadyError as error:
            outcome.append(error)

    thread = start(ask)
    wait_for(lambda: lock.num_waiting == 1)
    lock.close()
    thread.join(10)
    assert len(outcome) == 1
    with pytest.raises(NotReadyError):
        lock.acquire(CallContext())
    lock.release(CallContext())
    with pytest.raises(NotReadyError):
        lock.acquire(CallContext())
