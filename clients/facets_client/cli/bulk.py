"""Shared parts of the commands that process a whole file: options, progress, notes, exit codes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from typer import Argument, Option

from facets_client.cli.failures import CommandError, ExitCode
from facets_client.cli.output import print_json
from facets_client.cli.settings import Settings
from facets_client.core.drawing import count_of, progress_bar
from facets_client.errors import FacetsClientError
from facets_client.generated.running import BulkRunner, BulkTask
from facets_client.load.rows import Rejection
from facets_client.load.runner import BulkReport, BulkSettings
from facets_client.load.source import BulkSource

ItemT = TypeVar("ItemT")

JsonLinesArgument = Annotated[str, Argument(help="JSON lines file (plain, gzip or xz); -: standard input.")]
RejectedOption = Annotated[Path | None, Option(help="File for rejected records.  [default: FILE.rejected.jsonl]")]
BatchSizeOption = Annotated[int, Option(min=1, help="Records per request.")]
WindowOption = Annotated[int, Option(min=1, help="Number of concurrent requests.")]
MaxWaitOption = Annotated[float, Option(min=0, help="Seconds to wait for an unreachable or full server.")]
DEFAULTS = BulkSettings()


class BulkInput:
    """A command's open input and its file for rejected records."""

    def __init__(
        self, settings: Settings, source: BulkSource, rejected: Path | None, paths: Sequence[str] = ()
    ) -> None:
        self.settings = settings
        self.source = source
        self._fault: str | None = None  # why rejected records could not be written
        name = "stdin" if source.name == "-" else "index" if Path(source.name).is_dir() else source.name
        self.rejected_path = rejected or Path(f"{name}.rejected.jsonl")
        if self.rejected_path.resolve() in {Path(path).resolve() for path in paths or (source.name,) if path != "-"}:
            raise typer.BadParameter(f"--rejected must not be the input itself, got {str(self.rejected_path)!r}")

    def run(self, task: BulkTask[ItemT], bulk: BulkSettings, *, verb: str) -> BulkReport:
        """Runs a task over the input."""
        size, is_waiting = self.source.size, False
        with progress_bar("percent", quiet=self.settings.quiet) as bar:
            bar_task = bar.add_task("", total=size)

            def show(report: BulkReport, waiting: str) -> None:
                nonlocal is_waiting
                description = f"{_progress_text(report, size, verb)} {waiting}".strip()
                bar.update(bar_task, completed=report.position, description=description)
                if waiting:
                    self.settings.note_waiting(waiting, is_first=not is_waiting)
                is_waiting = bool(waiting)

            if self.rejected_path.is_file():  # of an earlier run
                self.rejected_path.unlink()
            runner = BulkRunner(task, self.source, bulk, on_rejected=self._keep_rejected, on_progress=show)
            try:
                return runner.run()
            except (KeyboardInterrupt, FacetsClientError) as error:
                so_far = f"after {_progress_text(runner.report, None, verb)}; run the same command again"
                if isinstance(error, FacetsClientError):
                    if runner.report.num_records:
                        self.settings.note(f"stopped {so_far}")
                    raise
                raise CommandError(f"interrupted {so_far}", "CANCELLED", ExitCode.INTERRUPTED) from None

    def _keep_rejected(self, rejections: Sequence[Rejection]) -> None:
        for rejection in rejections:
            fields = {name: getattr(rejection, name) for name in ("line", "id", "reason", "message")}
            if rejection.file:
                fields = {"file": rejection.file, **fields}
            try:
                with self.rejected_path.open("ab") as stream:
                    stream.write(json.dumps(fields).encode("ascii") + b"\n")
            except OSError as error:  # the others are stored all the same
                self._fault = error.strerror

    def end(self, report: BulkReport, kind: str, counts: str, **fields: object) -> None:
        """Prints the result of a run over ``kind``, as JSON with more fields; exit code 1 if records were rejected."""
        num_rejected, speed = report.num_rejected, report.num_done / max(report.duration_s, 1e-9)
        if self.settings.json:
            fields |= {"num_records": report.num_records, "num_rejected": num_rejected}
            rates = {"duration_s": report.duration_s, f"{kind}_per_s": speed}
            file = str(self.rejected_path) if num_rejected and not self._fault else None
            print_json({**fields, **rates, "rejected_file": file})
        elif not self.settings.quiet:
            done = f"{count_of(report.num_done, kind.removesuffix('s'))}: {counts}, {num_rejected:,} rejected"
            typer.echo(f"{done}, {report.duration_s:.1f} s, {speed:.0f} {kind}/s")
        if num_rejected:
            rejected = count_of(num_rejected, "record was", "records were")
            fault = f"; {self.rejected_path} cannot be written: {self._fault} (--rejected FILE names another place)"
            self.settings.note(f"{rejected} rejected{fault if self._fault else f', see {self.rejected_path}'}")
            raise typer.Exit(ExitCode.REJECTED)


def _progress_text(report: BulkReport, size: int | None, verb: str) -> str:
    """Such as ``400 of about 1,000 records: 398 stored, 2 rejected``."""
    records = count_of(report.num_records, "record")
    if size is not None and 0 < report.position < size:
        records = f"{report.num_records:,} of about {report.num_records * size // report.position:,} records"
    return f"{records}: {report.num_done:,} {verb}, {report.num_rejected:,} rejected"
