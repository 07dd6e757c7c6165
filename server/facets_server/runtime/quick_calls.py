"""Small calls that a model answers: begun and answered on the event loop, without a worker thread each.

A handler of such a method gives a ``PendingReply`` in place of its reply: the work is in the model's queue, and the
reply is made when the model has answered. Whoever called the handler waits: a worker thread for a large request,
the event loop itself for a small one, which saves two changes of threads and half of a call's processor time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from facets_server.runtime.fair_queue import Waiter

__all__ = ["MAX_QUICK_BYTES", "HasQuickCalls", "IsQuick", "PendingReply"]

MAX_QUICK_BYTES = 2048  # of a request: what is read on the event loop keeps no other call for long

IsQuick = Callable[[Any], bool]  # a request of no more than MAX_QUICK_BYTES -> whether beginning it never waits


@runtime_checkable
class HasQuickCalls(Protocol):
    """A servicer with such methods.

    Attributes:
        quick_calls: Name of each -> which of its small requests never wait for a lock or a disk when they begin.
    """

    quick_calls: Mapping[str, IsQuick]


@dataclass(frozen=True, slots=True)
class PendingReply:
    """A reply for which a model is still at work.

    Attributes:
        waiter: Ends when the model has answered or the call has ended.
        finish: Makes the message after that; raises what the model raised.
    """

    waiter: Waiter
    finish: Callable[[], Any]

    def result(self) -> Any:
        """Waits for the reply; raises what ``Waiter.wait`` raises."""
        self.waiter.wait()
        return self.finish()
