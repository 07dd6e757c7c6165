"""Shared parts of the commands that process a whole file: options, progress, notes, exit codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer import Argument, Option

from facets_client.cli.failures import CommandError, ExitCode
from facets_client.cli.output import count_of, print_json, progress_bar
from facets_client.cli.settings import Settings
from facets_client.errors import FacetsClientError
from facets_client.generated.running import BulkRunner, BulkTask
from facets_client.load.runner import BulkReport, BulkSettings
from facets_client.load.source import BulkSource
from facets_client.load.state import Place, RejectedFile, StateFile

ItemT = TypeVar("ItemT")

JsonLinesArgument = Annotated[str, Argument(help="JSON lines file (plain, gzip or xz); -: standard input.")]
WindowOption = Annotated[int | None, Option(help="Number of concurrent requests.")]
ResumeOption = Annotated[bool, Option("--resume/--restart", help="Continue an interrupted run, or start over.")]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run over a file."""

    rejected: Annotated[Path | None, Option(help="File for rejected records.  [default: FILE.rejected.jsonl]")] = None


@dataclass(frozen=True, kw_only=True)
class BulkOptions(RunOptions):
    """Options of a run that sends records to a server."""

    batch_size: Annotated[int | None, Option(help="Records per request.")] = None
    max_wait_s: Annotated[float | None, Option(help="Seconds to wait for an unreachable or full server.")] = None

    def settings(self, *, batch_size: int | None = None, **others: Any) -> BulkSettings:
        """The settings of a run; ``batch_size`` is the default of the command."""
        batch_size = batch_size if self.batch_size is None else self.batch_size
        others |= {"batch_size": batch_size, "max_wait_s": self.max_wait_s}
        return BulkSettings(**{name: value for name, value in others.items() if value is not None})


class BulkInput:
    """A command's open input and its file for rejected records."""

    def __init__(self, settings: Settings, source: BulkSource, options: RunOptions, paths: Sequence[str] = ()) -> None:
        self.settings = settings
        self.source = source
        name = "stdin" if source.name == "-" else "index" if Path(source.name).is_dir() else source.name
        self.rejected_path = options.rejected or Path(f"{name}.rejected.jsonl")
        if self.rejected_path.resolve() in {Path(path).resolve() for path in paths or (source.name,) if path != "-"}:
            raise typer.BadParameter(f"--rejected must not be the input itself, got {str(self.rejected_path)!r}")

    def identity(self, **more: object) -> dict[str, object]:
        """Values that identify this input, together with those of ``more``."""
        return {"size": self.source.size, "digest": self.source.digest, **more}

    def run(
        self,
        task: BulkTask[ItemT],
        bulk: BulkSettings,
        *,
        state_file: StateFile | None = None,
        resume: bool = True,
        verb: str,
    ) -> BulkReport:
        """Runs a task over the input, from the saved position or from the beginning."""
        place = self._first_place(state_file, verb) if state_file and resume else Place()
        size, is_waiting = self.source.size, False
        again = "to continue" if state_file else "to start again"
        with progress_bar("percent", quiet=self.settings.quiet) as bar:
            bar_task = bar.add_task("", total=size)

            def show(place: Place, position: int, waiting: str) -> None:
                nonlocal is_waiting
                description = f"{_progress_text(place, position, size, verb)} {waiting}".strip()
                bar.update(bar_task, completed=position, description=description)
                if waiting:
                    self.settings.note_waiting(waiting, is_first=not is_waiting)
                is_waiting = bool(waiting)

            runner = BulkRunner(
                task,
                self.source,
                bulk,
                rejected=RejectedFile(self.rejected_path, keep_bytes=place.rejected_bytes),
                state_file=state_file,
                place=place,
                on_progress=show,
            )
            try:
                return runner.run()
            except KeyboardInterrupt:
                message = f"interrupted {_place_text(runner.place, verb)}; run the same command {again}"
                raise CommandError(message, "CANCELLED", ExitCode.INTERRUPTED) from None
            except FacetsClientError:
                self.settings.note(f"stopped {_place_text(runner.place, verb)}; run the same command {again}")
                raise

    def end(self, report: BulkReport, kind: str, sentence: str, **fields: object) -> None:
        """Prints the result of a run over ``kind``, as JSON with more fields; exit code 1 if records were rejected."""
        num_rejected = report.place.num_rejected
        if self.settings.json:
            rates = {"duration_s": report.duration_s, f"{kind}_per_s": report.records_per_s}
            file = str(self.rejected_path) if num_rejected else None
            print_json({**fields, "num_rejected": num_rejected, **rates, "rejected_file": file})
        elif sentence:
            typer.echo(sentence)
        if num_rejected:
            rejected = count_of(num_rejected, "record was", "records were")
            self.settings.note(f"{rejected} rejected, see {self.rejected_path}")
            raise typer.Exit(ExitCode.REJECTED)

    def _first_place(self, state_file: StateFile, verb: str) -> Place:
        saved = state_file.load()
        if saved is None:
            return Place()
        place, is_same_input = saved
        if not is_same_input:
            self.settings.note("the input or what is done with it changed since the interrupted run: starting over")
            return Place()
        if place.line or place.file:
            self.settings.note(f"continuing {_place_text(place, verb)}")
        return place


def _progress_text(place: Place, position: int, size: int | None, verb: str) -> str:
    """Such as ``400 of about 1,000 records: 398 stored, 2 rejected``."""
    records = count_of(place.num_records, "record")
    if size is not None and 0 < position < size:
        records = f"{place.num_records:,} of about {place.num_records * size // position:,} records"
    return f"{records}: {place.num_done:,} {verb}, {place.num_rejected:,} rejected"


def _place_text(place: Place, verb: str) -> str:
    where = f"line {place.line} of file {place.file + 1}" if place.file else f"line {place.line}"
    return f"after {where} ({place.num_done} {verb}, {place.num_rejected} rejected)"
