from collections import Counter

import pytest
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.fair_queue import FairQueue, Waiter


def of(caller, weight=1.0):
    return CallContext(caller=caller, weight=weight)


def taken(queue, num):
    return [queue.take().call.caller for _ in range(num)]


def test_callers_take_turns_however_many_calls_each_has():
    queue = FairQueue()
    for caller in ["many"] * 400 + ["few", "few", "other"]:
        queue.put(Waiter(of(caller)))
    assert sorted(taken(queue, 3)) == ["few", "many", "other"]
    assert sorted(taken(queue, 2)) == ["few", "many"]
    assert set(taken(queue, 398)) == {"many"}  # alone it has everything
    assert queue.take() is None and len(queue) == 0


def test_who_comes_begins_where_the_others_are():
    queue = FairQueue()
    for _ in range(50):
        queue.put(Waiter(of("a")))
    assert taken(queue, 20) == ["a"] * 20
    for _ in range(50):
        queue.put(Waiter(of("b")))
    assert Counter(taken(queue, 20)) == {"a": 10, "b": 10}  # no credit for the time before


def test_leaving_and_coming_back_buys_nothing():
    queue, had = FairQueue(), Counter()
    for _ in range(100):
        queue.put(Waiter(of("stays")))
    for _ in range(40):
        if "goes" not in [waiter.call.caller for waiter in queue.snapshot()]:
            queue.put(Waiter(of("goes")))
        had[queue.take(cost=lambda waiter: 1.0 if waiter.call.caller == "stays" else 3.0).call.caller] += 1
    assert had["goes"] == pytest.approx(10, abs=1)  # three times as dear, a third as often


def test_shares_go_by_weight_and_by_cost():
    queue = FairQueue()
    for caller, weight in (("light", 1.0), ("heavy", 3.0)):
        for _ in range(100):
            queue.put(Waiter(of(caller, weight)))
    assert Counter(taken(queue, 40)) == {"heavy": 30, "light": 10}


def test_the_first_end_of_a_wait_counts():
    queue, ended = FairQueue(), []
    waiter = Waiter(CallContext())
    queue.put(waiter)
    waiter.when_ended(lambda: ended.append(1))
    assert waiter.end() and not waiter.end(ValueError("late"))
    waiter.wait()
    waiter.when_ended(lambda: ended.append(2))
    assert ended == [1, 2]
