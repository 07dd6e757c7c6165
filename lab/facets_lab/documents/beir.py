"""Folders in BEIR's layout, files of pairs, and metrics of rankings by trec_eval."""

import importlib
import inspect
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from facets.documents.encoding import check_ids, check_text
from facets.documents.types import JsonValue
from facets.errors import ConfigError, InvalidInputError
from facets.index.config import MAX_TEXT_BYTES
from facets_lab.evaluation.files import Record, Said, fields_of, number_of, read_as, read_lines

_PACKED = ("", ".xz", ".gz")
_COLUMNS = ("query-id", "corpus-id", "score")
_MAX_GRADE = 10_000  # trec_eval counts documents of every grade up to the greatest, in C numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalData:
    """Documents, and queries with the documents that answer them.

    Attributes:
        name: Name of the folder.
        document_ids: In the order of the file.
        documents: Their titles and texts, in the same places; empty where nothing is visible.
        query_ids: Queries with at least one relevant document, in the order of the file.
        queries: Their texts, in the same places; never blank.
        judgements: For each of these queries, ids of documents -> grade; above 0 is relevant.
        titles: Of the documents that have title and text, by id: their documents are these, a new line, and the text.
    """

    name: str
    document_ids: tuple[str, ...]
    documents: tuple[str, ...]
    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    judgements: Mapping[str, Mapping[str, int]]
    titles: Mapping[str, str] = field(default_factory=dict)

    def apart(self, place: int) -> tuple[str, dict[str, JsonValue]]:
        """The text of a document and its title as a payload."""
        text, title = self.documents[place], self.titles.get(self.document_ids[place], "")
        return (text[len(title) + 1 :], {"title": title}) if title else (text, {})


