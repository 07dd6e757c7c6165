"""Callers take turns for rows of a batch, for a model and for permits."""

import asyncio
import threading
import time
import tracemalloc
from collections import Counter

import pytest
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import CallCancelledError, DeadlineExceededError
from facets_server.runtime.fair_queue import FairLock, FairQueue, Turns, Waiter, without_turn
from waiting import wait_until

from facets.errors import NotReadyError, OverloadedError
from facets.language.interruption import check_interrupted


def of(caller, weight=1.0):
    return CallContext(caller=caller, weight=weight)


def queue_of(*calls):
    queue = FairQueue()
    for call in calls:
        queue.put(Waiter(call))
    return queue


def taken(queue, num):
    return Counter(queue.take().call.caller for _ in range(num))


def test_callers_take_turns_however_many_calls_each_has():
    queue = queue_of(*[of("many")] * 400, of("few"), of("few"), of("other"))
    assert taken(queue, 3) == {"few": 1, "many": 1, "other": 1}
    assert taken(queue, 2) == {"few": 1, "many": 1}
    assert taken(queue, 398) == {"many": 398}
    assert queue.take() is None and len(queue) == 0


def test_a_new_caller_starts_at_the_time_of_the_others():
    queue = queue_of(*[of("a")] * 50)
    assert taken(queue, 20) == {"a": 20}
    for _ in range(50):
        queue.put(Waiter(of("b")))
    assert taken(queue, 20) == {"a": 10, "b": 10}


def test_leaving_and_coming_back_gives_no_advantage():
    queue, served = queue_of(*[of("stays")] * 100), Counter()
    for _ in range(40):
        if "goes" not in [waiter.call.caller for waiter in queue.snapshot()]:
            queue.put(Waiter(of("goes")))
        served[queue.take(cost=lambda waiter: 1.0 if waiter.call.caller == "stays" else 3.0).call.caller] += 1
    assert served["goes"] == pytest.approx(10, abs=1)  # three times the cost, a third of the turns


def test_shares_follow_weight():
    queue = queue_of(*[of("light"), of("heavy", 3.0)] * 100)
    assert taken(queue, 40) == {"heavy": 30, "light": 10}


def test_callers_that_are_gone_do_not_fill_the_memory():
    queue = FairQueue()

    def bytes_after(callers):
        for number in callers:
            queue.put(Waiter(of(f"caller-{number}")))
            queue.take()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = bytes_after(range(3000))
        assert bytes_after(range(3000, 15_000)) < before + 400_000  # kept, 12,000 callers take over 1 MB
    finally:
        tracemalloc.stop()


def test_callers_ahead_of_the_others_are_remembered_longest():
    queue = queue_of(of("greedy"))
    queue.take(cost=lambda waiter: 1000.0)
    for number in range(3000):
        queue.put(Waiter(of(f"caller-{number}")))
        queue.take()
    queue.put(Waiter(of("greedy")))
    queue.put(Waiter(of("new")))
    assert taken(queue, 1) == {"new": 1}


class Asker(threading.Thread):
    """Asks for a lock, holds it for a moment, and records the outcome."""

    def __init__(self, lock, call, outcomes):
        super().__init__()
        self._lock, self._call, self._outcomes = lock, call, outcomes
        waiting, num_outcomes = lock.num_waiting, len(outcomes)
        self.start()
        wait_until(lambda: lock.num_waiting > waiting or len(outcomes) > num_outcomes)

    def run(self):
        try:
            self._lock.acquire(self._call)
        except Exception as error:
            self._outcomes.append(type(error))
        else:
            self._outcomes.append(self._call.caller)
            self._lock.release(self._call)


def finished(*askers):
    for asker in askers:
        asker.join(10)


def test_waiters_of_one_caller_get_the_lock_in_their_order():
    lock, order = FairLock(), []
    lock.acquire(CallContext())
    askers = [Asker(lock, of("a", weight), order) for weight in (1.0, 2.0)] + [Asker(lock, of("b"), order)]
    lock.release(CallContext())
    finished(*askers)
    assert sorted(order) == ["a", "a", "b"] and order[-1] == "a"
    assert lock.is_idle()


def test_a_coroutine_refused_while_it_joins_the_queue_does_not_get_the_lock(monkeypatch):
    lock, put = FairLock(), FairQueue.put
    lock.acquire(of("a"))
    monkeypatch.setattr(FairQueue, "put", lambda queue, waiter: (put(queue, waiter), lock.close()))
    with pytest.raises(NotReadyError):
        asyncio.run(lock.acquired(of("b")))


def test_a_lock_keeps_places_for_new_callers():
    lock, outcomes = FairLock(8, num_reserved=2), []
    for _ in range(6):
        lock.acquire(of("many"))
    waiting = Asker(lock, of("many"), outcomes)
    lock.acquire(of("other"))
    assert (lock.num_held, lock.num_waiting) == (7, 1)
    lock.release(of("many"))
    assert lock.num_waiting == 1  # the place of the other caller counts
    lock.release(of("other"))
    finished(waiting)
    assert outcomes == ["many"]


