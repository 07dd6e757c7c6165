"""Records of the library beside the messages that they become: the same names for the same fields."""

from dataclasses import fields
from typing import Any

import pytest
from facets_proto.v1 import common_pb2, documents_pb2, papers_pb2, relations_pb2, results_pb2, texts_pb2

from facets import documents
from facets.documents import types
from facets.documents.ingest import Rejection, StoredBatch, TruncatedDocument
from facets.documents.queries import DocumentQuery
from facets.papers import records as papers
from facets.relations import entailment, entities, results
from facets.texts import explanation, similarity, summarization

# Record -> message, and the fields of the message that come from elsewhere.
WRITTEN: list[tuple[Any, Any, set[str]]] = [
    (types.TokenStats, common_pb2.TokenStats, set()),
    (explanation.NearestWord, common_pb2.NearestWord, set()),
    (explanation.FacetWords, common_pb2.FacetWords, set()),
    (explanation.TokenAttention, common_pb2.TokenAttention, set()),
    (explanation.TextExplanation, texts_pb2.TextExplanation, {"token_stats"}),
    (similarity.FacetMatch, common_pb2.FacetMatch, {"second_span"}),
    (similarity.PairExplanation, texts_pb2.PairExplanation, set()),
    (summarization.Summary, texts_pb2.Summary, set()),
    (summarization.SummarySentence, texts_pb2.SummarySentence, set()),
    (documents.CollectionInfo, documents_pb2.Collection, {"index_revision"}),
    (documents.StoredDocument, documents_pb2.Document, set()),
    (documents.GetResult, documents_pb2.GetDocumentsResponse, set()),
    (documents.DocumentPage, documents_pb2.ListDocumentsResponse, set()),
    (documents.CountResult, documents_pb2.CountDocumentsResponse, set()),
    (documents.FacetMatch, common_pb2.FacetMatch, set()),
    (documents.Span, common_pb2.Span, set()),
    (documents.DocumentPart, results_pb2.DocumentPart, set()),
    (documents.SearchHit, results_pb2.SearchHit, set()),
    (StoredBatch, documents_pb2.UpsertResponse, {"model", "timings"}),
    (StoredBatch, documents_pb2.UpsertStreamAck, {"sequence", "already_stored"}),
    (Rejection, documents_pb2.RejectedDocument, set()),
    (TruncatedDocument, common_pb2.TruncatedDocument, set()),
    (results.EntityMention, relations_pb2.EntityMention, set()),
    (results.FacetMeeting, relations_pb2.FacetMeeting, set()),
    (results.NearRelation, relations_pb2.NearRelation, set()),
    (results.FacetRelations, relations_pb2.FacetRelations, set()),
    (results.SimilarPattern, relations_pb2.SimilarPattern, set()),
    (results.RelationScore, relations_pb2.RelationScore, set()),
    (results.PatternScore, relations_pb2.PatternScore, set()),
    (results.EntityPair, relations_pb2.EntityPair, set()),
    (results.TailMention, relations_pb2.TailMention, set()),
    (results.RankedTail, relations_pb2.RankedTail, set()),
    (results.Relation, relations_pb2.Relation, set()),
    (entailment.Entailment, relations_pb2.Entailment, set()),
    (papers.RankedCandidate, papers_pb2.RankedCandidate, set()),
    (papers.RankedPaper, papers_pb2.RankedPaper, {"title"}),
    (papers.CandidateEvidence, papers_pb2.CandidateEvidence, set()),
    (papers.AddResult, papers_pb2.AddPapersResponse, {"num_unknown_citations", "model", "timings"}),
    (papers.AddResult, papers_pb2.AddAuthorsResponse, {"model", "timings"}),
]
# Record <- message, and the fields of the record that are made from others of the message.
READ: list[tuple[Any, Any, set[str]]] = [
    (DocumentQuery, documents_pb2.SearchRequest, {"facets", "weights", "texts", "reasons"}),
    (entities.EntitySpan, relations_pb2.EntitySpan, {"clauses", "is_adjunct"}),
    (papers.Author, papers_pb2.Author, set()),
    (papers.Paper, papers_pb2.Paper, set()),
    (papers.NewAuthor, papers_pb2.NewAuthor, set()),
    (papers.PaperOptions, papers_pb2.PaperOptions, set()),
]


def name_of(value: object) -> str | None:
    return value.__name__ if isinstance(value, type) else None


@pytest.mark.parametrize(("record", "message", "elsewhere"), WRITTEN, ids=name_of)
def test_a_record_has_the_fields_of_its_message(record: Any, message: Any, elsewhere: set[str]) -> None:
    own = {name for name in dir(record) if not name.startswith("_")} | {field.name for field in fields(record)}
    assert set(message.DESCRIPTOR.fields_by_name) - own == elsewhere


@pytest.mark.parametrize(("record", "message", "elsewhere"), READ, ids=name_of)
def test_a_message_has_the_fields_of_its_record(record: Any, message: Any, elsewhere: set[str]) -> None:
    assert {field.name for field in fields(record)} - set(message.DESCRIPTOR.fields_by_name) == elsewhere
