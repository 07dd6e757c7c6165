"""Candidates and papers ranked on behalf of a call: long work in several parts, so that nobody waits for a bulk."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facets.documents import Filter
from facets.papers.records import BulkCandidates, CandidateKind, Paper, PaperOptions, RankedCandidate, RankedPaper
from facets_server.papers.collection_papers import CollectionPapers
from facets_server.papers.served import ServedPapers
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import ITEM, FieldNames, in_request

_PAPERS_AT_A_TIME = 32
_BULK_PAPERS_AT_A_TIME = 128  # each turn looks up the candidates anew, so that few turns are cheaper
# Arguments of the library -> fields of the requests for candidates; of the request for papers.
_CANDIDATE_FIELDS: FieldNames = {
    "papers": ("papers", ITEM),
    "candidates": ("options", "candidates", "ids"),
    **{name: ("options", name) for name in ("positive_ids", "negative_ids", "excluded_ids")},
}
_PAPER_FIELDS: FieldNames = {"papers": ("papers", "papers", ITEM)}


@dataclass(frozen=True, kw_only=True, slots=True)
class CandidateQuery:
    """A checked request for candidates."""

    papers: tuple[Paper, ...]
    options: PaperOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperQuery:
    """A checked request for papers.

    Attributes:
        kind: What the ids are.
        ids: Authors or citing papers.
        collection: Where the papers are; empty: in ``papers``.
        papers: Papers of the caller's.
        where: Which documents of the collection; the years are part of it.
        options: Without exclusions and years for papers of a collection, see ``excluded`` and ``where``.
        excluded: Ids of papers never listed.
        min_revision: The read must see the writes up to this revision.
    """

    kind: CandidateKind
    ids: tuple[str, ...]
    collection: str
    papers: tuple[Paper, ...]
    where: Filter | None
    options: PaperOptions
    excluded: frozenset[str]
    min_revision: int | None


@dataclass(frozen=True, slots=True)
class NameQuery:
    """A checked request for candidates by name."""

    kind: CandidateKind
    texts: tuple[str, ...]
    top_k: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """Papers for authors or citing papers.

    Attributes:
        rankings: One an id of the query.
        ids: Of the papers that were compared.
        titles: Entry i belongs to ids[i].
        index_revision: Of the collection; 0 for papers of the caller's.
    """

    rankings: Sequence[Sequence[RankedPaper]]
    ids: Sequence[str]
    titles: Sequence[str]
    index_revision: int


def rank_candidates(
    served: ServedPapers, kind: CandidateKind, query: CandidateQuery, call: CallContext
) -> list[list[RankedCandidate]]:
    """Candidates for each paper.

    Raises:
        InvalidInputError: An example is unknown.
        DeadlineExceededError: The deadline passed first.
    """
    results: list[list[RankedCandidate]] = []
    for papers in _slices(query.papers, _PAPERS_AT_A_TIME):
        with in_request(_CANDIDATE_FIELDS, start=len(results)), served.exclusive(call) as engine:
            run = engine.recommend_authors if kind is CandidateKind.AUTHORS else engine.recommend_citations
            results += run(papers, query.options)
    call.num_items = len(results)
    return results


def rank_candidates_in_bulk(
    served: ServedPapers, kind: CandidateKind, query: CandidateQuery, call: CallContext
) -> list[BulkCandidates]:
    """Candidates for each paper as arrays, a few papers at a time; raises as ``rank_candidates``."""
    results: list[BulkCandidates] = []
    for papers in _slices(query.papers, _BULK_PAPERS_AT_A_TIME):
        start = len(results) * _BULK_PAPERS_AT_A_TIME
        with in_request(_CANDIDATE_FIELDS, start=start), served.exclusive(call) as engine:
            results.append(engine.recommend_bulk(kind, papers, query.options))
    call.num_items = len(query.papers)
    return results


def rank_papers(served: ServedPapers, query: PaperQuery, papers: CollectionPapers, call: CallContext) -> Ranked:
    """Papers for each author or citing paper.

    Raises:
        NotFoundError: An author, a citing paper or the collection is unknown.
        InvalidInputError: The collection has too many papers.
        DeadlineExceededError: The deadline passed first; what was encoded of a collection is kept.
    """
    call.num_items = len(query.ids)
    if not query.collection:
        with in_request(_PAPER_FIELDS), served.exclusive(call) as engine:
            rankings = engine.rank_papers(query.kind, query.ids, query.papers, options=query.options)
        return Ranked(rankings, [p.id for p in query.papers], [p.title for p in query.papers], 0)
    found = papers.read(
        served, query.collection, call, where=query.where, excluded=query.excluded, min_revision=query.min_revision
    )
    compared = found.facets if found.ids else ()
    with served.exclusive(call) as engine:
        rankings = engine.rank_papers(query.kind, query.ids, compared, options=query.options)
    return Ranked(rankings, found.ids, found.titles, found.index_revision)


def _slices(papers: Sequence[Paper], size: int) -> Iterator[Sequence[Paper]]:
    return (papers[start : start + size] for start in range(0, len(papers), size))
