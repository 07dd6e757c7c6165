"""Rules for papers, authors and ids in requests, with the broken fields named."""

from collections.abc import Iterator, Sequence

from facets.errors import InvalidInputError
from facets.papers.inputs import Author, Paper
from facets_server.runtime.checks import text_problem
from facets_server.runtime.config import LimitsConfig
from facets_server.runtime.errors import InvalidFieldsError

__all__ = ["check_author", "check_distinct", "check_ids", "check_papers"]

_MAX_ID_BYTES = 512
_MOST_REPORTED = 8


def check_papers(papers: Sequence[tuple[str, Paper]], limits: LimitsConfig, *, need_id: bool) -> None:
    """Names the first papers that break a rule, all at once."""
    violations: list[tuple[str, str]] = []
    for field, paper in papers:
        violations += _paper_problems(field, paper, limits, need_id=need_id)
        if len(violations) >= _MOST_REPORTED:
            break
    if violations:
        raise InvalidFieldsError(violations)


def _paper_problems(field: str, paper: Paper, limits: LimitsConfig, *, need_id: bool) -> Iterator[tuple[str, str]]:
    problem = text_problem(paper.title, f"{field}.title", limits.max_text_bytes)
    if problem:
        yield f"{field}.title", problem
    num_bytes = len(paper.abstract.encode())
    if num_bytes > limits.max_document_bytes:
        yield (
            f"{field}.abstract",
            f"{field}.abstract has {num_bytes} bytes, the limit is {limits.max_document_bytes}",
        )
    if need_id and not paper.id:
        yield f"{field}.id", f"{field}.id is empty, expected a name"
    names = [(f"{field}.id", paper.id)] if paper.id else []
    names += [(f"{field}.cited_by_ids[{i}]", name) for i, name in enumerate(paper.cited_by)]
    for i, author in enumerate(paper.authors):
        names.append((f"{field}.authors[{i}].name", author.key))
    for where, name in names:
        if not name.strip():
            yield where, f"{where} is empty, expected a name"
        elif len(name.encode()) > _MAX_ID_BYTES:
            yield where, f"{where} has {len(name.encode())} bytes, the limit is {_MAX_ID_BYTES}"


def check_author(author: Author, field: str) -> None:
    """Checks that an author has a name or an id.

    Raises:
        InvalidInputError: Neither, or one that is too long.
    """
    check_ids([author.key], f"{field}.name", is_list=False)


def check_ids(ids: Sequence[str], field: str, *, is_list: bool = True) -> None:
    """Checks that ids are there and not too long.

    Args:
        ids: What somebody or something is called.
        field: Their path in the request.
        is_list: Whether the path needs the place of each.

    Raises:
        InvalidInputError: One is empty or too long.
    """
    for i, name in enumerate(ids):
        where = f"{field}[{i}]" if is_list else field
        if not name.strip():
            raise InvalidInputError(f"{where} is empty, expected a name", field=where)
        if len(name.encode()) > _MAX_ID_BYTES:
            raise InvalidInputError(
                f"{where} has {len(name.encode())} bytes, the limit is {_MAX_ID_BYTES}", field=where
            )


def check_distinct(ids: Sequence[str], field: str, part: str) -> None:
    """Checks that no id comes twice; empty ones may.

    Args:
        ids: One for each entry of a list.
        field: Path of the list in the request.
        part: What of an entry holds the id.

    Raises:
        InvalidInputError: Two entries have the same.
    """
    first: dict[str, int] = {}
    for i, name in enumerate(ids):
        if name and first.setdefault(name, i) != i:
            raise InvalidInputError(
                f"{field}[{i}].{part} is {name!r}, the same as {field}[{first[name]}].{part}: expected distinct ones",
                field=f"{field}[{i}].{part}",
            )
