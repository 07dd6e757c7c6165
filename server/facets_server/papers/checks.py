"""Rules for papers, authors and ids in requests, with the broken fields named."""

from collections.abc import Iterator, Sequence

from facets.errors import ErrorPath, InvalidInputError
from facets.papers.records import Author, Paper
from facets_server.runtime.limits import LimitsConfig, raise_first, text_problem

__all__ = ["check_author", "check_distinct", "check_ids", "check_papers"]

_MAX_ID_BYTES = 512


def check_papers(papers: Sequence[tuple[ErrorPath, Paper]], limits: LimitsConfig, *, need_id: bool) -> None:
    """Names the first papers that break a rule, all at once."""
    raise_first(problem for path, paper in papers for problem in _paper_problems(path, paper, limits, need_id=need_id))


def _paper_problems(
    path: ErrorPath, paper: Paper, limits: LimitsConfig, *, need_id: bool
) -> Iterator[InvalidInputError]:
    problem = text_problem(paper.title, (*path, "title"), limits.max_text_bytes)
    if problem is not None:
        yield problem
    num_bytes = len(paper.abstract.encode())
    if num_bytes > limits.max_document_bytes:
        yield InvalidInputError(
            f"has {num_bytes} bytes, the limit is {limits.max_document_bytes}", path=(*path, "abstract")
        )
    if need_id and not paper.id:
        yield InvalidInputError("is empty, expected a name", path=(*path, "id"))
    names: list[tuple[ErrorPath, str]] = [((*path, "id"), paper.id)] if paper.id else []
    names += [((*path, "cited_by_ids", i), name) for i, name in enumerate(paper.cited_by_ids)]
    names += [((*path, "authors", i, "name"), author.key) for i, author in enumerate(paper.authors)]
    for where, name in names:
        name_problem = _name_problem(name, where)
        if name_problem is not None:
            yield name_problem


def _name_problem(name: str, path: ErrorPath) -> InvalidInputError | None:
    if not name.strip():
        return InvalidInputError("is empty, expected a name", path=path)
    if len(name.encode()) > _MAX_ID_BYTES:
        return InvalidInputError(f"has {len(name.encode())} bytes, the limit is {_MAX_ID_BYTES}", path=path)
    return None


def check_author(author: Author, path: ErrorPath) -> None:
    """Checks that an author has a name or an id.

    Raises:
        InvalidInputError: Neither, or one that is too long.
    """
    problem = _name_problem(author.key, (*path, "name"))
    if problem is not None:
        raise problem


def check_ids(ids: Sequence[str], path: ErrorPath) -> None:
    """Checks that ids are there and not too long.

    Args:
        ids: What somebody or something is called.
        path: Of the list in the request.

    Raises:
        InvalidInputError: One is empty or too long.
    """
    for i, name in enumerate(ids):
        problem = _name_problem(name, (*path, i))
        if problem is not None:
            raise problem


def check_distinct(ids: Sequence[str], path: ErrorPath, part: str) -> None:
    """Checks that no id comes twice; empty ones may.

    Args:
        ids: One for each entry of a list.
        path: Of the list in the request.
        part: What of an entry holds the id.

    Raises:
        InvalidInputError: Two entries have the same.
    """
    seen: set[str] = set()
    for i, name in enumerate(ids):
        if name and name in seen:
            raise InvalidInputError(f"is {name!r}, as an earlier one is: expected distinct ones", path=(*path, i, part))
        seen.add(name)
