"""Cutting many things into requests that a server takes."""

from collections.abc import Iterator, Sequence

# Room for the fields of a request beside its items, and for keys and lengths on the wire.
ENVELOPE_BYTES = 4_096
ITEM_BYTES = 16


def slices(sizes: Sequence[int], *, max_items: int, max_bytes: int) -> Iterator[slice]:
    """Cuts a sequence into runs within both limits, in order.

    An item that is over ``max_bytes`` alone gets a run of its own: the server says what is wrong with it.

    Args:
        sizes: Bytes of each item on the wire.
        max_items: Most items of a run; 0: no limit.
        max_bytes: Most bytes of a request; 0: no limit.

    Yields:
        Slices that cover the sequence.

    Example:
        >>> list(slices([5, 5, 5], max_items=2, max_bytes=0))
        [slice(0, 2, None), slice(2, 3, None)]
    """
    budget = max_bytes - ENVELOPE_BYTES if max_bytes else 0
    start = used = 0
    for position, size in enumerate(sizes):
        full = (max_items and position - start == max_items) or (budget and used + size + ITEM_BYTES > budget)
        if full and position > start:
            yield slice(start, position)
            start, used = position, 0
        used += size + ITEM_BYTES
    if start < len(sizes):
        yield slice(start, len(sizes))


def text_bytes(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
