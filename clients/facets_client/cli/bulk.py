"""What the commands that go through a whole file have in common: options, progress, notes, exit codes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from facets_client.cli.failures import CommandError, ExitCode, Failure, without_noise
from facets_client.cli.output import count_of, progress_bar
from facets_client.cli.settings import Settings
from facets_client.errors import FacetsClientError
from facets_client.load.batches import Place, RejectedFile, StateFile
from facets_client.load.runner import BulkReport, BulkRunner, BulkSettings, BulkTask, Progress
from facets_client.load.source import BulkSource

ItemT = TypeVar("ItemT")

InputArgument = Annotated[str, typer.Argument(help="JSONL, plain, gzip or xz; - reads standard input.")]
BatchOption = Annotated[int, typer.Option(help="Records of one request.", min=1)]
WindowOption = Annotated[int, typer.Option(help="Requests under way at the same time.", min=1)]
RejectedOption = Annotated[Path | None, typer.Option(help="Where rejected records go.  [default: FILE.rejected.jsonl]")]
ResumeOption = Annotated[
    bool, typer.Option("--resume/--restart", help="Go on where an interrupted run stopped, or start over.")
]
WaitOption = Annotated[float, typer.Option(help="Seconds to wait for a server that is away or full.", min=0)]
ProgressOption = Annotated[bool | None, typer.Option(help="Progress bar; by default only on a terminal.")]


@contextmanager
def telling_waits(settings: Settings) -> Iterator[Callable[[str], None]]:
    """Takes why a server is waited for, empty once it answers: said once, then a quiet line moves on a terminal."""
    with ExitStack() as line:
        is_told = False

        def tell(why: str) -> None:
            nonlocal is_told
            if not why:
                line.close()
            elif not is_told:
                settings.note(f"waiting for the server: {without_noise(why)}")
                if not (settings.json or settings.quiet):
                    line.enter_context(Console(stderr=True).status("waiting, Ctrl-C ends it"))
            is_told = bool(why)

        yield tell


def bulk_input(
    settings: Settings, source: BulkSource, rejected: Path | None, *, paths: Sequence[str] = ()
) -> "BulkInput":
    """An opened input with its rejected file, which must be none of its files: those of ``paths``, or the only one."""
    path = rejected or _rejected_path(source.name)
    if path.resolve() in {Path(name).resolve() for name in paths or (source.name,) if name != "-"}:
        raise typer.BadParameter(f"--rejected must not be the input itself, got {str(path)!r}")
    return BulkInput(settings, source, path)


def _rejected_path(name: str) -> Path:
    """Beside a file; of a folder's files and of standard input in the working directory."""
    if name == "-":
        return Path("stdin.rejected.jsonl")
    return Path("index.rejected.jsonl") if Path(name).is_dir() else Path(f"{name}.rejected.jsonl")


@dataclass(frozen=True, slots=True)
class BulkInput:
    """An opened input, and where its rejected records go."""

    settings: Settings
    source: BulkSource
    rejected_path: Path

    @property
    def full_name(self) -> str:
        """Absolute path, or ``-``."""
        return self.source.name if self.source.name == "-" else str(Path(self.source.name).resolve())

    def identity(self, **more: object) -> dict[str, object]:
        """What this input, with whatever else is named, differs by from others."""
        return {"size": self.source.size, "head_sha256": self.source.head_digest, **more}

    def run(
        self,
        task: BulkTask[ItemT],
        bulk: BulkSettings,
        *,
        state_file: StateFile | None,
        resume: bool,
        progress: bool | None,
        done: str,
        may_go_on: Callable[[Place], bool] = lambda place: True,
    ) -> BulkReport:
        """Runs a task over the input, from the saved place or from the beginning; without a file there is no place.

        ``done`` is what became of the records that were taken, e.g. ``stored``; ``may_go_on`` tells whether what a
        place says is done is still there.
        """
        place = self._first_place(state_file, done, may_go_on) if resume and state_file else Place()
        rejected = RejectedFile(self.rejected_path, keep_bytes=place.rejected_bytes)
        size, waiting = self.source.size, ""
        with progress_bar(shown=False if self.settings.quiet else progress, counted="percent") as bar:
            shown = bar.add_task("", total=size)

            def show(now: Progress) -> None:
                nonlocal waiting
                bar.update(shown, completed=now.raw_position, description=_progress(now, size, done))
                if now.waiting and not waiting:
                    self.settings.note(f"waiting for the server: {without_noise(now.waiting)}")
                waiting = now.waiting

            runner = BulkRunner(
                task,
                self.source,
                rejected=rejected,
                settings=bulk,
                place=place,
                state_file=state_file,
                on_progress=show,
            )
            try:
                return runner.run()
            except KeyboardInterrupt:
                sentence = f"interrupted {_place(runner.place, done)}; the same command goes on from there"
                failure = Failure(sentence=sentence, exit_code=ExitCode.INTERRUPTED, code="CANCELLED")
                raise CommandError(failure) from None
            except FacetsClientError:
                self.settings.note(f"stopped {_place(runner.place, done)}; the same command goes on from there")
                raise

    def rejected_file(self, place: Place) -> str | None:
        """Name of the rejected file; None when nothing was rejected."""
        return str(self.rejected_path) if place.num_rejected else None

    def end(self, place: Place) -> None:
        """Ends the command with the exit code that rejected records have."""
        if place.num_rejected:
            rejected = count_of(place.num_rejected, "record was", "records were")
            self.settings.note(f"{rejected} rejected, see {self.rejected_path}")
            raise typer.Exit(ExitCode.REJECTED)

    def _first_place(self, state_file: StateFile, done: str, may_go_on: Callable[[Place], bool]) -> Place:
        saved = state_file.load()
        if saved is None:
            return Place()
        if saved.identity != state_file.identity:
            self.settings.note("the input or what is done with it changed since the interrupted run: starting over")
            return Place()
        if not may_go_on(saved.place):
            return Place()
        if saved.place.line or saved.place.file:
            self.settings.note(f"going on {_place(saved.place, done)}")
        return saved.place


def _progress(now: Progress, size: int | None, done: str) -> str:
    """Such as ``400 of about 1,000 records: 398 stored, 2 rejected``."""
    place = now.place
    left = size is not None and 0 < now.raw_position < size
    total = f" of about {place.num_records * (size or 0) // now.raw_position:,}" if left else ""
    read = f"{place.num_records:,}{total} records" if total else count_of(place.num_records, "record")
    text = f"{read}: {place.num_done:,} {done}, {place.num_rejected:,} rejected"
    return f"{text} {now.waiting}".strip()


def _place(place: Place, done: str) -> str:
    where = f"line {place.line} of file {place.file + 1}" if place.file else f"line {place.line}"
    return f"after {where} ({place.num_done} {done}, {place.num_rejected} rejected)"
