"""What the calls about documents return as a whole, and how it looks in a notebook and as plain text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from facets_client.core.html import fragment, marked, met
from facets_client.core.values import Listed
from facets_client.generated.types import FilterWarning, ModelVersion, SearchHit, Span, Timings, TruncatedDocument

_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+|\n+")
_TEXT_CHARS = 300
_DIM = ' class="dim"'
SURE_CONFIDENCE = 0.1  # below it a hit is shown to people as one that hardly answers, if at all


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did."""

    num_documents: int  # documents stored, or deleted
    index_revision: int  # give it as min_revision to read your writes
    truncated: tuple[TruncatedDocument, ...] = ()  # stored, but not read to their end


@dataclass(frozen=True, slots=True)
class SearchResult(Listed[SearchHit]):
    """What one query found, best first: ``for hit in result``."""

    hits: tuple[SearchHit, ...]

    def __str__(self) -> str:
        return results_text([self.hits])

    def _repr_html_(self) -> str:
        return results_html([self.hits])

    def to_dicts(self) -> list[dict[str, object]]:
        """A hit a row: rank, id, score, confidence, text, the part that answers, payload."""
        return [
            {
                "rank": rank,
                **{name: getattr(hit, name) for name in ("id", "score", "confidence", "text")},
                "answer": hit.answer.text if hit.answer else None,
                "payload": dict(hit.payload),
            }
            for rank, hit in enumerate(self.hits, start=1)
        ]


@dataclass(frozen=True, slots=True)
class SearchResults(Listed[SearchResult]):
    """What some queries found; entry i belongs to queries[i]: ``results[0].hits``."""

    results: tuple[SearchResult, ...]
    index_revision: int
    exhaustive: bool  # every matching document was compared: no better one exists
    index_kind: str  # how it was searched: exact, faiss-ivf-int8, ...
    model: ModelVersion
    timings: Timings
    warnings: tuple[FilterWarning, ...] = ()  # what is odd about the filter
    recall: float | None = None  # share of the exact hits found of late; None: exhaustive, or not known
    left_out: str = ""  # what could not be asked, and why; empty: nothing

    def __str__(self) -> str:
        return results_text(self.results)

    def _repr_html_(self) -> str:
        return results_html(self.results)

    def to_dicts(self) -> list[dict[str, object]]:
        """A hit a row, with the number of its query, from 0."""
        return [{"query": number, **row} for number, result in enumerate(self.results) for row in result.to_dicts()]


@dataclass(frozen=True, slots=True)
class RejectedDocument:
    """A document of a batch that was not stored."""

    position: int  # place in the batch, from 0
    id: str
    code: str  # gRPC status name, e.g. INVALID_ARGUMENT
    reason: str  # stable word; empty when unknown
    message: str  # what, expected, got


@dataclass(frozen=True, slots=True)
class StreamAck:
    """One batch of an upsert stream is durable, and so are all before it.

    Attributes:
        sequence: Number of the batch in its stream, from 1.
        num_upserted: Documents stored from this batch.
        rejected: Documents not stored, with the reason.
        index_revision: Revision of the collection that holds the batch.
        already_stored: The batch had been stored before the connection broke; nothing was changed.
        resume_token: Opens the stream again after a broken connection.
        truncated: Documents stored whose text was not read to its end.
    """

    sequence: int
    num_upserted: int
    rejected: tuple[RejectedDocument, ...]
    index_revision: int
    already_stored: bool
    resume_token: str
    truncated: tuple[TruncatedDocument, ...] = ()


def results_html(found: Sequence[Sequence[SearchHit]]) -> str:
    """The hits of every query as a numbered list: answer and words marked, the facets that met below."""
    lists = []
    for number, hits in enumerate(found):
        head = f'<p class="dim">query {number + 1}</p>' if len(found) > 1 else ""
        items = "".join(f"<li{'' if is_sure(hit) else _DIM}>{_hit_html(hit)}</li>" for hit in hits)
        lists.append(head + (f"<ol>{items}</ol>" if hits else "<p>nothing found</p>"))
    return fragment(*lists)


