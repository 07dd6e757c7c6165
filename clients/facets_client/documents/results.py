"""Results of document calls."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from facets_client.core.drawing import RowOfTable, clean, count_of, indented, line, more, parts_of, shortened
from facets_client.core.evidence import ANSWER_STYLE, marked, match_line
from facets_client.generated.types import SearchHit, SearchResult, SearchResults, Span, TruncatedDocument
from facets_client.load.rows import Rejection

_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+|\n+")
_TEXT_CHARS = 300
_TITLE_CHARS = 80
_REJECTED_SHOWN = 10
SURE_CONFIDENCE = 0.1  # hits below it are shown as unlikely to answer


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of a write."""

    num_documents: int  # documents stored, or deleted
    index_revision: int  # pass it as min_revision to read this write
    truncated: tuple[TruncatedDocument, ...] = ()  # documents that were stored but not read to their end
    num_added: int = 0  # of the stored documents: those with a new id
    num_changed: int = 0  # those that replaced one of the same id
    num_unchanged: int = 0  # those that were stored already and are equal


@dataclass(frozen=True, slots=True, repr=False)
class AddedFiles:
    """Result of ``add_files``."""

    num_added: int  # documents with a new id
    num_changed: int  # documents that replaced one of the same id
    num_unchanged: int  # documents that were stored already and are equal
    num_removed: int  # deleted documents, which the files no longer contain
    num_rejected: int
    rejected: tuple[Rejection, ...]  # the first 1,000
    notes: tuple[str, ...]  # how files were read
    index_revision: int  # pass it as min_revision to read these writes

    def __repr__(self) -> str:
        """The counts, and the first rejected records."""
        num_stored = self.num_added + self.num_changed + self.num_unchanged
        lines = [
            f"{count_of(num_stored, 'document')}: {self.num_added:,} added, {self.num_changed:,} changed, "
            f"{self.num_unchanged:,} unchanged, {self.num_removed:,} removed, {self.num_rejected:,} rejected"
        ]
        for item in self.rejected[:_REJECTED_SHOWN]:
            lines.append(f"{item.file}{f', line {item.line}' if item.line else ''}: {item.message}")
        return "\n".join(lines + ["..."] * (self.num_rejected > _REJECTED_SHOWN))


@parts_of.register
def _parts_of_result(result: SearchResult, max_rows: int) -> Iterator[RenderableType]:
    if not result.hits:
        yield line("nothing found")
    for rank, hit in enumerate(result.hits[:max_rows], start=1):
        yield from hit_parts(rank, hit, explain=True)
    yield from more(len(result.hits) - max_rows)


@parts_of.register
def _parts_of_results(found: SearchResults, max_rows: int) -> Iterator[RenderableType]:
    for number, result in enumerate(found.results[:max_rows], start=1):
        yield from (line(f"query {number}"), result)
    yield from more(len(found.results) - max_rows)


@dataclass(frozen=True, slots=True)
class RejectedDocument:
    """A document of a batch that was not stored."""

    position: int  # in the batch, from 0
    id: str
    code: str  # name of a gRPC status, e.g. INVALID_ARGUMENT
    reason: str  # stable machine-readable word; empty when unknown
    message: str  # what was wrong, what was expected, what the server got


@dataclass(frozen=True, slots=True)
class StreamAck:
    """Acknowledges a batch of an upsert stream: it and all earlier batches are durable."""

    sequence: int  # number of the batch in its stream, from 1
    num_upserted: int  # documents stored from this batch
    rejected: tuple[RejectedDocument, ...]  # documents that were not stored
    index_revision: int  # revision of the collection that contains the batch
    already_stored: bool  # whether the batch had been stored before the connection broke; nothing was changed
    resume_token: str  # opens the stream again after a broken connection
    truncated: tuple[TruncatedDocument, ...] = ()  # documents that were stored but not read to their end
    num_added: int = 0  # of the stored documents: those with a new id
    num_changed: int = 0  # those that replaced one of the same id
    num_unchanged: int = 0  # those that were stored already and are equal


