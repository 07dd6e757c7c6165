"""Records of the library beside the messages that they are made of: the same names for the same fields."""

from dataclasses import fields
from typing import Any

import pytest
from facets_proto.v1 import documents_pb2, papers_pb2, relations_pb2

from facets.documents.queries import DocumentQuery
from facets.papers import records as papers
from facets.relations import entities

# Record <- message, and the fields of the record that are made from others of the message.
READ: list[tuple[Any, Any, set[str]]] = [
    (DocumentQuery, documents_pb2.SearchRequest, {"facets", "weights", "texts", "max_bytes", "reasons"}),
    (entities.EntitySpan, relations_pb2.EntitySpan, {"clauses", "is_adjunct"}),
    (papers.Author, papers_pb2.Author, set()),
    (papers.Paper, papers_pb2.Paper, set()),
    (papers.NewAuthor, papers_pb2.NewAuthor, set()),
    (papers.PaperOptions, papers_pb2.PaperOptions, set()),
]


def name_of(value: object) -> str | None:
    return value.__name__ if isinstance(value, type) else None


@pytest.mark.parametrize(("record", "message", "elsewhere"), READ, ids=name_of)
def test_a_message_has_the_fields_of_its_record(record: Any, message: Any, elsewhere: set[str]) -> None:
    assert {field.name for field in fields(record)} - set(message.DESCRIPTOR.fields_by_name) == elsewhere
