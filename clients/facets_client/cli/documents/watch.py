"""``facets watch``: a folder kept in a collection."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from facets_client.adapters.exported import whole
from facets_client.cli.bulk import RejectedOption, WaitOption, telling_waits
from facets_client.cli.documents.index import (
    Creation,
    FormatOption,
    IdOption,
    IdsOption,
    PayloadOption,
    TextOption,
    TitleOption,
    chosen_columns,
    create_time,
)
from facets_client.cli.failures import ExitCode
from facets_client.cli.options import SearchFieldOption, parse_search_fields
from facets_client.cli.output import count_of, print_json
from facets_client.cli.settings import Settings, settings_of
from facets_client.client import FacetsClient
from facets_client.documents.bulk import IndexTask
from facets_client.load.batches import Place, RejectedFile, default_state_path
from facets_client.load.files import DocumentFiles
from facets_client.load.formats import FormatName, InputFile, find_files
from facets_client.load.records import ReadOptions, Record, Rejection
from facets_client.load.runner import BulkRunner, BulkSettings, call_patiently
from facets_client.load.source import InputError

_ROUND = 256  # files of one round, after which what is stored is remembered
ResultT = TypeVar("ResultT")
Mark = tuple[int, int]  # when a file was changed, in nanoseconds, and its bytes


def watch(
    context: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="With all that is below it.", show_default=False)],
    collection: Annotated[str, typer.Option("--collection", "-c", help="Where to store.", show_default=False)],
    create: Annotated[bool, typer.Option("--create", help="Make the collection if it is not there.")] = False,
    model: Annotated[str, typer.Option(help="Model of a collection made by --create.")] = "",
    search_field: SearchFieldOption = None,
    text: TextOption = None,
    title: TitleOption = "",
    id_column: IdOption = "",
    payload: PayloadOption = None,
    ids: IdsOption = None,
    form: FormatOption = None,
    every_s: Annotated[float, typer.Option(help="Seconds between two looks at the folder.", min=0.1)] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, do what that takes, and end.")] = False,
    rejected: RejectedOption = None,
    max_wait_s: WaitOption = 300.0,
) -> None:
    """Keep a collection as a folder is: store what is new or has changed, delete what has vanished.

    Files are read as by `facets index`; ids that are made begin with the path below the folder. A file is stored once
    it has stopped changing. What is stored is remembered: the same command goes on where it ended, and deletes what
    has vanished meanwhile. Documents that came another way are left alone. Ctrl-C ends it.

    \b
    Examples:
      facets watch handbook/ -c handbook --create
      facets watch /srv/tickets -c tickets --text body --title subject --every-s 10
      facets watch handbook/ -c handbook --once
    """
    settings = settings_of(context)
    if not os.path.isdir(folder):
        raise typer.BadParameter(f"{folder} is no folder; `facets index` stores single files")
    choice = chosen_columns(text, title, id_column, payload, ids)
    bulk = BulkSettings(max_wait_s=max_wait_s)
    creation = Creation(create, model, parse_search_fields(search_field))
    with settings.connect(watched=False) as client:
        store = _Store(settings, client, bulk, collection=collection)
        made = store.patiently(lambda: create_time(client, collection, creation))
        path = default_state_path(os.environ, "watch", client.target, collection, os.path.realpath(folder))
        kept = _Kept.load(path, made)
        files = _Folder(folder, form, kept)
        reading = ReadOptions(tell=settings.note)
        store.read = lambda some: DocumentFiles(some, reading, choice=choice, form=form)
        store.rejected_path = rejected or Path("watch.rejected.jsonl")
        with contextlib.suppress(KeyboardInterrupt):
            _follow(files, store, kept, every_s=None if once else every_s)
        settings.note(f"{count_of(len(kept.files), 'file')} of {folder} in {collection}")
    if once and store.num_rejected:
        raise typer.Exit(ExitCode.REJECTED)


def _follow(folder: "_Folder", store: "_Store", kept: "_Kept", *, every_s: float | None) -> None:
    """Looks at the folder and does what that takes; once where there is no pause."""
    before: dict[str, Mark] | None = None
    while True:
        now = folder.look()
        if now is not None:
            # What is still being written is left for the next look.
            ready = {path: mark for path, mark in now.items() if every_s is None or (before or {}).get(path) == mark}
            changed = [path for path, mark in ready.items() if kept.mark(path) != mark]
            gone = [path for path in kept.files if path not in now]
            for start in range(0, max(len(changed), bool(gone)), _ROUND):
                some = changed[start : start + _ROUND]
                store.bring(
                    [InputFile(path, folder.label(path)) for path in some], gone, {p: now[p] for p in some}, kept
                )
                gone = []
        before = now
        if every_s is None:
            return
        time.sleep(every_s)


@dataclass
class _Kept:
    """What is stored of a folder.

    Attributes:
        path: Of the file that says so.
        made: When the collection was made: of another one nothing is known.
        files: Path -> time and size of the file as it was stored, and the ids of its documents.
    """

    path: Path
    made: str
    files: dict[str, tuple[Mark, list[str]]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, made: str) -> "_Kept":
        """What was saved; nothing where that is of another collection or cannot be read."""
        try:
            saved = json.loads(path.read_bytes())
            if saved["made"] == made:
                files = {name: ((mark[0], mark[1]), list(ids)) for name, (mark, ids) in saved["files"].items()}
                return cls(path, made, files)
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            pass  # to store everything once more is always safe
        return cls(path, made)

    def save(self) -> None:
        """Replaces what was saved."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with whole(self.path) as path:
            path.write_text(json.dumps({"made": self.made, "files": self.files}), encoding="utf-8")

    def mark(self, path: str) -> Mark | None:
        """Of a file as it was stored."""
        return self.files[path][0] if path in self.files else None


