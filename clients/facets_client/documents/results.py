"""Results of document calls, and their notebook and plain-text output."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from facets_client.core.html import fragment, marked_html, match_html, table_html
from facets_client.generated.types import SearchFields, SearchHit, SearchResultFields, Span, TruncatedDocument

_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+|\n+")
_TEXT_CHARS = 300
_DIM = ' class="dim"'
SURE_CONFIDENCE = 0.1  # hits below it are shown as unlikely to answer


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of a write."""

    num_documents: int  # documents stored, or deleted
    index_revision: int  # pass it as min_revision to read this write
    truncated: tuple[TruncatedDocument, ...] = ()  # documents that were stored but not read to their end


class SearchResult(SearchResultFields):
    """Hits of one query, best first."""

    __slots__ = ()

    def __str__(self) -> str:
        return _results_text([self])

    def _repr_html_(self) -> str:
        return _results_html([self])

    def to_dicts(self) -> list[dict[str, object]]:
        """One hit per row: rank, id, score, confidence, text, answer, payload."""
        return [
            {
                "rank": rank,
                **{name: getattr(hit, name) for name in ("id", "score", "confidence", "text")},
                "answer": hit.answer.text if hit.answer else None,
                "payload": dict(hit.payload),
            }
            for rank, hit in enumerate(self.hits, start=1)
        ]


class SearchResults(SearchFields):
    """Results of some queries; entry i belongs to queries[i]."""

    __slots__ = ()

    def __str__(self) -> str:
        return _results_text(self.results)

    def _repr_html_(self) -> str:
        return _results_html(self.results)

    def to_dicts(self) -> list[dict[str, object]]:
        """One hit per row, with the number of its query, from 0."""
        return [{"query": number, **row} for number, result in enumerate(self.results) for row in result.to_dicts()]


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


def _results_html(results: Sequence[SearchResultFields]) -> str:
    lists = []
    for number, result in enumerate(results):
        heading = f'<p class="dim">query {number + 1}</p>' if len(results) > 1 else ""
        items = "".join(f"<li{'' if is_sure(hit) else _DIM}>{_hit_html(hit)}</li>" for hit in result)
        lists.append(heading + (f"<ol>{items}</ol>" if items else "<p>nothing found</p>"))
    return fragment(*lists)


def _hit_html(hit: SearchHit) -> str:
    title = f"<strong>{escape(path_of(hit))}</strong> " if path_of(hit) else ""
    answer, words = in_text(hit)
    text = marked_html(hit.text, shown_part(hit.text, answer, _TEXT_CHARS), answer=answer, words=words)
    field = ""
    if hit.answer and hit.answer.field:
        whole, start = Span(0, len(hit.answer.text)), hit.answer.start
        matched = [Span(word.start - start, word.end - start) for word in hit.matched_spans]
        marked = marked_html(hit.answer.text, whole, answer=whole, words=matched)
        field = f'<p><span class="dim">{escape(hit.answer.field)}:</span> {marked}</p>'
    if hit.answer and hit.answer.problem:
        field = f'<p class="dim">{escape(hit.answer.problem)}</p>{field}'
    shown = table_html(hit.answer.columns, hit.answer.cells) if hit.answer and hit.answer.cells else f"<p>{text}</p>"
    facets = "".join(f'<p class="dim">{match_html(match, "query", "document")}</p>' for match in hit.evidence[:1])
    return f'{title}<code>{escape(hit.id)}</code> <span class="dim">{_sure(hit)}</span>{field}{shown}{facets}'


def _results_text(results: Sequence[SearchResultFields]) -> str:
    lines = []
    for number, result in enumerate(results):
        lines += [f"query {number + 1}"] if len(results) > 1 else []
        lines += [] if result.hits else ["nothing found"]
        for rank, hit in enumerate(result, start=1):
            lines.append(f"{rank:>2}  {_sure(hit)}  {hit.id}  {path_of(hit)}".rstrip())
            if hit.answer and hit.answer.problem:
                lines.append(f"    {' '.join(hit.answer.problem.split())}")
            if hit.answer and hit.answer.field:
                lines.append(f"    {field_line(hit.answer)}")
            part = shown_part(hit.text, in_text(hit)[0], _TEXT_CHARS)
            shown = [" ".join(hit.text[part.start : part.end].split())]
            if hit.answer and hit.answer.cells:
                shown = [" | ".join(hit.answer.columns), " | ".join(hit.answer.cells)]
            lines += [f"    {line}" for line in shown]
    return "\n".join(lines)


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
    return f"confidence {hit.confidence:.2f}{'' if is_sure(hit) else ', hardly an answer'}"


def is_sure(hit: SearchHit) -> bool:
    """Whether a hit is likely to answer; True without a confidence."""
    return hit.confidence is None or hit.confidence >= SURE_CONFIDENCE


def in_text(hit: SearchHit) -> tuple[Span | None, tuple[Span, ...]]:
    """The answer and its matched words if they are in the text; None and empty if they are in a field."""
    return (None, ()) if hit.answer and hit.answer.field else (hit.answer, hit.matched_spans)


def field_line(answer: Span) -> str:
    """An answer in a field, with the name of the field, on one line."""
    return f"{answer.field}: {' '.join(answer.text.split())}"


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
