"""Checks that the history of a register could come from one that executes one call at a time.

Wing and Gong (1993): a history is linearizable if its calls can be ordered so that a sequential register gives the same
answers, and no call precedes one that ended before it began. The search tries each call that began before any other
had ended, and continues with the rest. Lowe (2017): two paths to the same set of calls and the same value continue
alike, so each pair is visited once. Several registers are linearizable if each one is (Herlihy and Wing 1990), so
each is checked separately.

A write without an answer may or may not have happened, but not after the server was killed: it is uncertain, and
ends at the kill. The search may leave it out, and must do so once it has taken a call that began after that end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """One call to a register."""

    began: float  # seconds of one monotonic clock
    ended: float  # time of the answer, or the time after which the call cannot take effect
    value: object  # what was written or read; None: deleted
    is_write: bool
    certain: bool = True  # False for a write without an answer


def is_linearizable(history: Sequence[Access]) -> bool:
    """Whether some order of the calls is consistent with one register.

    Example:
        >>> write, early, late = Access(0, 3, "a", True), Access(1, 2, "a", False), Access(4, 5, None, False)
        >>> is_linearizable([write, early]), is_linearizable([write, late])
        (True, False)
    """
    calls = sorted(history, key=lambda call: call.began)
    states: list[tuple[int, object]] = [(0, None)]  # calls taken, as bits, and the value of the register
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
