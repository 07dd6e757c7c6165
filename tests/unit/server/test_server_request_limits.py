"""Values are counted on the wire, before any object is made of them: a request beyond a limit costs little."""

import time
from typing import Any

import pytest
from facets_proto.v1 import documents_pb2, papers_pb2, relations_pb2, texts_pb2
from facets_server.papers.service import new_authors_of
from facets_server.runtime.config import MAX_VALUES, LimitsConfig
from facets_server.runtime.message_limits import MessageLimits

from facets.errors import InvalidInputError

LIMITS = LimitsConfig()
COUNTED = MessageLimits(LIMITS)
MANY = 20_000


def num_values(message: Any) -> int:
    return COUNTED.num_values(type(message).FromString, message.SerializeToString())


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (texts_pb2.EmbedRequest(texts=[""] * 513), "texts"),
        (texts_pb2.EmbedStreamRequest(request={"texts": [""] * MANY}), "request.texts"),
        (texts_pb2.SummarizeRequest(documents=[{"text": "a"}, {"sentences": {"sentences": ["a"] * MANY}}]),
         "documents[1].sentences.sentences"),
        (documents_pb2.SearchRequest(queries=[{}] * 65), "queries"),
        (documents_pb2.CountDocumentsRequest(where={"all_of": {"filters": [{}] * 257}}), "where.all_of.filters"),
        (relations_pb2.ScoreRelationsRequest(patterns=[""] * MANY), "patterns"),
        (relations_pb2.FillSlotsRequest(slots=[{}] * MANY), "slots"),
        (papers_pb2.RecommendAuthorsRequest(papers=[{}] * MANY), "papers"),
        (papers_pb2.AddAuthorsRequest(authors=[{}, {"papers": [{}] * 513}]), "authors[1].papers"),
        (papers_pb2.AddAuthorsRequest(authors=[{"papers": [{"excluded_ids": [""] * (MAX_VALUES + 1)}]}]), ""),
        (documents_pb2.UpsertRequest(documents=[{"part_facets": [1] * (MAX_VALUES + 1)}]), ""),
    ],
)  # fmt: skip
def test_a_limit_is_found_on_the_wire(request_: Any, field: str) -> None:
    started = time.thread_time()
    with pytest.raises(InvalidInputError) as caught:
        num_values(request_)
    assert caught.value.field == field
    assert time.thread_time() - started < 2.0


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (texts_pb2.EmbedRequest(texts=["a"] * 512, model="m", normalize=True).SerializeToString(), 514),
        (b"\x0a\x01a" + b"\xf8\xff\xff\xff\x0f\x01" + b"\xfd\xff\xff\xff\x0f1234", 3),  # unknown fields
        (b"\x0a\x05abc", None),
        (b"\x0a", None),
        (b"\x20\x80\x80", None),
        (b"\x31\x00", None),  # eight bytes, of which one is there
        (b"\xf3\x01\xf4\x01", None),  # a group
    ],
)
def test_values_are_counted_as_protobuf_reads_them(data: bytes, expected: int | None) -> None:
    if expected is not None:
        assert COUNTED.num_values(texts_pb2.EmbedRequest.FromString, data) == expected
        return
    with pytest.raises(InvalidInputError, match="cannot be decoded"):
        COUNTED.num_values(texts_pb2.EmbedRequest.FromString, data)


def test_nesting_is_limited_as_in_protobuf() -> None:
    filters = b""
    for _ in range(60):
        filters = b"\x0a" + _varint(len(filters)) + filters
        filters = b"\x12" + _varint(len(filters)) + filters  # all_of
    with pytest.raises(InvalidInputError, match="nested"):
        COUNTED.num_values(documents_pb2.CountDocumentsRequest.FromString, b"\x12" + _varint(len(filters)) + filters)


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)


def test_papers_of_all_authors_are_limited_before_records_are_made() -> None:
    author = papers_pb2.NewAuthor(papers=[{}] * 300)
    with pytest.raises(InvalidInputError, match="600 papers"):
        new_authors_of(papers_pb2.AddAuthorsRequest(authors=[author] * 2), LIMITS)
