"""The checker of histories says yes and no as trying out all orders does."""

import pytest

from benchmarks.faults.linearizability import Access, is_linearizable


def write(began: float, ended: float, value: str | None, *, certain: bool = True) -> Access:
    return Access(began, ended, value, is_write=True, certain=certain)


def read(began: float, ended: float, value: str | None) -> Access:
    return Access(began, ended, value, is_write=False)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], True),
        ([read(0, 1, None)], True),
        ([read(0, 1, "a")], False),
        ([write(0, 1, "a"), read(2, 3, "a")], True),
        ([write(0, 1, "a"), read(2, 3, None)], False),  # a stale read
        ([write(0, 5, "a"), read(1, 2, None), read(3, 4, "a")], True),  # it took effect between the reads
        ([write(0, 5, "a"), read(1, 2, "a"), read(3, 4, None)], False),  # and cannot be undone
        ([write(0, 1, "a"), write(2, 6, "b"), write(3, 7, "c"), read(8, 9, "b")], True),
        ([write(0, 1, "a"), write(2, 6, "b"), write(3, 7, "c"), read(8, 9, "a")], False),  # a lost write
        # Two readers disagree on the order of two writes.
        ([write(0, 9, "a"), write(0, 9, "b"), read(1, 2, "a"), read(3, 4, "b"), read(5, 6, "a")], False),
        # The server was killed at 2: the write happened before that, or never.
        ([write(0, 2, "a", certain=False), read(3, 4, "a"), read(5, 6, "a")], True),
        ([write(0, 2, "a", certain=False), read(3, 4, None), read(5, 6, None)], True),
        ([write(0, 2, "a", certain=False), read(3, 4, None), read(5, 6, "a")], False),
        ([write(0, 2, "a", certain=False), read(1, 4, None), read(5, 6, "a")], True),
        ([write(0, 1, "a"), write(2, 3, None), read(4, 5, None)], True),  # None: deleted
    ],
)
def test_known_histories(history: list[Access], expected: bool) -> None:
    assert is_linearizable(history) is expected
    assert is_linearizable(history[::-1]) is expected
