"""Whether what clients saw of one register could have come from one that does one thing at a time.

Wing and Gong (1993): a history is linearizable when its calls can be put in an order that a sequential register could
have answered in, and in which no call stands before one that had ended before it began. So the first of an order is a
call that began before any other had ended; the search takes each such call in turn and goes on with the rest. Lowe
(2017): two ways to the same set of calls and the same value go on alike, so each pair is looked at once.

A history over several registers is linearizable when that of each register is (Herlihy and Wing 1990, locality), so
each is checked by itself.

A write whose answer never came may or may not have happened, but not after the server was killed: it is not certain
and ends with the kill. The search may leave it out, and must, once a call that began after its end has been taken.

Proof that the search is right: it only ever takes a call that began before every certain call left had ended, and whose
own end is not before the beginning of a call taken earlier, so each order that it finds respects the order in time; the
value is followed from call to call, so a sequential register could have answered so. Conversely the first call of any
valid order of what is left is one of those it tries, and leaving out what may no longer be taken loses no order; by
induction it finds one whenever there is one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """One call to a register.

    Attributes:
        began: When it was made, seconds of one monotonic clock.
        ended: When its answer came, or after which it cannot take effect.
        value: What was written, or read.
        is_write: Whether it wrote.
        certain: False: no answer came, and a write may not have happened; such reads are not part of a history.
    """

    began: float
    ended: float
    value: object
    is_write: bool
    certain: bool = True


def is_linearizable(history: Sequence[Access], initial: object = None) -> bool:
    """Whether there is an order of the calls that one register explains.

    Example:
        >>> write, early, late = Access(0, 3, "a", True), Access(1, 2, "a", False), Access(4, 5, None, False)
        >>> is_linearizable([write, early]), is_linearizable([write, late])
        (True, False)
    """
    calls = sorted(history, key=lambda call: call.began)
    looks: list[tuple[int, object]] = [(0, initial)]  # which calls are behind us, as bits, and what the register holds
    seen = set(looks)
    while looks:
        behind, value = looks.pop()
        left = [place for place in range(len(calls)) if not behind >> place & 1]
        first_end = min((calls[place].ended for place in left if calls[place].certain), default=math.inf)
        if first_end == math.inf:  # only writes that need not have happened are left
            return True
        for place in left:
            call = calls[place]
            if call.began > first_end:
                break
            if not call.is_write and call.value != value:
                continue
            after = behind | 1 << place
            for other in left:  # too late for these
                if not calls[other].certain and calls[other].ended < call.began:
                    after |= 1 << other
            look = (after, call.value if call.is_write else value)
            if look not in seen:
                seen.add(look)
                looks.append(look)
    return False