def _hit_html(hit: SearchHit) -> str:
    answer, words = in_text(hit)
    part = shown_part(hit.text, answer, _TEXT_CHARS)
    text = marked(hit.text, part, answer=answer, words=words) if hit.text else ""
    met_in = _field_html(hit.answer, hit.matched_spans) if hit.answer and hit.answer.field else ""
    title = f"<strong>{escape(path_of(hit))}</strong> " if path_of(hit) else ""
    facets = "".join(f'<p class="dim">{met(match, "query", "document")}</p>' for match in hit.evidence[:1])
    return f'{title}<code>{escape(hit.id)}</code> <span class="dim">{_sure(hit)}</span>{met_in}<p>{text}</p>{facets}'


def _field_html(answer: Span, words: Sequence[Span]) -> str:
    shown = Span(0, len(answer.text))
    inside = [Span(word.start - answer.start, word.end - answer.start) for word in words]
    said = marked(answer.text, shown, answer=shown, words=inside)
    return f'<p><span class="dim">{escape(answer.field)}:</span> {said}</p>'


def results_text(found: Sequence[Sequence[SearchHit]]) -> str:
    """One line a hit with rank, how sure it is, id and title, and one of its text."""
    lines = []
    for number, hits in enumerate(found):
        lines += [f"query {number + 1}"] if len(found) > 1 else []
        lines += [] if hits else ["nothing found"]
        for rank, hit in enumerate(hits, start=1):
            part = shown_part(hit.text, in_text(hit)[0], _TEXT_CHARS)
            text = " ".join(hit.text[part.start : part.end].split())
            met_in = [f"    {field_line(hit.answer)}"] if hit.answer and hit.answer.field else []
            lines += [f"{rank:>2}  {_sure(hit)}  {hit.id}  {path_of(hit)}".rstrip(), *met_in, f"    {text}"]
    return "\n".join(lines)


def path_of(hit: SearchHit) -> str:
    """Where a hit stands: title of the document, headings above its part, and page; empty where none is known."""
    title = hit.payload.get("title")
    steps = [title] if isinstance(title, str) and title.strip() else []
    if not hit.part_number:
        return " > ".join(steps)
    steps += [one for one in hit.part.headings if one not in steps]
    page = f"p. {hit.part.page}" if hit.part.page else f"part {hit.part_number} of {hit.num_parts}"
    return ", ".join([" > ".join(steps), page] if steps else [page])


def _sure(hit: SearchHit) -> str:
    if hit.confidence is None:
        return f"score {hit.score:.3f}"
    return f"confidence {hit.confidence:.2f}{'' if is_sure(hit) else ', hardly an answer'}"


def is_sure(hit: SearchHit) -> bool:
    """Whether a hit may answer; one without a confidence may."""
    return hit.confidence is None or hit.confidence >= SURE_CONFIDENCE


def in_text(hit: SearchHit) -> tuple[Span | None, tuple[Span, ...]]:
    """The answer and the words in it, where they are of the text; nothing where they are of a field."""
    return (None, ()) if hit.answer and hit.answer.field else (hit.answer, hit.matched_spans)


def field_line(answer: Span) -> str:
    """An answer of a field with its name, in one line."""
    return f"{answer.field}: {' '.join(answer.text.split())}"


def shown_part(text: str, answer: Span | None, max_chars: int) -> Span:
    """Whole sentences with the answer; of a longer part, the beginning of the answer with some text before it.

    Args:
        text: The whole text.
        answer: The part that answers; None: the beginning of the text is shown.
        max_chars: About so many characters.
    """
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
    """The end of the last word that ends between two places; the second one where a word fills all between."""
    if end >= len(text):
        return len(text)
    space = text.rfind(" ", start, end + 1)
    return space if space > start else end
