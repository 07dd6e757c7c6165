"""Reads requests about papers into records of the library."""

from collections.abc import Iterator, Sequence

from facets_proto.v1 import papers_pb2 as pb

from facets.errors import ErrorPath, InvalidInputError
from facets.papers.records import CandidateKind, NewAuthor, Paper, PaperOptions
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.requests import check_list_of_texts, check_not_empty, check_product, check_texts, record_of

MAX_ID_BYTES = 512
_KINDS: dict[int, CandidateKind] = {
    pb.CANDIDATE_KIND_AUTHORS: CandidateKind.AUTHORS,
    pb.CANDIDATE_KIND_CITATIONS: CandidateKind.CITATIONS,
}


def papers_of(messages: Sequence[pb.Paper], path: ErrorPath, limits: LimitsConfig) -> tuple[Paper, ...]:
    """One or more papers in the field at ``path``; raises InvalidInputError."""
    check_not_empty(messages, path)
    papers = tuple(record_of(message, Paper) for message in messages)
    check_texts(text for i, paper in enumerate(papers) for text in _texts_of(paper, (*path, i), limits))
    return papers


def candidate_query_of(
    request: pb.RecommendAuthorsRequest | pb.RecommendCitationsRequest | pb.RecommendBulkRequest,
    limits: LimitsConfig,
    *,
    is_bulk: bool = False,
) -> tuple[tuple[Paper, ...], PaperOptions]:
    """Papers and options of a request; raises InvalidInputError."""
    papers = papers_of(request.papers, ("papers",), limits)
    options = record_of(request.options, PaperOptions, ("options",))
    if options.evidence and not is_bulk:
        check_product("papers", options.top_k, len(papers), limits.max_evidence_hits, ("options", "top_k"))
    return papers, options


def ranking_options_of(request: pb.RankPapersRequest, limits: LimitsConfig) -> PaperOptions:
    """Options of a request; years and excluded ids only for papers that the caller sent; raises InvalidInputError."""
    options = record_of(request, PaperOptions)
    if options.evidence:
        check_product("ids", options.top_k, len(request.ids), limits.max_evidence_hits)
    if request.WhichOneof("source") == "collection":  # years and ids are those of its documents
        return record_of(request, PaperOptions, excluded_ids=(), from_year=None, to_year=None)
    return options


def new_authors_of(request: pb.AddAuthorsRequest, limits: LimitsConfig) -> tuple[NewAuthor, ...]:
    """Authors to add; raises InvalidInputError."""
    check_not_empty(request.authors, ("authors",))
    num_papers = sum(len(author.papers) for author in request.authors)
    if num_papers > limits.max_texts_per_request:
        rule = f"have {num_papers} papers, the limit is {limits.max_texts_per_request}"
        raise InvalidInputError(rule, path="authors")
    authors = tuple(record_of(message, NewAuthor) for message in request.authors)
    check_texts(
        text
        for i, author in enumerate(authors)
        for j, paper in enumerate(author.papers)
        for text in _texts_of(paper, ("authors", i, "papers", j), limits)
    )
    for i, author in enumerate(authors):
        check_texts([(("authors", i, "author", "name"), author.author.key, MAX_ID_BYTES)])
        check_list_of_texts(author.paper_ids, "authors", i, "paper_ids", max_bytes=MAX_ID_BYTES)
    return authors


def kind_of(number: int) -> CandidateKind:
    """The kind of candidates that a request names; raises InvalidInputError."""
    if number not in _KINDS:
        raise InvalidInputError(f"must be authors or citations, got number {number}", path="kind")
    return _KINDS[number]


def _texts_of(paper: Paper, path: ErrorPath, limits: LimitsConfig) -> Iterator[tuple[ErrorPath, str, int]]:
    """Texts, ids and names of a paper, with their paths and limits of bytes."""
    yield (*path, "title"), paper.title, limits.max_text_bytes
    if paper.abstract.strip():
        yield (*path, "abstract"), paper.abstract, limits.max_long_text_bytes
    if paper.id:
        yield (*path, "id"), paper.id, MAX_ID_BYTES
    for i, name in enumerate(paper.cited_by_ids):
        yield (*path, "cited_by_ids", i), name, MAX_ID_BYTES
    for i, author in enumerate(paper.authors):
        yield (*path, "authors", i, "name"), author.key, MAX_ID_BYTES