class _Folder:
    """A folder that is looked at again and again.

    A folder that is away, or another one since its disk was taken out, says nothing about its files.
    """

    def __init__(self, path: str, form: FormatName | None, kept: _Kept) -> None:
        self._path = path
        self._form = form
        self._device = os.stat(path).st_dev
        if kept.files and not self.look():
            known = count_of(len(kept.files), "file")
            raise InputError(
                f"{path} has no files, and had {known} when it was last watched: nothing is deleted",
                hint="delete the collection if that is meant",
            )

    def look(self) -> dict[str, Mark] | None:
        """Path -> mark of every file there is now; None: the folder is away."""
        found: dict[str, Mark] = {}
        try:
            if os.stat(self._path).st_dev != self._device:
                return None
            files = find_files([self._path], self._form)
        except FileNotFoundError:
            return None
        except InputError:
            return {} if os.path.isdir(self._path) else None  # nothing to read in it
        for file in files:
            try:
                stat = os.stat(file.path)
            except FileNotFoundError:
                continue
            found[file.path] = (stat.st_mtime_ns, stat.st_size)
        return found

    def label(self, path: str) -> str:
        """Path below the folder, which ids begin with: it stays the same whatever else comes."""
        return Path(path).relative_to(self._path).as_posix()


class _Store:
    """Stores and deletes the documents of files, whatever the server does meanwhile."""

    read: Callable[[Sequence[InputFile]], DocumentFiles]
    rejected_path: Path
    num_rejected = 0

    def __init__(self, settings: Settings, client: FacetsClient, bulk: BulkSettings, *, collection: str) -> None:
        self._settings = settings
        self._client = client
        self._bulk = bulk
        self._collection = collection

    def patiently(self, call: Callable[[], ResultT]) -> ResultT:
        """A call to a server that may be away for a while."""
        with telling_waits(self._settings) as tell:
            return call_patiently(call, self._bulk, tell)

    def bring(self, files: list[InputFile], gone: list[str], marks: dict[str, Mark], kept: _Kept) -> None:
        """Stores files, deletes what is of none any more, and remembers it."""
        place, ids = self._stored(files) if files else (Place(), {})
        self.num_rejected += place.num_rejected
        before = {one for path in (*marks, *gone) for one in kept.files.pop(path, ((0, 0), []))[1]}
        kept.files |= {path: (mark, ids.get(path, [])) for path, mark in marks.items()}
        deleted = before - {one for _, listed in kept.files.values() for one in listed}
        num_deleted = 0
        if deleted:
            done = self.patiently(lambda: self._client.delete_documents(self._collection, sorted(deleted)))
            num_deleted = done.num_documents
        kept.save()
        self._tell(files, gone, place, num_deleted)

    def _stored(self, files: list[InputFile]) -> tuple[Place, dict[str, list[str]]]:
        ids: dict[str, list[str]] = {}

        def reading(place: Place, max_text_bytes: int) -> Iterator[Record | Rejection]:
            for item in documents.read(place, max_text_bytes):
                if isinstance(item, Record):
                    ids.setdefault(files[item.file].path, []).append(item.id)
                yield item

        size = self.rejected_path.stat().st_size if self.rejected_path.is_file() else 0
        with self.read(files) as documents, telling_waits(self._settings) as tell:
            runner = BulkRunner(
                IndexTask(self._client, reading, self._collection, settings=self._bulk),
                documents,
                rejected=RejectedFile(self.rejected_path, keep_bytes=size),
                settings=self._bulk,
                place=Place(rejected_bytes=size),
                state_file=None,
                on_progress=lambda now: tell(now.waiting),
            )
            try:
                return runner.run().place, ids
            except InputError as error:  # the only file cannot be read: it is tried again when it changes
                self._settings.note(str(error))
                return Place(num_records=1, num_rejected=1), {}

    def _tell(self, files: list[InputFile], gone: list[str], place: Place, num_deleted: int) -> None:
        if self._settings.json:
            counts = {"files_stored": len(files), "num_stored": place.num_done, "num_rejected": place.num_rejected}
            print_json({**counts, "files_gone": len(gone), "num_deleted": num_deleted})
            return
        parts = [f"{count_of(len(files), 'file')}: {count_of(place.num_done, 'document')} stored"] if files else []
        parts += [f"{place.num_rejected:,} rejected, see {self.rejected_path}"] if place.num_rejected else []
        parts += [f"{count_of(len(gone), 'file')} gone"] if gone else []
        parts += [f"{count_of(num_deleted, 'document')} deleted"] if num_deleted else []
        self._settings.note(", ".join(parts))
