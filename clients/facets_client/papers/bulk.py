"""Recommendations for a whole conference: the best candidates of every paper of a JSON lines file, as a CSV file.

Batches are requested in parallel and written in the order of the input. Rows go to ``OUT.part``, which becomes ``OUT``
when it is complete. ``OUT.state`` holds the position, so that the same command continues after an interruption.
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
from facets_client.load.rows import Record, Rejection
from facets_client.load.runner import Batch, BulkSettings, CallTask, Settled, batches
from facets_client.load.source import Source
from facets_client.load.state import Place
from facets_client.papers.records import read_papers
from facets_client.papers.results import BulkCandidates, PaperOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkPaperSettings:
    """Settings of a bulk recommendation.

    Attributes:
        kind: ``authors`` or ``citations``.
        options: Candidates, their number and their scoring.
        model: Name; empty: the server's default paper model.
        own_excluded: Whether a paper's own authors are left out when ``kind`` is ``authors``.
        conflicts: Id of a paper -> further candidates to leave out.
    """

    kind: CandidateKind = "authors"
    options: PaperOptions = field(default_factory=PaperOptions)
    model: str = ""
    own_excluded: bool = True
    conflicts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def digest(self) -> str:
        """Differs between settings that give different rows."""
        asked = (self.kind, self.options, self.model, self.own_excluded, sorted(self.conflicts.items()))
        return hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()


class CandidatesFile:
    """The CSV file of candidates while ``task`` writes it.

    Args:
        path: The CSV file.
        settings: Settings of the recommendation.

    Attributes:
        path: As given.
        state_path: File that holds the position.
        unknown_candidates: The first entries of the candidates that the server does not know.
        num_unknown_candidates: Number of such candidates.
        is_resumed: Whether an earlier run started the file.
        unmatched_conflicts: Ids in the conflicts that no paper has had so far.
    """

    def __init__(self, path: Path, settings: BulkPaperSettings) -> None:
        self.path = path
        self.state_path = path.with_name(path.name + ".state")
        self._part = path.with_name(path.name + ".part")
        self._settings = settings
        self._stream: TextIO | None = None
        self.is_resumed = False
        self.unknown_candidates: tuple[str, ...] = ()
        self.num_unknown_candidates = 0
        self.unmatched_conflicts = set(settings.conflicts)

    def holds(self, place: Place) -> bool:
        """Whether the rows up to a position exist."""
        try:
            return self._part.stat().st_size >= place.totals.get("out_bytes", 0) > 0
        except OSError:
            return False

    def task(self, client: FacetsClient, source: Source, bulk: BulkSettings) -> CallTask[Paper, BulkCandidates]:
        """The bulk runner's task, which requests candidates for the papers of an input."""
        asked = self._settings

        def read(place: Place) -> Iterator[Batch[Paper]]:
            self._open(place)
            papers = (record for record in read_papers(source, need_id=True) if record.line > place.line)
            return batches(map(self._with_exclusions, papers), bulk, place)

        def call(papers: list[Paper]) -> BulkCandidates:
            return client.recommend_bulk(asked.kind, papers, asked.options, model=asked.model)

        return CallTask("papers", read, call, self._write, window=bulk.window, finish=self._finish)

    def close(self) -> None:
        """Closes the file as it is."""
        if self._stream:
            self._stream.close()

    def _open(self, place: Place) -> None:
        """Continues after the rows of a position; cuts off later rows that a crash left."""
        num_bytes = place.totals.get("out_bytes", 0)
        self.is_resumed = bool(num_bytes)
        if num_bytes:
            os.truncate(self._part, num_bytes)
        self._stream = self._part.open("a" if num_bytes else "w", encoding="utf-8", newline="")

    def _write(self, records: list[Record[Paper]], reply: BulkCandidates) -> Settled:
        stream = self._stream
        assert stream is not None
        start = stream.tell()
        writer = csv.writer(stream)
        if not start:
            writer.writerow(self._header())
        for record, candidates in zip(records, reply.results, strict=True):
            writer.writerows((record.item.id, candidate, f"{score:.6g}") for candidate, score in candidates)
        stream.flush()
        self.unknown_candidates = reply.unknown_candidates
        self.num_unknown_candidates = reply.num_unknown_candidates
        num_empty = sum(not candidates for candidates in reply.results)
        num_rows = sum(map(len, reply.results))
        return Settled(totals={"num_rows": num_rows, "num_empty": num_empty, "out_bytes": stream.tell() - start})

    def _finish(self) -> None:
        assert self._stream is not None
        if not self._stream.tell():
            csv.writer(self._stream).writerow(self._header())
        self._stream.close()
        os.replace(self._part, self.path)

    def _header(self) -> tuple[str, str, str]:
        return "paper", self._settings.kind.removesuffix("s"), "score"

    def _with_exclusions(self, record: Record[Paper] | Rejection) -> Record[Paper] | Rejection:
        """The paper with all its excluded candidates, and without fields that only AddPapers reads."""
        if isinstance(record, Rejection):
            return record
        paper = record.item
        self.unmatched_conflicts.discard(paper.id)
        own = paper.authors if self._settings.own_excluded and self._settings.kind == "authors" else ()
        own_ids = (author.id or author.name for author in own)
        excluded_ids = (*paper.excluded_ids, *own_ids, *self._settings.conflicts.get(paper.id, ()))
        return replace(record, item=replace(paper, excluded_ids=excluded_ids, authors=(), cited_by_ids=()))
