"""Sizes are checked on messages, before any record is made of them: a request beyond a limit costs little."""

from typing import Any

import pytest
from facets_proto.v1 import documents_pb2, papers_pb2, relations_pb2
from facets_server.documents.requests import search_of
from facets_server.papers.requests import candidate_query_of, new_authors_of
from facets_server.relations.requests import check_slots, num_scores_of
from facets_server.runtime import requests
from facets_server.runtime.config import LimitsConfig

from facets.errors import InvalidInputError

LIMITS = LimitsConfig()
MANY = 20_000
AUTHOR = papers_pb2.NewAuthor(papers=[{}] * 1000)
CASES: list[tuple[Any, Any, str]] = [
    (search_of, documents_pb2.SearchRequest(queries=[{}] * MANY), "queries"),
    (num_scores_of, relations_pb2.ScoreRelationsRequest(patterns=[""] * MANY), "patterns"),
    (check_slots, relations_pb2.FillSlotsRequest(slots=[{}] * MANY), "slots"),
    (candidate_query_of, papers_pb2.RecommendAuthorsRequest(papers=[{}] * MANY), "papers"),
    (new_authors_of, papers_pb2.AddAuthorsRequest(authors=[AUTHOR] * 20), "authors"),
]


@pytest.mark.parametrize(("read", "request_", "field"), CASES)
def test_no_record_is_made_of_a_request_beyond_a_limit(
    read: Any, request_: Any, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*_: object, **__: object) -> None:
        raise AssertionError("a record was made")

    monkeypatch.setattr(requests, "from_message", made)
    monkeypatch.setattr(requests, "array_from_message", made)
    with pytest.raises(InvalidInputError) as caught:
        read(request_, LIMITS)
    assert caught.value.field == field
