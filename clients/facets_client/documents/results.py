"""Results of document calls, and their notebook and plain-text output."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from facets_client.core.evidence import marked_html, matches_html
from facets_client.core.html import MAX_ROWS, html_of, more_html, table_html, text_of
from facets_client.generated.types import SearchFields, SearchHit, SearchResultFields, Span, TruncatedDocument

_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+|\n+")
_TEXT_CHARS = 300
_DIM = ' class="dim"'
_LINE_CHARS = 120
_REJECTED_SHOWN = 10
SURE_CONFIDENCE = 0.1  # hits below it are shown as unlikely to answer
# Least confidence, and its words.
_CONFIDENCE_WORDS = (
    (0.9, "almost surely an answer"),
    (0.6, "probably an answer"),
    (0.3, "possibly an answer"),
    (SURE_CONFIDENCE, "an unlikely answer"),
    (float("-inf"), "hardly an answer"),
)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of a write."""

    num_documents: int  # documents stored, or deleted
    index_revision: int  # pass it as min_revision to read this write
    truncated: tuple[TruncatedDocument, ...] = ()  # documents that were stored but not read to their end
    num_added: int = 0  # of the stored documents: those with a new id
    num_changed: int = 0  # those that replaced one of the same id
    num_unchanged: int = 0  # those that were stored already and are equal

    def plus(self, reply: Any, truncated: tuple[TruncatedDocument, ...]) -> "WriteResult":
        """This result and that of a later reply to an upsert."""
        return WriteResult(
            self.num_documents + reply.num_upserted,
            reply.index_revision,
            self.truncated + truncated,
            self.num_added + reply.num_added,
            self.num_changed + reply.num_changed,
            self.num_unchanged + reply.num_unchanged,
        )


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A record of a file that was not stored, or a file that could not be read."""

    file: str  # name of the file, or its path within the folder
    line: int  # line of the file, number of the record, or page, from 1; 0: the whole file
    reason: str  # such as invalid_json
    message: str  # what was wrong, expected and given


@dataclass(frozen=True, slots=True, repr=False)
class AddedFiles:
    """Result of ``add_files``."""

    num_added: int  # documents with a new id
    num_changed: int  # documents that replaced one of the same id
    num_unchanged: int  # documents that were stored already and are equal
    num_removed: int  # deleted documents, which the files no longer contain
    num_rejected: int
    rejected: tuple[RejectedRecord, ...]  # the first 1,000
    notes: tuple[str, ...]  # how files were read
    index_revision: int  # pass it as min_revision to read these writes

    def __repr__(self) -> str:
        """The counts, and the first rejected records."""
        num_stored = self.num_added + self.num_changed + self.num_unchanged
        lines = [
            f"{num_stored:,} documents: {self.num_added:,} added, {self.num_changed:,} changed, "
            f"{self.num_unchanged:,} unchanged, {self.num_removed:,} removed, {self.num_rejected:,} rejected"
        ]
        for item in self.rejected[:_REJECTED_SHOWN]:
            lines.append(f"{item.file}{f', line {item.line}' if item.line else ''}: {item.message}")
        return "\n".join(lines + ["..."] * (self.num_rejected > _REJECTED_SHOWN))


class SearchResult(SearchResultFields):
    """Hits of one query, best first."""

    __slots__ = ()

    def __repr__(self) -> str:
        """At most two lines a hit: how sure it is and where it is from, then the answer."""
        return "\n".join(_lines(rank, hit) for rank, hit in enumerate(self.hits, 1)) or "nothing found"

    def _html(self) -> str:
        return _hits_html(self.hits, MAX_ROWS)


class SearchResults(SearchFields):
    """Results of some queries; entry i belongs to queries[i]."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(f"query {number}\n{result!r}" for number, result in enumerate(self.results, start=1))

    def _html(self) -> str:
        most = max(3, MAX_ROWS // max(1, len(self.results)))
        shown = [_hits_html(result.hits, most) for result in self.results[:MAX_ROWS]]
        lists = (f'<p class="dim">query {number}</p>{html}' for number, html in enumerate(shown, start=1))
        return "".join(lists) + more_html(len(self.results) - MAX_ROWS)


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


def _hits_html(hits: Sequence[SearchHit], most: int) -> str:
    items = [f"<li{'' if is_sure(hit) else _DIM}>{_hit_html(hit)}</li>" for hit in hits[:most]]
    return f"<ol>{''.join(items)}</ol>{more_html(len(hits) - most)}" if items else "<p>nothing found</p>"


def _hit_html(hit: SearchHit) -> str:
    title = f"<strong>{html_of(path_of(hit))}</strong> " if path_of(hit) else ""
    answer, words = in_text(hit)
    lines = [f'{title}<code>{html_of(hit.id)}</code> <span class="dim">{_sure(hit)}</span>']
    if hit.answer and hit.answer.problem:
        lines.append(f'<p class="dim">{html_of(hit.answer.problem)}</p>')
    if hit.answer and hit.answer.field:
        whole, start = Span(0, len(hit.answer.text)), hit.answer.start
        matched = [Span(word.start - start, word.end - start) for word in hit.matched_spans]
        part = Span(0, _word_end(hit.answer.text, 0, _TEXT_CHARS))
        marked = marked_html(hit.answer.text, part, answer=whole, words=matched)
        lines.append(f'<p><span class="dim">{html_of(hit.answer.field)}:</span> {marked}</p>')
    if hit.answer and hit.answer.cells:
        lines.append(table_html(hit.answer.columns, [hit.answer.cells]))
    elif hit.text:
        part = shown_part(hit.text, answer, _TEXT_CHARS)
        lines.append(f"<p>{marked_html(hit.text, part, answer=answer, words=words)}</p>")
    if hit.evidence:
        matches = matches_html(hit.evidence, "query", "document")
        lines.append(f"<details{_DIM}><summary>facets that match</summary>{matches}</details>")
    return "".join(lines)


def _lines(rank: int, hit: SearchHit) -> str:
    """A line about the hit, and one with the answer or the beginning of the text."""
    head, answer = f"{rank:>2}  {_sure(hit)}  {hit.id}  {text_of(path_of(hit))}".rstrip(), hit.answer
    if answer and answer.cells:
        pairs = zip(answer.columns, answer.cells, strict=False)
        text = ", ".join(f"{column}: {cell}" for column, cell in pairs if cell)
    elif answer and answer.text:
        text = f"{answer.field}: {answer.text}" if answer.field else answer.text
    else:
        text = hit.text
    text = " ".join(text[: 2 * _LINE_CHARS].split())
    text = text if len(text) <= _LINE_CHARS else f"{text[: _word_end(text, 0, _LINE_CHARS)]} ..."
    return f"{head}\n    {text}"


def path_of(hit: SearchHit) -> str:
    """Title of the document, headings above the part that was found, and page; empty where none is known."""
    title = hit.payload.get("title")
    steps = [title] if isinstance(title, str) and title.strip() else []
    if not hit.part_number:
        return " > ".join(steps)
    steps += [heading for heading in hit.part.headings if heading not in steps]
    page = f"p. {hit.part.page}" if hit.part.page else f"part {hit.part_number} of {hit.num_parts}"
    return ", ".join([" > ".join(steps), page] if steps else [page])


def _sure(hit: SearchHit) -> str:
    if hit.confidence is None:
        return f"score {hit.score:.3f}"
    words = next(words for least, words in _CONFIDENCE_WORDS if hit.confidence >= least)
    return f"{words}, confidence {hit.confidence:.2f}"


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
