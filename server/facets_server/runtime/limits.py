"""Every limit that a caller meets, and the rules that requests are held against.

``LimitsConfig`` says what one request may hold, ``AdmissionConfig`` how many calls there may be; bounds on connections
of HTTP are in ``HttpConfig``. Where a request breaks rules, all broken fields are named at once. Pages are of short
lists that are held in memory, with opaque tokens.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Generic, TypeVar

from pydantic import Field

from facets.config import AtLeastOne, NonNegativeInt, Positive, Settings
from facets.errors import ErrorPath, InvalidInputError
from facets.index.config import MAX_BATCH_DOCUMENTS, MAX_DOCUMENT_BYTES, MAX_PAGE_SIZE, MAX_TEXT_BYTES, MAX_TOP_K
from facets_server.runtime.errors import InvalidFieldsError

_MOST_REPORTED = 8
_DEFAULT_PAGE_SIZE = 100
_TOKEN_PREFIX = "at:"

Item = TypeVar("Item")


class LimitsConfig(Settings):
    """What one request may hold, no more than the engine allows; ModelService returns the same names."""

    max_texts_per_request: AtLeastOne = 512
    max_text_bytes: Annotated[int, Field(ge=1, le=MAX_TEXT_BYTES)] = 32_768
    max_message_bytes: Annotated[int, Field(ge=4096)] = 40 * 1024 * 1024
    max_pairs_per_request: AtLeastOne = 256
    max_document_bytes: Annotated[int, Field(ge=1, le=MAX_DOCUMENT_BYTES)] = 32 * 1024 * 1024  # some 10,000 pages
    max_long_text_bytes: Annotated[int, Field(ge=1, le=MAX_TEXT_BYTES)] = (
        MAX_TEXT_BYTES  # queries, abstracts, summaries
    )
    max_sentences_per_document: AtLeastOne = 16_384  # given, or found in a raw text; some seconds of one core
    max_documents_per_upsert: Annotated[int, Field(ge=1, le=MAX_BATCH_DOCUMENTS)] = 512
    max_queries_per_search: AtLeastOne = 64
    max_top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K)] = MAX_TOP_K
    max_page_size: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = MAX_PAGE_SIZE
    max_nearest_words: AtLeastOne = 100
    max_evidence_hits: AtLeastOne = 1000  # queries x top_k of a search with evidence
    max_patterns_per_request: AtLeastOne = 4096
    max_gazetteer_names: AtLeastOne = 100_000
    max_slots_per_request: AtLeastOne = 64
    max_relation_scores: AtLeastOne = 500_000  # patterns or pairs of entities x relations returned of each
    max_ranked_papers: AtLeastOne = 50_000  # papers of a collection that RankPapers compares; so many stay in memory


class AdmissionConfig(Settings):
    """How many calls are worked on and how many may wait."""

    max_concurrent_requests: AtLeastOne = 96
    max_queued_requests: NonNegativeInt = 192
    max_streams: AtLeastOne = 16  # each may hold a message that has half come
    max_stream_window: AtLeastOne = 8  # requests of one stream read ahead
    max_stream_bytes: AtLeastOne = 8_388_608  # of these; one alone may have more
    max_requests_per_caller: AtLeastOne = 144  # worked on and waiting, of one key (else address) beside others
    max_streams_per_caller: AtLeastOne = 12
    max_request_bytes: AtLeastOne = 268_435_456  # of all requests worked on and waiting; one alone may have more
    message_timeout_s: Positive = 30.0  # how long a call may take to send its message, a stream its first
    stream_idle_s: Positive = 600.0  # how long an open stream may be silent
    max_silent_calls: AtLeastOne = 512  # calls whose message has not come; one more, and the oldest is ended
    max_slow_calls: AtLeastOne = 16  # the same of those that have waited a quarter of a second: each may hold a message
    max_calls_per_connection: AtLeastOne = 320  # open at once; clients hold further ones back, or HTTP/2 refuses them


def check_count(items: Sequence[object], path: ErrorPath, limit: int) -> None:
    """Checks that a list has 1 to ``limit`` items.

    Raises:
        InvalidInputError: It has not.
    """
    if not items:
        raise InvalidInputError("has 0 items, expected at least 1", path=path)
    if len(items) > limit:
        raise InvalidInputError(f"has {len(items)} items, the limit is {limit}", path=path)


def check_num_sentences(
    documents: Sequence[str | Sequence[str]], sentences: Callable[[str], Sequence[object]], limit: int
) -> None:
    """Checks that no raw text has more than ``limit`` sentences.

    Args:
        documents: Raw texts, and lists of sentences, which are counted elsewhere.
        sentences: Splits a text.
        limit: Most sentences of one document.

    Raises:
        InvalidInputError: One has more.
    """
    for i, document in enumerate(documents):
        if not isinstance(document, str) or len(document) <= limit:
            continue  # a sentence has a character at least
        num_sentences = len(sentences(document))
        if num_sentences > limit:
            raise InvalidInputError(
                f"has {num_sentences} sentences, the limit is {limit}", path=("documents", i, "text")
            )


def check_number(value: int, path: ErrorPath, limit: int) -> int:
    """Returns ``value`` when it is in ``[1, limit]``.

    Raises:
        InvalidInputError: It is not.
    """
    if not 1 <= value <= limit:
        raise InvalidInputError(f"must be in [1, {limit}], got {value}", path=path)
    return value


def text_problem(text: str, path: ErrorPath, max_bytes: int) -> InvalidInputError | None:
    """What is wrong with one text, if anything is."""
    if not text.strip():
        return InvalidInputError("is empty, expected at least one word", path=path)
    num_bytes = len(text.encode()) if len(text) * 4 > max_bytes else 0
    if num_bytes > max_bytes:
        return InvalidInputError(f"has {num_bytes} bytes, the limit is {max_bytes}", path=path)
    return None


def check_texts(texts: Iterable[tuple[ErrorPath, str]], *, max_bytes: int) -> None:
    """Checks texts that are to be encoded.

    Args:
        texts: ``(path, text)`` of each.
        max_bytes: Longest UTF-8 form.

    Raises:
        InvalidFieldsError: Some are empty or too long; names the first of them.
    """
    raise_first(problem for path, text in texts if (problem := text_problem(text, path, max_bytes)) is not None)


def raise_first(problems: Iterable[InvalidInputError]) -> None:
    """Raises the first few problems as one error; looks for no more than those.

    Raises:
        InvalidFieldsError: There is a problem.
    """
    found = list(islice(problems, _MOST_REPORTED))
    if found:
        raise InvalidFieldsError(found)


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Some items and the token of the next page, empty on the last one."""

    items: Sequence[Item]
    next_token: str


