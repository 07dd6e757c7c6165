"""The lock for many readers or one writer: nobody is kept out for longer than one write."""

import threading
import time
from collections.abc import Callable

from facets.index.locks import ReadWriteLock


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.001)


def test_readers_that_waited_for_a_writer_go_before_its_next_write() -> None:
    lock, order = ReadWriteLock(), list[str]()

    def read(name: str) -> None:
        with lock.read():
            order.append(name)

    readers = [threading.Thread(target=read, args=(name,)) for name in ("first", "second")]
    with lock.write():
        for reader in readers:
            reader.start()
        wait_until(lambda: lock.num_waiting_readers == 2)
    with lock.write():
        order.append("write")
    for reader in readers:
        reader.join()
    assert sorted(order[:2]) == ["first", "second"] and order[2] == "write"


def test_writes_and_reads_of_many_threads_all_end_and_never_overlap() -> None:
    lock, inside, overlaps = ReadWriteLock(), list[str](), list[list[str]]()

    def work(kind: str) -> None:
        for _ in range(200):
            with lock.write() if kind == "write" else lock.read():
                inside.append(kind)
                if "write" in inside and len(inside) > 1:
                    overlaps.append(list(inside))
                inside.remove(kind)

    threads = [threading.Thread(target=work, args=(kind,), daemon=True) for kind in ("read", "write") * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not overlaps


def test_a_reader_that_fails_leaves_the_lock_to_others() -> None:
    lock = ReadWriteLock()
    try:
        with lock.read():
            raise ValueError
    except ValueError:
        pass
    with lock.write():
        pass
