"""Papers and authors: from JSON lines, to messages, and messages to rankings.

In JSON, a paper is ``{"id", "title", "abstract", "authors", "cited_by", "year", "excluded"}``; only the title is
required, and for some commands the id. An author of a paper is a name or ``{"name", "id"}``. An author to add is
``{"name", "id", "papers": [paper, ...], "paper_ids": [...]}``. Other fields are ignored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from facets_proto.codec import from_message
from facets_proto.v1 import papers_pb2 as pb

from facets_client.core.requests import check_iterable, join, record_message, shown
from facets_client.generated.types import Author, ModelVersion, NewAuthor, Paper, PaperRankings, Timings
from facets_client.load.json_rows import read_jsonl
from facets_client.load.rows import Record, Rejection
from facets_client.load.source import Source

ItemT = TypeVar("ItemT")
_DEFAULT_TOP_K = 10  # the server's, for a request in parts


def paper_message(paper: Paper) -> pb.Paper:
    """A paper as a message; TypeError or ValueError names the field whose value does not fit."""
    if not isinstance(paper, Paper):
        raise TypeError(f"papers must be of class Paper, got {type(paper).__name__}")
    return record_message(paper, pb.Paper)


def paper_messages(papers: Sequence[Paper]) -> list[pb.Paper]:
    """Papers as messages; raises the errors of ``paper_message``."""
    check_iterable("papers", papers)
    return [paper_message(paper) for paper in papers]


def new_author_message(author: NewAuthor) -> pb.NewAuthor:
    """An author to add, as a message; raises the errors of ``paper_message``."""
    if not isinstance(author, NewAuthor):
        raise TypeError(f"authors must be of class NewAuthor, got {type(author).__name__}")
    return record_message(author, pb.NewAuthor, papers=paper_messages(author.papers))


@dataclass(frozen=True, slots=True)
class BulkCandidates:
    """Ids and scores only: entry i of ``results`` has ``(id, score)`` of each candidate for papers[i], best first."""

    results: tuple[tuple[tuple[str, float], ...], ...]
    unknown_candidates: tuple[str, ...]  # the first entries of the option ``candidates`` that are unknown
    num_unknown_candidates: int
    model: ModelVersion
    timings: Timings


def bulk_candidates(replies: Sequence[pb.RecommendBulkResponse]) -> BulkCandidates:
    """Joins the replies to the parts of a call, in paper order; each reply names all unknown candidates."""
    parts = [from_message(reply, BulkCandidates, results=_bulk_results(reply)) for reply in replies]
    return replace(join(parts), unknown_candidates=parts[-1].unknown_candidates)


def _bulk_results(reply: pb.RecommendBulkResponse) -> tuple[tuple[tuple[str, float], ...], ...]:
    ids = reply.candidate_ids
    return tuple(
        tuple((ids[row], score) for row, score in zip(result.candidates, result.scores, strict=True))
        for result in reply.results
    )


def paper_rankings(replies: Sequence[pb.RankPapersResponse], *, offset: int | None) -> PaperRankings:
    """Joins the replies for a few ids each; ``offset`` is the position of the request's first paper, if it has any."""
    joined = join([from_message(reply, PaperRankings) for reply in replies])
    rankings = (
        tuple(replace(item, position=None if offset is None else (item.position or 0) + offset) for item in ranking)
        for ranking in joined.rankings
    )
    return replace(joined, rankings=tuple(rankings))


def merge_rankings(parts: Sequence[PaperRankings], top_k: int | None) -> PaperRankings:
    """Merges rankings of different papers for the same ids, best first, ties by position."""
    rankings = []
    for same_id in zip(*(part.rankings for part in parts), strict=True):
        items = sorted(chain.from_iterable(same_id), key=lambda item: (-item.score, item.position or 0))
        rankings.append(tuple(items[: _DEFAULT_TOP_K if top_k is None else top_k]))
    return replace(join(parts, added=("num_papers",)), rankings=tuple(rankings))


def read_papers(source: Source, *, need_id: bool) -> Iterator[Record[Paper] | Rejection]:
    """The papers of an input; if an id is needed, a paper without one, or with an earlier one, is rejected."""
    return _read(source, partial(paper_of, need_id=need_id), "paper", lambda paper: paper.id if need_id else "")


def read_authors(source: Source) -> Iterator[Record[NewAuthor] | Rejection]:
    """The authors of an input, in order. A repeated author is rejected."""
    return _read(source, new_author_of, "author", lambda author: author.author.id or author.author.name)


def _read(
    source: Source, make: Callable[[Mapping[str, Any]], ItemT], kind: str, key_of: Callable[[ItemT], str]
) -> Iterator[Record[ItemT] | Rejection]:
    lines: dict[str, int] = {}  # key -> line
    for row in read_jsonl(source):
        if isinstance(row, Rejection):
            yield row
            continue
        name = row.fields.get("id") or row.fields.get("name")
        record_id = name if isinstance(name, str) else ""
        unread = Record(None, record_id, row.line)
        try:
            item = make(row.fields)
        except (TypeError, ValueError) as error:
            yield unread.rejected(f"invalid_{kind}", str(error))
            continue
        key = key_of(item)
        if key and lines.setdefault(key, row.line) != row.line:
            yield unread.rejected("duplicate_id", f"duplicate of the {kind} at line {lines[key]}")
        else:
            yield Record(item, record_id, row.line)


def paper_of(fields: Mapping[str, Any], *, need_id: bool = False) -> Paper:
    """A paper from a JSON object; TypeError or ValueError when a field is missing or has a wrong type."""
    paper = Paper(
        title=fields.get("title") or "",
        abstract=fields.get("abstract") or "",
        id=_id(fields),
        authors=tuple(map(_author, _list(fields, "authors"))),
        cited_by_ids=_list(fields, "cited_by"),
        year=fields.get("year"),
        excluded_ids=_list(fields, "excluded"),
    )
    paper_message(paper)  # checks the types
    if not paper.title.strip():
        raise ValueError("field 'title' has no text, expected at least one word")
    if need_id and not paper.id:
        raise ValueError("field 'id' is missing or empty, expected a non-empty string")
    return paper


def new_author_of(fields: Mapping[str, Any]) -> NewAuthor:
    """An author to add from a JSON object; raises as ``paper_of``."""
    papers = []
    for position, paper in enumerate(_list(fields, "papers")):
        try:
            if not isinstance(paper, Mapping):
                raise TypeError(f"must be an object, got {shown(paper)}")
            papers.append(paper_of(paper))
        except (TypeError, ValueError) as error:
            raise ValueError(f"papers[{position}]: {error}") from error
    author = NewAuthor(_author(fields), papers, _list(fields, "paper_ids"))
    new_author_message(author)  # checks the types
    if not author.papers and not author.paper_ids:
        raise ValueError("the author has no papers, expected at least one in 'papers' or 'paper_ids'")
    return author


def _author(value: object) -> Author:
    author_id = ""
    name = value
    if isinstance(value, Mapping):
        author_id = _id(value)
        name = value.get("name") or author_id
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"an author must be a name, or an object with a name or an id, got {shown(value)}")
    return Author(name, author_id)


def _id(fields: Mapping[str, Any]) -> Any:
    value = fields.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return "" if value is None else value


def _list(fields: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    values = fields.get(name)
    if values is not None and not isinstance(values, list):
        raise TypeError(f"{name} must be a list, got {shown(values)}")
    return tuple(values or ())
