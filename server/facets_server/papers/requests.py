"""Reads requests about papers into records of the library."""

from collections.abc import Iterable, Iterator, Sequence

from facets_proto.v1 import papers_pb2 as pb

from facets.errors import ErrorPath, InvalidInputError, raise_first
from facets.papers.records import CandidateKind, NewAuthor, Paper, PaperOptions
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.requests import check_not_empty, check_product, record_of, text_problem

_MAX_ID_BYTES = 512
_KINDS: dict[int, CandidateKind] = {
    pb.CANDIDATE_KIND_AUTHORS: CandidateKind.AUTHORS,
    pb.CANDIDATE_KIND_CITATIONS: CandidateKind.CITATIONS,
}


def papers_of(messages: Sequence[pb.Paper], path: ErrorPath, limits: LimitsConfig) -> tuple[Paper, ...]:
    """One or more papers in the field at ``path``; raises InvalidInputError."""
    check_not_empty(messages, path)
    papers = tuple(record_of(message, Paper) for message in messages)
    raise_first(problem for i, paper in enumerate(papers) for problem in _paper_problems((*path, i), paper, limits))
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
    raise_first(
        problem
        for i, author in enumerate(authors)
        for j, paper in enumerate(author.papers)
        for problem in _paper_problems(("authors", i, "papers", j), paper, limits)
    )
    for i, author in enumerate(authors):
        raise_first(_name_problems([(("authors", i, "author", "name"), author.author.key)]))
        check_names(author.paper_ids, ("authors", i, "paper_ids"))
    return authors


def kind_of(number: int) -> CandidateKind:
    """The kind of candidates that a request names; raises InvalidInputError."""
    if number not in _KINDS:
        raise InvalidInputError(f"must be authors or citations, got number {number}", path="kind")
    return _KINDS[number]


def check_names(names: Sequence[str], path: ErrorPath) -> None:
    """Checks that no name or id is empty or too long; raises InvalidInputError."""
    raise_first(_name_problems(((*path, i), name) for i, name in enumerate(names)))


def _paper_problems(path: ErrorPath, paper: Paper, limits: LimitsConfig) -> Iterator[InvalidInputError]:
    problem = text_problem(paper.title, (*path, "title"), limits.max_text_bytes)
    if problem is not None:
        yield problem
    num_bytes = len(paper.abstract.encode())
    if num_bytes > limits.max_long_text_bytes:
        rule = f"has {num_bytes} bytes, the limit is {limits.max_long_text_bytes}"
        yield InvalidInputError(rule, path=(*path, "abstract"))
    names: list[tuple[ErrorPath, str]] = [((*path, "id"), paper.id)] if paper.id else []
    names += [((*path, "cited_by_ids", i), name) for i, name in enumerate(paper.cited_by_ids)]
    names += [((*path, "authors", i, "name"), author.key) for i, author in enumerate(paper.authors)]
    yield from _name_problems(names)


def _name_problems(names: Iterable[tuple[ErrorPath, str]]) -> Iterator[InvalidInputError]:
    for path, name in names:
        num_bytes = len(name.encode())
        if not name.strip():
            yield InvalidInputError("is empty, expected a name", path=path)
        elif num_bytes > _MAX_ID_BYTES:
            yield InvalidInputError(f"has {num_bytes} bytes, the limit is {_MAX_ID_BYTES}", path=path)