def test_in_a_full_queue_the_caller_with_most_waiters_gives_one_up():
    lock, outcomes = FairLock(max_waiting=3), []
    lock.acquire(of("many"))
    askers = [Asker(lock, of("many"), outcomes) for _ in range(4)]
    assert outcomes == [OverloadedError]
    askers.append(Asker(lock, of("other"), outcomes))
    wait_until(lambda: outcomes == [OverloadedError] * 2)
    assert lock.num_waiting == 3
    lock.release(of("many"))
    finished(*askers)
    assert Counter(outcomes) == {OverloadedError: 2, "many": 2, "other": 1}
    assert lock.is_idle()


def test_waiters_that_end_early_are_passed_over():
    lock, outcomes = FairLock(), []
    lock.acquire(CallContext())
    cancelled = CallContext()
    askers = [Asker(lock, cancelled, outcomes), Asker(lock, of("next"), outcomes)]
    cancelled.end()
    finished(askers[0])
    with pytest.raises(DeadlineExceededError):
        lock.acquire(CallContext(deadline=0.0))
    lock.release(CallContext())
    finished(*askers)
    assert outcomes == [CallCancelledError, "next"]


def test_a_closed_lock_refuses_waiting_and_new_calls():
    lock, outcomes = FairLock(), []
    lock.acquire(CallContext())
    asker = Asker(lock, CallContext(), outcomes)
    lock.close()
    finished(asker)
    assert outcomes == [NotReadyError]
    with pytest.raises(NotReadyError):
        lock.acquire(CallContext())


@pytest.fixture
def short_turns(monkeypatch):
    monkeypatch.setattr("facets_server.runtime.fair_queue.TURN_S", 0.003)


class Worker(threading.Thread):
    """Works for a caller in slices of processor time, and records the caller of each slice."""

    def __init__(self, turns, call, order, *, slices=1, begin=None):
        super().__init__()
        self._turns, self._call, self._order, self._slices, self._begin = turns, call, order, slices, begin
        self.error = None
        self.start()

    def run(self):
        try:
            with self._turns.taken(self._call):
                for _ in range(self._slices):
                    if self._begin is not None:
                        self._begin.wait(10)
                    self._order.append(self._call.caller)
                    until = time.thread_time() + 0.004
                    while time.thread_time() < until:
                        pass
                    check_interrupted()
        except Exception as error:
            self.error = error


def test_long_work_of_one_caller_lets_others_work_in_between(short_turns):
    turns, order, begin = Turns(1), [], threading.Event()
    many = [Worker(turns, of("many"), order, slices=10, begin=begin) for _ in range(3)]
    few = Worker(turns, of("few"), order, slices=3, begin=begin)
    begin.set()
    finished(*many, few)
    assert Counter(order) == {"many": 30, "few": 3}
    assert order.index("few") < 6 and len(order) - order[::-1].index("few") <= 12  # every second slice or so


def test_shares_of_work_follow_weight(short_turns):
    turns, order, begin = Turns(1), [], threading.Event()
    workers = [Worker(turns, of(*who), order, slices=20, begin=begin) for who in [("light", 1.0), ("heavy", 3.0)] * 2]
    begin.set()
    finished(*workers)
    assert 14 <= Counter(order[:24])["heavy"] <= 21  # three of four


def test_work_that_waits_has_no_turn():
    turns, order, go_on = Turns(1), [], threading.Event()

    def wait():
        with turns.taken(of("waits")), without_turn():
            go_on.wait(10)
        order.append("waited")

    waits = threading.Thread(target=wait)
    waits.start()
    finished(Worker(turns, of("other"), order))
    go_on.set()
    finished(waits)
    assert order == ["other", "waited"]


def test_threads_that_wait_for_a_lock_lose_their_turns_to_other_callers():
    turns, order, lock = Turns(1), [], threading.Lock()
    lock.acquire()

    def wait():
        with turns.taken(of("waits")):
            order.append("waits")
            with lock:
                pass

    waits = [threading.Thread(target=wait) for _ in range(12)]
    for thread in waits:
        thread.start()
    wait_until(lambda: len(order) > 1)
    holds = Worker(turns, of("holds"), order)
    before = len(order)
    finished(holds)
    lock.release()
    finished(*waits)
    assert order.index("holds") <= before + 2


def test_work_on_a_busy_machine_keeps_its_turn():
    turns, order, done = Turns(1), [], threading.Event()

    def hog():
        while not done.is_set():
            pass

    def work():
        with turns.taken(of("slow")):
            until = time.thread_time() + 0.07
            while time.thread_time() < until:
                pass
            order.append("slow")

    hogs = [threading.Thread(target=hog) for _ in range(2)]
    slow = threading.Thread(target=work)
    for thread in (*hogs, slow):
        thread.start()
    finished(Worker(turns, of("other"), order), slow)
    done.set()
    finished(*hogs)
    assert order == ["slow", "other"]


def test_work_whose_call_ends_stops_waiting_for_its_turn():
    turns, order, begin = Turns(1), [], threading.Event()
    first = Worker(turns, of("first"), order, begin=begin)
    wait_until(lambda: not turns.num_waiting)
    call = of("second")
    second = Worker(turns, call, order)
    call.end()
    finished(second)
    assert isinstance(second.error, CallCancelledError)
    begin.set()
    finished(first)
    assert order == ["first"]