def hit_parts(rank: int, hit: SearchHit, *, full: bool = False, explain: bool = False) -> Iterator[RenderableType]:
    """How sure a hit is, where it is from, what answers, its scores; ``full``: whole texts, ``explain``: all facets."""
    head = Text(f"{rank:>2}  ")
    head.append(f"{hit.score:.4f}" if hit.confidence is None else f"confidence {hit.confidence:.2f}", "bold")
    head.append(f"  {clean(hit.id)}", "cyan")
    if path := path_of(hit):
        head.append(f"  {shortened(path, _TITLE_CHARS)}", "bold")
    yield head
    answer = hit.answer
    if answer and answer.problem:
        yield indented(line(shortened(answer.problem, _TEXT_CHARS)))
    if answer and answer.field:
        yield indented(line(shortened(f"{answer.field}: {answer.text}", _TEXT_CHARS), ANSWER_STYLE))
    if answer and answer.cells and not full:
        yield indented(RowOfTable(answer.columns, answer.cells))
    elif hit.text and (full or not (answer and answer.field and answer.problem)):
        span, words = in_text(hit)
        shown = Span(0, len(hit.text)) if full else shown_part(hit.text, span, _TEXT_CHARS)
        yield indented(marked(hit.text, shown, span, words))
    if full and hit.payload:
        yield indented(line(", ".join(f"{name}: {value}" for name, value in hit.payload.items()), ""))
    scores = [] if hit.confidence is None else [f"score {hit.score:.3f}"]
    scores += [f"facets {hit.facets_score:.3f}"] if hit.facets_score else []
    scores += [f"words {hit.lexical_score:.2f}: {', '.join(hit.matched_words)}"] if hit.lexical_score else []
    yield from [indented(line(", ".join(scores)))] if scores else []
    for match in hit.evidence if explain else hit.evidence[:1]:
        found = match_line(match, "query", "document")
        if explain and match.second_span is not None:
            field = f" of {clean(match.second_span.field)}" if match.second_span.field else ""
            found.append(f", characters {match.second_span.start} to {match.second_span.end}{field}")
        yield indented(found)
    yield ""


def path_of(hit: SearchHit) -> str:
    """Title of the document, headings above the part that was found, and page; empty where none is known."""
    title = hit.payload.get("title")
    steps = [title] if isinstance(title, str) and title.strip() else []
    if not hit.part_number:
        return " > ".join(steps)
    steps += [heading for heading in hit.part.headings if heading not in steps]
    page = f"p. {hit.part.page}" if hit.part.page else f"part {hit.part_number} of {hit.num_parts}"
    return ", ".join([" > ".join(steps), page] if steps else [page])


def is_sure(hit: SearchHit) -> bool:
    """Whether a hit is likely to answer; True without a confidence."""
    return hit.confidence is None or hit.confidence >= SURE_CONFIDENCE


def in_text(hit: SearchHit) -> tuple[Span | None, tuple[Span, ...]]:
    """The answer and its matched words if they are in the text; None and empty if they are in a field."""
    return (None, ()) if hit.answer and hit.answer.field else (hit.answer, hit.matched_spans)


def shown_part(text: str, answer: Span | None, max_chars: int) -> Span:
    """The sentences around the answer or, if they are too long, its beginning with some text before it."""
    if answer is None:
        return Span(0, _word_end(text, 0, max_chars))
    before = max(0, answer.start - max_chars)
    starts = [match.end() for match in _SENTENCE_END.finditer(text, before, answer.start)]
    end = _SENTENCE_END.search(text, max(answer.start, answer.end - 1))
    sentence = Span(starts[-1] if starts else before, len(text) if end is None else end.start() + 1)
    if sentence.end - sentence.start <= max_chars:
        return sentence
    left = max(0, max_chars - (answer.end - answer.start)) // 2
    start = max(sentence.start, answer.start - left)
    if start > sentence.start:
        start = text.find(" ", start, answer.start) + 1 or answer.start
    return Span(start, min(sentence.end, _word_end(text, start, start + max_chars)))


def _word_end(text: str, start: int, end: int) -> int:
    """End of the last word that ends between two offsets; the second offset where one word fills the range."""
    if end >= len(text):
        return len(text)
    space = text.rfind(" ", start, end + 1)
    return space if space > start else end
