"""Checks that a history of one register could have come from a register that does one thing at a time.

Wing and Gong (1993): a history is linearizable if its calls have an order that a sequential register could have
answered, in which no call stands before one that ended before it began. The search takes each call that began before
any other had ended and goes on with the rest. Lowe (2017): two ways to the same set of calls and the same value
continue alike, so each pair is visited once. Several registers are linearizable if each one is (Herlihy and Wing
1990), so each is checked alone.

A write without an answer may or may not have happened, but not after the server was killed: it is not certain, and
ends with the kill. The search may leave it out, and must do so once it has taken a call that began after that end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """One call to a register.

    Attributes:
        began: Start of the call, seconds of one monotonic clock.
        ended: When the answer came, or after which the call cannot take effect.
        value: What was written or read; None: deleted.
        is_write: Whether the call wrote.
        certain: False for a write without an answer.
    """

    began: float
    ended: float
    value: object
    is_write: bool
    certain: bool = True


def is_linearizable(history: Sequence[Access], initial: object = None) -> bool:
    """Whether one register explains the calls in some order.

    Example:
        >>> write, early, late = Access(0, 3, "a", True), Access(1, 2, "a", False), Access(4, 5, None, False)
        >>> is_linearizable([write, early]), is_linearizable([write, late])
        (True, False)
    """
    calls = sorted(history, key=lambda call: call.began)
    states: list[tuple[int, object]] = [(0, initial)]  # calls taken, as bits, and the value of the register
    seen = set(states)
    while states:
        taken, value = states.pop()
        left = [index for index in range(len(calls)) if not taken >> index & 1]
        first_end = min((calls[index].ended for index in left if calls[index].certain), default=math.inf)
        if first_end == math.inf:  # only writes that need not have happened are left
            return True
        for index in left:
            call = calls[index]
            if call.began > first_end:
                break
            if not call.is_write and call.value != value:
                continue
            after = taken | 1 << index
            for other in left:  # these can no longer take effect
                if not calls[other].certain and calls[other].ended < call.began:
                    after |= 1 << other
            state = (after, call.value if call.is_write else value)
            if state not in seen:
                seen.add(state)
                states.append(state)
    return False
