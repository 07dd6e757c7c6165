"""A whole conference: the best candidates of every paper of a JSONL file, to a CSV file, in bounded memory.

Batches are asked for in parallel and written in the order of the input. Rows go to ``OUT.part``, which becomes ``OUT``
once everything is done; beside it ``OUT.state`` says how far it has come, so that the same command goes on after any
interruption. A paper that the server refuses is listed as rejected and the others of its batch go on.
"""

import csv
import hashlib
import json
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TextIO

from facets_client.client import FacetsClient
from facets_client.core.records import JsonLine, RecordSource, Rejection
from facets_client.core.rejected import RejectedFile
from facets_client.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    OverloadedError,
    UnavailableError,
)
from facets_client.papers.records import read_papers
from facets_client.papers.results import CandidateKind, Paper, RecommendationOptions

__all__ = ["BulkRecommendReport", "BulkRecommendSettings", "BulkRecommender", "Place"]

_VERSION = 1
_TRANSIENT = (UnavailableError, OverloadedError, DeadlineExceededError)
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 10.0
_PLACE_IN_FIELD = re.compile(r"^papers\[(\d+)\]")
_MAX_REJECTIONS = 1_000  # a batch without papers ends here


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkRecommendSettings:
    """What to ask for.

    Attributes:
        kind: ``authors`` or ``citations``.
        options: Which candidates, how many, how they are scored.
        model: Name; empty: the server's default model of papers.
        own_excluded: Whether a paper's own authors are left out, when authors are asked for.
        conflicts: Id of a paper -> further candidates left out.
        batch_size: Papers of one request.
        window: Requests under way at the same time.
        max_wait_s: Seconds to wait for a server that is away, restarting or full.
    """

    kind: CandidateKind = "authors"
    options: RecommendationOptions = field(default_factory=RecommendationOptions)
    model: str = ""
    own_excluded: bool = True
    conflicts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    batch_size: int = 128
    window: int = 2
    max_wait_s: float = 300.0

    def __post_init__(self) -> None:
        for name in ("batch_size", "window"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def digest(self) -> str:
        """Tells these settings from others that give other rows."""
        told = (self.kind, asdict(self.options), self.model, self.own_excluded, sorted(self.conflicts.items()))
        return hashlib.sha256(json.dumps(told, default=list).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Place:
    """How far it has come: everything up to ``byte`` is written, or listed as rejected."""

    line: int = 0
    byte: int = 0  # in the uncompressed stream
    num_papers: int = 0
    num_rows: int = 0
    num_empty: int = 0
    num_rejected: int = 0
    out_bytes: int = 0
    rejected_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BulkRecommendReport:
    """What was done, earlier parts of an interrupted run included.

    Attributes:
        num_papers: Papers that were answered.
        num_rows: Rows of the CSV file.
        num_empty: Papers without any candidate.
        num_rejected: Records rejected.
        duration_s: Seconds of this run.
        papers_per_s: Papers answered by this run each second.
    """

    num_papers: int
    num_rows: int
    num_empty: int
    num_rejected: int
    duration_s: float
    papers_per_s: float


@dataclass(slots=True)
class _Batch:
    papers: list[Paper] = field(default_factory=list)
    lines: list[JsonLine] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    line: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class _Answer:
    papers: list[Paper]
    results: list[tuple[tuple[str, float], ...]]
    rejections: list[Rejection]
    line: int
    end: int


class BulkRecommender:
    """One run over one input.

    Args:
        client: Connected to the server.
        source: The opened input, at its beginning.
        out: The CSV file to be made.
        rejected_path: Where rejected records go.
        settings: What to ask for.
        on_progress: Called with the place and the position in the stored input, after each batch.

    Attributes:
        place: How far it has come.
        is_resumed: Whether it went on where another run had stopped.
        unknown_candidates: Entries of the candidates that the server knows nobody by, the first of them.
        num_unknown_candidates: All such entries.
        unmatched_conflicts: Ids of ``settings.conflicts`` that no paper read by this run has.
    """

    def __init__(
        self,
        client: FacetsClient,
        source: RecordSource,
        out: Path,
        *,
        rejected_path: Path,
        settings: BulkRecommendSettings,
        on_progress: Callable[[Place, int], None],
    ) -> None:
        self._client = client
        self._source = source
        self._out = out
        self._part = out.with_name(out.name + ".part")
        self._state_path = out.with_name(out.name + ".state")
        self._rejected_path = rejected_path
        self._settings = settings
        self._on_progress = on_progress
        self.place = Place()
        self.is_resumed = False
        self.unknown_candidates: tuple[str, ...] = ()
        self.num_unknown_candidates = 0
        self.unmatched_conflicts = set(settings.conflicts)

    def run(self, *, resume: bool = True) -> BulkRecommendReport:
        """Asks, writes and renames; goes on where an interrupted run of the same settings has stopped.

        Raises:
            FacetsClientError: The server failed, or stayed away too long.
            OSError: A file cannot be written.
            InputError: The input cannot be read again from where it was.
        """
        started = time.monotonic()
        self.place = self._saved() if resume else Place()
        self.is_resumed = bool(self.place.line)
        before = self.place.num_papers
        rejected = RejectedFile(self._rejected_path, keep_bytes=self.place.rejected_bytes)
        if self.place.out_bytes:
            with self._part.open("r+b") as stream:
                stream.truncate(self.place.out_bytes)
        with self._part.open("a" if self.place.out_bytes else "w", encoding="utf-8", newline="") as stream:
            if not self.place.out_bytes:
                csv.writer(stream).writerow(("paper", self._settings.kind.removesuffix("s"), "score"))
            self._answer_all(stream, rejected)
        rejected.close()
        os.replace(self._part, self._out)
        self._state_path.unlink(missing_ok=True)
        duration_s = time.monotonic() - started
        done = self.place
        speed = (done.num_papers - before) / max(duration_s, 1e-9)
        return BulkRecommendReport(done.num_papers, done.num_rows, done.num_empty, done.num_rejected, duration_s, speed)

    def _answer_all(self, stream: TextIO, rejected: RejectedFile) -> None:
        waiting: deque[Future[_Answer]] = deque()
        with ThreadPoolExecutor(self._settings.window, thread_name_prefix="bulk") as pool:
            try:
                for batch in self._batches():
                    waiting.append(pool.submit(self._ask, batch))
                    if len(waiting) > self._settings.window:
                        self._write(waiting.popleft().result(), stream, rejected)
                while waiting:
                    self._write(waiting.popleft().result(), stream, rejected)
            except BaseException:
                for future in waiting:
                    future.cancel()
                raise

    def _batches(self) -> Iterator[_Batch]:
        batch = _Batch()
        for item in read_papers(self._source, need_id=True, line=self.place.line, end=self.place.byte):
            if isinstance(item, Rejection):
                batch.rejections.append(item)
                batch.line, batch.end = item.line, item.end
            else:
                paper, line = item
                batch.papers.append(self._with_conflicts(paper))
                batch.lines.append(line)
                batch.line, batch.end = line.line, line.end
            if len(batch.papers) == self._settings.batch_size or len(batch.rejections) == _MAX_REJECTIONS:
                yield batch
                batch = _Batch()
        if batch.line:
            yield batch

    def _with_conflicts(self, paper: Paper) -> Paper:
        self.unmatched_conflicts.discard(paper.id)
        own = paper.authors if self._settings.own_excluded and self._settings.kind == "authors" else ()
        names = (author.id or author.name for author in own)
        # Authors and who cites the paper are for AddPapers; here they would only travel.
        return replace(
            paper,
            excluded=(*paper.excluded, *names, *self._settings.conflicts.get(paper.id, ())),
            authors=(),
            cited_by=(),
        )

    def _ask(self, batch: _Batch) -> _Answer:
        papers, lines, rejections = list(batch.papers), list(batch.lines), list(batch.rejections)
        results: list[tuple[tuple[str, float], ...]] = []
        while papers:
            try:
                results = self._patiently(papers)
                break
            except InvalidArgumentError as error:
                refused = _refused(error, len(papers))
                if not refused:
                    raise
                for i in sorted(refused, reverse=True):
                    line = lines.pop(i)
                    paper = papers.pop(i)
                    rejections.append(
                        Rejection(line.line, line.end, "refused", refused[i], id=paper.id, excerpt=line.excerpt)
                    )
        rejections.sort(key=lambda rejection: rejection.line)
        return _Answer(papers, results, rejections, batch.line, batch.end)

    def _patiently(self, papers: Sequence[Paper]) -> list[tuple[tuple[str, float], ...]]:
        """Asks again while the server is away or full."""
        settings = self._settings
        give_up = time.monotonic() + settings.max_wait_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                found = self._client.recommend_bulk(settings.kind, papers, settings.options, model=settings.model)
                self.unknown_candidates, self.num_unknown_candidates = (
                    found.unknown_candidates,
                    found.num_unknown_candidates,
                )
                return list(found.results)
            except _TRANSIENT as error:
                wait_s = max(pause_s, getattr(error, "retry_after_s", None) or 0.0)
                if time.monotonic() + wait_s > give_up:
                    raise
                time.sleep(wait_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _write(self, answer: _Answer, stream: TextIO, rejected: RejectedFile) -> None:
        """Rows, rejections, then the place: what the state says is done is on disk."""
        writer = csv.writer(stream)
        for paper, candidates in zip(answer.papers, answer.results, strict=True):
            writer.writerows((paper.id, candidate, f"{score:.6g}") for candidate, score in candidates)
        stream.flush()
        rejected.write(answer.rejections)
        self.place = Place(
            line=answer.line,
            byte=answer.end,
            num_papers=self.place.num_papers + len(answer.papers),
            num_rows=self.place.num_rows + sum(map(len, answer.results)),
            num_empty=self.place.num_empty + sum(not candidates for candidates in answer.results),
            num_rejected=self.place.num_rejected + len(answer.rejections),
            out_bytes=stream.tell(),
            rejected_bytes=rejected.num_bytes,
        )
        self._save()
        self._on_progress(self.place, self._source.raw_position)

    def _identity(self) -> dict[str, object]:
        return {
            "version": _VERSION,
            "input": self._source.head_digest,
            "size": self._source.size,
            "settings": self._settings.digest(),
        }

    def _save(self) -> None:
        text = json.dumps({**self._identity(), "place": asdict(self.place)})
        temporary = self._state_path.with_name(self._state_path.name + ".new")
        temporary.write_text(text)
        temporary.replace(self._state_path)

    def _saved(self) -> Place:
        """Where an interrupted run of this input and these settings has stopped; the beginning when there is none."""
        try:
            saved = json.loads(self._state_path.read_bytes())
            place = Place(**saved.pop("place"))
            is_ours = saved == self._identity() and self._part.stat().st_size >= place.out_bytes
            return place if is_ours else Place()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return Place()


def _refused(error: InvalidArgumentError, num_papers: int) -> dict[int, str]:
    """Place of each paper that the server refuses, with the reason."""
    refused: dict[int, str] = {}
    for violation in error.field_violations:
        found = _PLACE_IN_FIELD.match(violation.field)
        if found and int(found[1]) < num_papers:
            refused.setdefault(int(found[1]), violation.description)
    return refused
