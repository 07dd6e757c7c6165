"""A whole conference: the best candidates of every paper of a JSONL file, to a CSV file, in bounded memory.

Batches are asked for in parallel and written in the order of the input. Rows go to ``OUT.part``, which becomes ``OUT``
once everything is done; beside it ``OUT.state`` says how far it has come, so that the same command goes on after any
interruption.
"""

import csv
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

from facets_client.client import FacetsClient
from facets_client.generated.types import CandidateKind, Paper
from facets_client.load.batches import Batch, Entry, Place, batches
from facets_client.load.records import Rejection
from facets_client.load.runner import BulkSettings, CallTask
from facets_client.load.source import RecordSource
from facets_client.papers.records import read_papers
from facets_client.papers.results import BulkCandidates, PaperOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkPaperSettings:
    """What to ask for.

    Attributes:
        kind: ``authors`` or ``citations``.
        options: Which candidates, how many, how they are scored.
        model: Name; empty: the server's default model of papers.
        own_excluded: Whether a paper's own authors are left out, when authors are asked for.
        conflicts: Id of a paper -> further candidates left out.
    """

    kind: CandidateKind = "authors"
    options: PaperOptions = field(default_factory=PaperOptions)
    model: str = ""
    own_excluded: bool = True
    conflicts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def digest(self) -> str:
        """Tells these settings from others that give other rows."""
        asked = (self.kind, self.options, self.model, self.own_excluded, sorted(self.conflicts.items()))
        return hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()


class CandidatesFile:
    """The CSV file of candidates on its way; ``task`` fills it.

    Args:
        path: The CSV file to be made.
        settings: What to ask for.

    Attributes:
        part: The file until it is complete.
        state_path: Where the place is kept.
        unknown_candidates: Entries of the candidates that the server knows nobody by, the first of them.
        num_unknown_candidates: How many there are.
        is_resumed: Whether the file was begun by an earlier run.
        unmatched_conflicts: Ids of the conflicts that no paper had so far.
    """

    def __init__(self, path: Path, settings: BulkPaperSettings) -> None:
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self.state_path = path.with_name(path.name + ".state")
        self._settings = settings
        self._stream: TextIO | None = None
        self.is_resumed = False
        self.unknown_candidates: tuple[str, ...] = ()
        self.num_unknown_candidates = 0
        self.unmatched_conflicts = set(settings.conflicts)

    def holds(self, place: Place) -> bool:
        """Whether the rows up to a place are there."""
        try:
            return self.part.stat().st_size >= place.totals.get("out_bytes", 0) > 0
        except OSError:
            return False

    def task(self, client: FacetsClient, source: RecordSource, bulk: BulkSettings) -> CallTask[Paper, BulkCandidates]:
        """The task of the bulk runner that asks for the candidates of an input's papers."""
        wanted = self._settings

        def read(place: Place) -> Iterator[Batch[Paper]]:
            self._open(place)
            papers = read_papers(source, need_id=True, line=place.line, end=place.byte)
            return batches(map(self._with_conflicts, papers), size=bulk.batch_size)

        def call(papers: list[Paper]) -> BulkCandidates:
            return client.recommend_bulk(wanted.kind, papers, wanted.options, model=wanted.model)

        return CallTask("papers", read, call, self._write, window=bulk.window, finish=self._finish)

    def close(self) -> None:
        """Closes the file as it is."""
        if self._stream:
            self._stream.close()

    def _open(self, place: Place) -> None:
        """Goes on behind the rows of a place; what a crash has left behind them is cut off."""
        done = place.totals.get("out_bytes", 0)
        self.is_resumed = bool(done)
        if done:
            with self.part.open("r+b") as stream:
                stream.truncate(done)
        self._stream = self.part.open("a" if done else "w", encoding="utf-8", newline="")

    def _write(self, papers: list[Paper], found: BulkCandidates) -> dict[str, int]:
        stream = self._stream
        assert stream is not None
        before = stream.tell()
        writer = csv.writer(stream)
        if not before:
            writer.writerow(self._header())
        for paper, candidates in zip(papers, found.results, strict=True):
            writer.writerows((paper.id, candidate, f"{score:.6g}") for candidate, score in candidates)
        stream.flush()
        self.unknown_candidates = found.unknown_candidates
        self.num_unknown_candidates = found.num_unknown_candidates
        return {
            "num_rows": sum(map(len, found.results)),
            "num_empty": sum(not candidates for candidates in found.results),
            "out_bytes": stream.tell() - before,
        }

    def _finish(self) -> None:
        assert self._stream is not None
        if not self._stream.tell():
            csv.writer(self._stream).writerow(self._header())
        self._stream.close()
        os.replace(self.part, self.path)

    def _header(self) -> tuple[str, str, str]:
        return "paper", self._settings.kind.removesuffix("s"), "score"

    def _with_conflicts(self, read: Entry[Paper] | Rejection) -> Entry[Paper] | Rejection:
        if isinstance(read, Rejection):
            return read
        paper = read.item
        self.unmatched_conflicts.discard(paper.id)
        own = paper.authors if self._settings.own_excluded and self._settings.kind == "authors" else ()
        names = (author.id or author.name for author in own)
        # Authors and who cites the paper are for AddPapers; here they would only travel.
        excluded = (*paper.excluded_ids, *names, *self._settings.conflicts.get(paper.id, ()))
        return replace(read, item=replace(paper, excluded_ids=excluded, authors=(), cited_by_ids=()))
