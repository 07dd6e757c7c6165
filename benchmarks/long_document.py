"""One document of thousands of pages: ``python -m benchmarks.long_document --corpus FILE``; JSON on standard output.

A real server process and a client. While the document is encoded, and once more while it is written where ``--kill
write`` is asked for, the server is killed: nothing of it may be there then. It is stored, found with the number of its
part, read back and deleted. Pages are of Wikipedia, about 2,500 bytes each; three of them say something that no other
page does.
"""

import argparse
import lzma
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from facets_client import Document, FacetsClient
from facets_client.errors import FacetsClientError

from benchmarks.callers import watching
from benchmarks.measuring import print_report
from benchmarks.server import Server, serving

_PAGE_CHARS = 2500
_TIMEOUT_S = 3600.0
_SAID = (
    "The toll of the ferry at Wexmoor was paid in smoked eels until the bridge opened.",
    "Nobody may enter the beacon of Tarrowhead without the written leave of the harbour master.",
    "The clock of Ambrecht runs eleven minutes slow since lightning struck its tower.",
)
_ASKED = (
    "how did people pay the ferry at Wexmoor",
    "who allows visits to the beacon of Tarrowhead",
    "why is the clock of Ambrecht slow",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="shard of articles, .txt.xz")
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--model", help="of the collection (default: the server's)")
    parser.add_argument("--kill", choices=("encoding", "write", "none"), default="encoding", help="when to kill it")
    parser.add_argument("--kill-after", type=float, default=20.0, help="seconds of the encoding until it is killed")
    options = parser.parse_args(arguments)
    book, places = made_book(options.corpus, options.pages)
    report: dict[str, object] = {"pages": options.pages, "bytes": len(book.encode()), "chars": len(book)}
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        with serving(None, data) as server, FacetsClient(server.target, timeout_s=_TIMEOUT_S) as client:
            client.create_collection("books", model=options.model or "")
            client.upsert("books", [Document("short", "A short document that was there before.")])
            if options.kill != "none":
                report["killed"] = killed(server, client, book, kill_when(options, data))
        if options.kill != "none":
            with serving(None, data) as server, FacetsClient(server.target, timeout_s=_TIMEOUT_S) as client:
                report["after_kill"] = [document.id for document in client.list_documents("books")]
        with serving(None, data) as server, FacetsClient(server.target, timeout_s=_TIMEOUT_S) as client:
            report |= lived(server, client, book, places)
            report["store_bytes"] = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
    print_report(report)


def made_book(corpus: Path, num_pages: int) -> tuple[str, list[int]]:
    """A text of so many pages between form feeds, and where it says each of ``_SAID``."""
    with lzma.open(corpus, "rt", encoding="utf-8") as file:
        source = file.read(num_pages * _PAGE_CHARS)
    size = len(source) // num_pages
    pages = [source[at * size : (at + 1) * size].replace("\f", " ") for at in range(num_pages)]
    for number, said in zip((num_pages // 5, num_pages // 2, num_pages * 9 // 10), _SAID, strict=True):
        middle = pages[number].find(". ", size // 2) + 2
        pages[number] = f"{pages[number][:middle]}{said} {pages[number][middle:]}"
    book = "\f".join(pages)
    return book, [book.index(said) for said in _SAID]


def kill_when(options: argparse.Namespace, data: Path) -> Callable[[float], bool]:
    """Tells from the seconds since the call began whether the time to kill the server has come."""
    log = data / "documents.sqlite3-wal"
    before = log.stat().st_size if log.exists() else 0
    enough = before + options.pages * _PAGE_CHARS  # of about three times that
    if options.kill == "encoding":
        return lambda seconds: seconds > options.kill_after
    return lambda _: log.exists() and log.stat().st_size > enough


def killed(server: Server, client: FacetsClient, book: str, is_time: Callable[[float], bool]) -> dict[str, object]:
    """Kills the server while the book is stored."""
    errors: list[str] = []

    def store() -> None:
        try:
            client.upsert("books", [Document("book", book)])
        except FacetsClientError as error:
            errors.append(type(error).__name__)

    caller = threading.Thread(target=store)
    started = time.monotonic()
    caller.start()
    while caller.is_alive() and not is_time(time.monotonic() - started):
        caller.join(0.002)
    was_at_work = caller.is_alive()
    os.kill(server.pid, signal.SIGKILL)
    seconds = time.monotonic() - started
    caller.join(_TIMEOUT_S)
    return {"was_at_work": was_at_work, "after_s": round(seconds, 1), "caller_saw": errors}


def lived(server: Server, client: FacetsClient, book: str, places: Sequence[int]) -> dict[str, object]:
    """Stores the book, finds its parts, reads and deletes it."""
    report: dict[str, object] = {"memory_mb_at_start": int(server.peak_mib())}
    with watching(server.target, server.pid) as watched:
        report["upsert_s"] = seconds_of(lambda: client.upsert("books", [Document("book", book)]))
    report |= {"memory_mb_upsert": int(server.peak_mib()), "health_ms_most": round(max(watched.health_ms))}
    answers: dict[str, object] = {}
    for mode in ("hybrid", "facets", "lexical"):
        started = time.perf_counter()
        results = client.search("books", _ASKED, mode=mode, top_k=3)
        seconds = time.perf_counter() - started
        right, shown = 0, []
        for hits, place in zip(results, places, strict=True):
            part = hits[0].part if hits else None
            right += part is not None and part.start <= place < part.end
            shown.append(part and {"number": hits[0].part_number, "page": part.page})
        answers[mode] = {"right": right, "of": len(places), "s": round(seconds, 2), "parts": shown}
    report["answers"] = answers
    report["get_s"] = seconds_of(lambda: client.get_documents("books", ["book"]))
    (found,) = client.get_documents("books", ["book"]).documents
    report |= {"parts": len(found.parts), "is_what_was_stored": found.text == book}
    report["delete_s"] = seconds_of(lambda: client.delete_documents("books", ["book"]))
    report["left"] = [document.id for document in client.list_documents("books")]
    return {**report, "memory_mb_most": int(server.peak_mib())}


def seconds_of(work: Callable[[], object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    work()
    return round(time.perf_counter() - started, 1)


if __name__ == "__main__":
    main()