def page_size_of(requested: int, limit: int) -> int:
    """The size of a page: as requested, the default for 0.

    Raises:
        InvalidInputError: More than ``limit``.
    """
    return check_number(requested or min(_DEFAULT_PAGE_SIZE, limit), ("page_size",), limit)


def page_of(items: Sequence[Item], *, size: int, token: str, limit: int) -> Page[Item]:
    """One page of a list.

    Args:
        items: The whole list.
        size: Requested size, 0 for the default.
        token: ``next_token`` of the page before, empty for the first page.
        limit: Largest size.

    Raises:
        InvalidInputError: The size is out of range or the token is not ours.
    """
    size = page_size_of(size, limit)
    start = _start_of(token) if token else 0
    end = start + size
    next_token = base64.urlsafe_b64encode(f"{_TOKEN_PREFIX}{end}".encode()).decode() if end < len(items) else ""
    return Page(items[start:end], next_token)


def _start_of(token: str) -> int:
    try:
        text = base64.urlsafe_b64decode(token.encode()).decode()
        if text.startswith(_TOKEN_PREFIX):
            return max(0, int(text.removeprefix(_TOKEN_PREFIX)))
    except (binascii.Error, ValueError):
        pass  # refused below, like a token with another prefix
    raise InvalidInputError("is not one of ours, expected next_page_token", path="page_token")