def read_beir(folder: Path) -> RetrievalData:
    """Reads ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``, each also with ``.xz`` or ``.gz``.

    A line of the corpus is ``{"_id", "title", "text"}`` (the title may be missing), of the queries ``{"_id", "text"}``,
    of the judgements query, document and grade by tabs, with or without a line of names first. A document is read as
    its title, a new line, and its text. Queries without a relevant document are left out, as nothing can be measured.

    Raises:
        ConfigError: A file cannot be read.
        InvalidInputError: A file is missing, a line has another form, an id is there twice or is not known; the
            message names file and line.
    """
    if not folder.is_dir():
        raise InvalidInputError(f"{folder}: expected a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv")
    corpus, queries, qrels = (_file(folder, name) for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"))
    parts = {key: record.parts() for key, record in _keyed(_DocumentRecord, corpus).items()}
    documents = {key: "\n".join(of_one) for key, of_one in parts.items()}
    asked = {key: record.text for key, record in _keyed(_QueryRecord, queries).items()}
    judgements = _judgements(qrels, asked, documents)
    kept = [query for query in asked if any(grade > 0 for grade in judgements.get(query, {}).values())]
    if not kept:
        raise InvalidInputError(f"{qrels}: expected a query with a relevant document, got none")
    return RetrievalData(
        name=folder.resolve().name,
        document_ids=tuple(documents),
        documents=tuple(documents.values()),
        query_ids=tuple(kept),
        queries=tuple(asked[query] for query in kept),
        judgements={query: judgements[query] for query in kept},
        titles={key: of_one[0] for key, of_one in parts.items() if len(of_one) > 1},
    )


def limit_queries(data: RetrievalData, num_queries: int | None, *, seed: int) -> RetrievalData:
    """A seeded sample of the queries, in their order; all of them when there are no more or None is asked for.

    Args:
        data: What was read.
        num_queries: At least 1.
        seed: Of the sample; the same one gives the same queries.
    """
    if num_queries is None or num_queries >= len(data.queries):
        return data
    rows = np.sort(np.random.default_rng(seed).choice(len(data.queries), num_queries, replace=False))
    ids = tuple(data.query_ids[row] for row in rows)
    return replace(
        data,
        query_ids=ids,
        queries=tuple(data.queries[row] for row in rows),
        judgements={query: data.judgements[query] for query in ids},
    )


def limit_documents(data: RetrievalData, num_documents: int | None, *, seed: int) -> RetrievalData:
    """The judged documents of the queries, and a seeded sample of the others; all where no more are asked for."""
    if num_documents is None or num_documents >= len(data.documents):
        return data
    judged = {key for grades in data.judgements.values() for key in grades}
    known = np.array([key in judged for key in data.document_ids])
    others = np.flatnonzero(~known)
    wanted = min(len(others), max(0, num_documents - int(known.sum())))
    drawn = np.random.default_rng(seed).choice(others, wanted, replace=False)
    rows = np.sort(np.concatenate([np.flatnonzero(known), drawn])).tolist()
    return replace(
        data,
        document_ids=tuple(data.document_ids[row] for row in rows),
        documents=tuple(data.documents[row] for row in rows),
    )


def _file(folder: Path, name: str) -> Path:
    candidates = [folder / f"{name}{suffix}" for suffix in _PACKED]
    found = [path for path in candidates if path.is_file()]
    if len(found) != 1:
        got = f"both {found[0].name} and {found[1].name}" if found else "none of them"
        raise InvalidInputError(f"{folder}: expected {name}, {name}.xz or {name}.gz, got {got}")
    return found[0]


def _number_as_text(value: object) -> object:
    """Some tools write numbers as ids; the judgements have texts in any case."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _checked_id(value: str) -> str:
    check_ids([value], path=())
    return value


def _checked_text(value: str) -> str:
    check_text(value, path=(), max_bytes=MAX_TEXT_BYTES)
    return value


def _asked(value: str) -> str:
    if not _is_visible(value):
        raise ValueError("must be a text with words")
    return value


_Text = Annotated[str, AfterValidator(_checked_text)]
_Query = Annotated[_Text, AfterValidator(_asked)]


class _Keyed(Record):
    id: Annotated[str, BeforeValidator(_number_as_text), AfterValidator(_checked_id), Field(alias="_id")]


class _DocumentRecord(_Keyed):
    title: str | None = None
    text: str

    def parts(self) -> list[str]:
        """What is visible of title and text."""
        return [part for part in (self.title or "", self.text) if _is_visible(part)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        _checked_text("\n".join(self.parts()))
        return self


class _QueryRecord(_Keyed):
    text: _Query


KeyedT = TypeVar("KeyedT", bound=_Keyed)


def _keyed(kind: type[KeyedT], path: Path) -> dict[str, KeyedT]:
    """Records by id."""
    records: dict[str, KeyedT] = {}
    places: dict[str, str] = {}
    for place, record in read_as(kind, path):
        if record.id in records:
            first = places[record.id]
            raise InvalidInputError(f"{place}: expected an _id of its own, got {record.id!r}, also at {first}")
        records[record.id], places[record.id] = record, place
    if not records:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return records


def _is_visible(text: str) -> bool:
    """Whether there is anything to encode: letters, numbers, punctuation or symbols."""
    return any(unicodedata.category(letter)[0] in "LNPS" and letter != "\ufffd" for letter in text)


def _judgements(path: Path, queries: Mapping[str, str], documents: Mapping[str, str]) -> dict[str, dict[str, int]]:
    judgements: dict[str, dict[str, int]] = {}
    places: dict[tuple[str, str], str] = {}
    for query, document, grade, place in _judged(path):
        for what, key, known in (("query", query, queries), ("document", document, documents)):
            if key not in known:
                raise InvalidInputError(f"{place}: expected the id of a {what}, got {key!r}, which is not there")
        if (query, document) in places:
            first = places[query, document]
            raise InvalidInputError(f"{place}: expected a new pair, got {query!r} and {document!r}, also at {first}")
        places[query, document] = place
        judgements.setdefault(query, {})[document] = grade
    return judgements


def _judged(path: Path) -> Iterator[tuple[str, str, int, str]]:
    for number, (place, line) in enumerate(read_lines(path)):
        query, document, grade = fields_of(line, _COLUMNS, place)
        if number == 0 and grade.strip().lower() == _COLUMNS[-1]:
            continue  # the names of the columns
        value = number_of(grade, place, what="score")
        if not value.is_integer() or abs(value) > _MAX_GRADE:
            raise InvalidInputError(
                f"{place}: expected a whole number from -{_MAX_GRADE} to {_MAX_GRADE} as score, got {grade[:40]!r}"
            )
        yield query, document, int(value), place


class Pair(Record):
    """A question and a passage that answers it."""

    query: Annotated[Said, AfterValidator(_checked_text)]
    positive: Annotated[Said, AfterValidator(_checked_text)]


def read_pairs(path: Path) -> RetrievalData:
    """Reads lines ``{"query", "positive"}``: documents are the different texts, relevant are those of a query's lines.

    Args:
        path: Plain, ``.gz`` or ``.xz``.

    Returns:
        Ids are ``q`` and ``d`` with numbers in the order of the file; ``name`` is that of the file to its first dot.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: It has no line, or a line has another form; the message names file and line.
    """
    documents: dict[str, str] = {}
    queries: dict[str, str] = {}
    judgements: dict[str, dict[str, int]] = {}
    for _, pair in read_as(Pair, path):
        document_id = documents.setdefault(pair.positive, f"d{len(documents)}")
        query_id = queries.setdefault(pair.query, f"q{len(queries)}")
        judgements.setdefault(query_id, {})[document_id] = 1
    if not queries:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return RetrievalData(
        name=path.name.partition(".")[0],
        document_ids=tuple(documents.values()),
        documents=tuple(documents),
        query_ids=tuple(queries.values()),
        queries=tuple(queries),
        judgements=judgements,
    )


_SHORTEST_BODY, _LONGEST_BODY = 150, 2_000  # characters
_SUMMARY = range(20, 151)


def read_docstrings(modules: Sequence[str]) -> RetrievalData:
    """Docstrings of public functions and classes: the summary asks for what stands below it, with the name above.

    Args:
        modules: Importable; their names are the name of what is read.

    Raises:
        ConfigError: A module is not installed.
        InvalidInputError: None of them has such a docstring.
    """
    found: dict[str, str] = {}
    for module in modules:
        try:
            members = vars(importlib.import_module(module))
        except ImportError as error:
            raise ConfigError(f"{module}: expected an installed module: {error}") from error
        for name, member in members.items():
            text = "" if name.startswith("_") or not callable(member) else inspect.getdoc(member) or ""
            if re.match(r"[\w.]+\(", text):  # a signature
                text = text.partition("\n\n")[2]
            head, _, body = text.partition("\n\n")
            if len(head) in _SUMMARY and _SHORTEST_BODY <= len(body) <= _LONGEST_BODY:
                found.setdefault(" ".join(head.split()).rstrip("."), f"{name}\n\n{body}")
    if not found:
        raise InvalidInputError(f"{', '.join(modules)}: expected docstrings with a summary and a body, got none")
    ids = tuple(f"d{place}" for place in range(len(found)))
    return RetrievalData(
        name="docstrings",
        document_ids=ids,
        documents=tuple(found.values()),
        query_ids=tuple(id.replace("d", "q") for id in ids),
        queries=tuple(found),
        judgements={id.replace("d", "q"): {id: 1} for id in ids},
    )


DEPTH = 100
"""Documents of a ranking that are looked at."""
_FIRST = 10
METRICS = ("ndcg_10", "recall_100", "mrr_10")

Ranking = Sequence[str]
"""Ids of documents, best first, each once."""


def query_metrics(
    rankings: Sequence[Ranking], judgements: Sequence[Mapping[str, int]]
) -> dict[str, NDArray[np.float64]]:
    """Metrics of each query, ``[Q]`` by name, in ``[0, 1]``.

    ``ndcg_10``: gains are the grades, discounts the logarithm of the rank plus one. ``recall_100``: the share of the
    relevant documents among the first 100. ``mrr_10``: one over the rank of the first relevant document, 0 when none
    is among the first 10.

    Args:
        rankings: One for each query; may be empty or longer than 100.
        judgements: In the same places, ids of documents -> grade; above 0 is relevant, and at least one is.

    Raises:
        ImportError: pytrec_eval is not installed.

    Example:
        >>> values = query_metrics([["a", "b"]], [{"b": 1, "c": 1}])
        >>> {name: round(float(value[0]), 2) for name, value in values.items()}
        {'ndcg_10': 0.39, 'recall_100': 0.5, 'mrr_10': 0.5}

    References:
        Jarvelin and Kekalainen 2002; the measures ndcg_cut_10, recall_100 and recip_rank of trec_eval.
    """
    from pytrec_eval import RelevanceEvaluator

    grades = {
        str(row): {key: max(grade, 0) for key, grade in of_query.items()} for row, of_query in enumerate(judgements)
    }
    runs = {str(row): _run(ranking[:DEPTH]) for row, ranking in enumerate(rankings) if ranking}
    tops = {str(row): _run(ranking[:_FIRST]) for row, ranking in enumerate(rankings) if ranking}
    measured = RelevanceEvaluator(grades, {"ndcg_cut.10", "recall.100"}).evaluate(runs)
    first = RelevanceEvaluator(grades, {"recip_rank"}).evaluate(tops)
    values = [
        (measured[row]["ndcg_cut_10"], measured[row]["recall_100"], first[row]["recip_rank"])
        if row in measured
        else (0.0, 0.0, 0.0)
        for row in map(str, range(len(rankings)))
    ]
    return dict(zip(METRICS, np.array(values, dtype=np.float64).reshape(-1, len(METRICS)).T, strict=True))


def _run(ranking: Ranking) -> dict[str, float]:
    """Falling scores: trec_eval sorts by score and would break ties by id."""
    return {key: float(len(ranking) - place) for place, key in enumerate(ranking)}
