"""Batches that are one call each, made in threads: what the server refuses is left out and the rest goes on."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from facets_client.core.bulk.batches import Batch, Entry
from facets_client.core.bulk.runner import Settled
from facets_client.core.bulk.state import Place
from facets_client.core.commands import index_of
from facets_client.core.records import Rejection
from facets_client.errors import FacetsClientError, InvalidArgumentError, NotFoundError

__all__ = ["CallTask"]

ItemT = TypeVar("ItemT")
ReplyT = TypeVar("ReplyT")


@dataclass(slots=True)
class _Answers(Generic[ItemT, ReplyT]):
    replies: list[tuple[list[ItemT], ReplyT]] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)


class CallTask(Generic[ItemT, ReplyT]):
    """A task of the bulk runner whose batches are calls.

    Args:
        name: Of the items in a request, e.g. ``papers``.
        read: Place -> the batches after it.
        call: Asks for the items of one batch; from several threads when the window is larger than one.
        take: Keeps a reply, durable on return, and returns what to count; called in the order of the input.
        window: Calls under way at the same time.
        finish: Called after the last batch.
    """

    resume_token = ""

    def __init__(
        self,
        name: str,
        read: Callable[[Place], Iterator[Batch[ItemT]]],
        call: Callable[[list[ItemT]], ReplyT],
        take: Callable[[list[ItemT], ReplyT], Mapping[str, int]],
        *,
        window: int = 1,
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self.read = read
        self._call = call
        self._take = take
        self.finish = finish
        self.max_under_way = window
        self._pool = ThreadPoolExecutor(window, thread_name_prefix="bulk")
        self._under_way: deque[Future[_Answers[ItemT, ReplyT]]] = deque()

    def send(self, batch: Batch[ItemT]) -> None:
        """Makes the call of a batch in a thread."""
        self._under_way.append(self._pool.submit(self._ask, list(batch.entries)))

    def settle(self, batch: Batch[ItemT]) -> Settled:
        """Waits for the oldest call and keeps what it returned."""
        answers = self._under_way.popleft().result()
        totals: Counter[str] = Counter()
        for items, reply in answers.replies:
            totals.update(self._take(items, reply))
        return Settled(answers.rejections, totals)

    def abandon(self) -> None:
        """Cancels the calls that have not begun."""
        for future in self._under_way:
            future.cancel()
        self._under_way.clear()

    def close(self) -> None:
        """Waits for the calls that are under way."""
        self._pool.shutdown(cancel_futures=True)

    def _ask(self, entries: list[Entry[ItemT]]) -> _Answers[ItemT, ReplyT]:
        """The call without the items that the server refuses."""
        answers: _Answers[ItemT, ReplyT] = _Answers()
        while entries:
            items = [entry.item for entry in entries]
            try:
                answers.replies.append((items, self._call(items)))
                break
            except (InvalidArgumentError, NotFoundError) as error:
                refused = self._refused(error, len(entries))
                if refused:
                    answers.rejections += [entries[i].rejected("refused", reason) for i, reason in refused.items()]
                    entries = [entry for i, entry in enumerate(entries) if i not in refused]
                elif not (isinstance(error, NotFoundError) and error.resource_type == "paper"):
                    raise
                elif len(entries) == 1:
                    answers.rejections.append(entries[0].rejected("refused", error.details))
                    break
                else:  # one of them names a paper that is not there: each alone, to find which
                    for entry in entries:
                        alone = self._ask([entry])
                        answers.replies += alone.replies
                        answers.rejections += alone.rejections
                    break
        return answers

    def _refused(self, error: FacetsClientError, num_items: int) -> dict[int, str]:
        """Place of each item that the server refuses, with the path in the item and the rule: ``title is empty``."""
        refused: dict[int, str] = {}
        for violation in error.field_violations:
            item, _, path = violation.field.partition(".")
            place = index_of(item, self._name)
            if place is not None and place < num_items:
                refused.setdefault(place, f"{path} {violation.description}".lstrip())
        return refused
