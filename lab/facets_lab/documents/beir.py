"""Retrieval data (BEIR folders, files of pairs, docstrings) and ranking metrics computed by trec_eval."""

import importlib
import inspect
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field

from facets.errors import ConfigError, InvalidInputError
from facets_lab.evaluation.files import NonBlank, Record, parse_number, read_lines, read_records, split_fields

DEPTH = 100  # documents of a ranking that are evaluated
METRICS = ("ndcg_10", "recall_100", "mrr_10")
_FIRST = 10
_COLUMNS = ("query-id", "corpus-id", "score")
_MAX_GRADE = 10_000  # trec_eval counts the documents of every grade
_SHORTEST_BODY, _LONGEST_BODY = 150, 2_000  # characters of a docstring after its summary
_SUMMARY_CHARS = range(20, 151)

Ranking = Sequence[str]  # ids of documents, best first, each once


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalData:
    """Documents and queries with relevance judgements."""

    name: str  # name of the folder or file
    documents: Mapping[str, str]  # text by id: title, newline and text; empty if it has no visible character
    queries: Mapping[str, str]  # text by id; every query has at least one relevant document
    judgements: Mapping[str, Mapping[str, int]]  # for each query, grade by document id; grades above 0 are relevant


def read_beir(folder: Path) -> RetrievalData:
    """Reads ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``, each plain, ``.xz`` or ``.gz``.

    Queries without a relevant document are left out.
    """
    if not folder.is_dir():
        raise InvalidInputError(f"{folder}: expected a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv")
    corpus, queries, qrels = (_find(folder, name) for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"))
    documents = {
        key: "\n".join(part for part in (record.title or "", record.text) if _is_visible(part))
        for key, record in _by_id(_DocumentRecord, corpus).items()
    }
    texts = {key: record.text for key, record in _by_id(_QueryRecord, queries).items()}
    judgements = _read_judgements(qrels, texts, documents)
    kept = [query for query in texts if any(grade > 0 for grade in judgements.get(query, {}).values())]
    if not kept:
        raise InvalidInputError(f"{qrels}: expected a query with a relevant document, got none")
    return RetrievalData(
        name=folder.resolve().name,
        documents=documents,
        queries={query: texts[query] for query in kept},
        judgements={query: judgements[query] for query in kept},
    )


def sample_queries(data: RetrievalData, num_queries: int | None, *, seed: int) -> RetrievalData:
    """Keeps a seeded sample of the queries, in the original order; None: all of them."""
    if num_queries is None or num_queries >= len(data.queries):
        return data
    rows = np.sort(np.random.default_rng(seed).choice(len(data.queries), num_queries, replace=False))
    keys = list(data.queries)
    queries = {keys[row]: data.queries[keys[row]] for row in rows}
    return replace(data, queries=queries, judgements={key: data.judgements[key] for key in queries})


def sample_documents(data: RetrievalData, num_documents: int | None, *, seed: int) -> RetrievalData:
    """Keeps the judged documents and a seeded sample of the others, in the original order; None: all of them."""
    if num_documents is None or num_documents >= len(data.documents):
        return data
    judged = {key for grades in data.judgements.values() for key in grades}
    is_judged = np.array([key in judged for key in data.documents])
    others = np.flatnonzero(~is_judged)
    num_others = min(len(others), max(0, num_documents - int(is_judged.sum())))
    drawn = np.random.default_rng(seed).choice(others, num_others, replace=False)
    keys = list(data.documents)
    rows = np.sort(np.concatenate([np.flatnonzero(is_judged), drawn])).tolist()
    return replace(data, documents={keys[row]: data.documents[keys[row]] for row in rows})


def _find(folder: Path, name: str) -> Path:
    paths = [path for path in (folder / f"{name}{suffix}" for suffix in ("", ".xz", ".gz")) if path.is_file()]
    if len(paths) != 1:
        got = f"both {paths[0].name} and {paths[1].name}" if paths else "none of them"
        raise InvalidInputError(f"{folder}: expected {name}, {name}.xz or {name}.gz, got {got}")
    return paths[0]


def _number_as_text(value: object) -> object:
    """Converts numbers to text: some tools write ids as numbers, but judgements always have text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_visible(text: str) -> bool:
    """Whether a text has a letter, number, punctuation mark or symbol."""
    return any(unicodedata.category(letter)[0] in "LNPS" and letter != "\ufffd" for letter in text)


def _visible(text: str) -> str:
    if not _is_visible(text):
        raise ValueError("must be a text with words")
    return text


class _IdRecord(Record):
    id: Annotated[str, BeforeValidator(_number_as_text), Field(alias="_id", min_length=1)]


class _DocumentRecord(_IdRecord):
    title: str | None = None
    text: str


class _QueryRecord(_IdRecord):
    text: Annotated[str, AfterValidator(_visible)]


class _PairRecord(Record):
    query: NonBlank
    positive: NonBlank


IdRecordT = TypeVar("IdRecordT", bound=_IdRecord)


def _by_id(kind: type[IdRecordT], path: Path) -> dict[str, IdRecordT]:
    records: dict[str, IdRecordT] = {}
    for place, record in read_records(kind, path):
        if record.id in records:
            raise InvalidInputError(f"{place}: expected a new _id, got {record.id!r} again")
        records[record.id] = record
    if not records:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return records


def _read_judgements(path: Path, queries: Mapping[str, str], documents: Mapping[str, str]) -> dict[str, dict[str, int]]:
    judgements: dict[str, dict[str, int]] = {}
    for number, (place, line) in enumerate(read_lines(path)):
        query, document, grade = split_fields(line, _COLUMNS, place)
        if number == 0 and grade.strip().lower() == _COLUMNS[-1]:
            continue  # the header
        value = parse_number(grade, place, name="score")
        if not value.is_integer() or abs(value) > _MAX_GRADE:
            bounds = f"from -{_MAX_GRADE} to {_MAX_GRADE}"
            raise InvalidInputError(f"{place}: expected a whole number {bounds} as score, got {grade[:40]!r}")
        for kind, key, known in (("query", query, queries), ("document", document, documents)):
            if key not in known:
                raise InvalidInputError(f"{place}: expected the id of a {kind}, got the unknown id {key!r}")
        grades = judgements.setdefault(query, {})
        if document in grades:
            raise InvalidInputError(f"{place}: expected a new pair, got {query!r} and {document!r} again")
        grades[document] = int(value)
    return judgements


def read_pairs(path: Path) -> RetrievalData:
    """Reads JSON lines ``{"query", "positive"}``; the documents are the distinct positive texts."""
    document_ids: dict[str, str] = {}
    query_ids: dict[str, str] = {}
    judgements: dict[str, dict[str, int]] = {}
    for _, pair in read_records(_PairRecord, path):
        document_id = document_ids.setdefault(pair.positive, f"d{len(document_ids)}")
        query_id = query_ids.setdefault(pair.query, f"q{len(query_ids)}")
        judgements.setdefault(query_id, {})[document_id] = 1
    if not query_ids:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return RetrievalData(
        name=path.name.partition(".")[0],
        documents={key: text for text, key in document_ids.items()},
        queries={key: text for text, key in query_ids.items()},
        judgements=judgements,
    )


def read_docstrings(modules: Sequence[str]) -> RetrievalData:
    """Docstrings of public functions and classes: the summary is the query, name and body are the document."""
    body_of: dict[str, str] = {}
    for module in modules:
        try:
            members = vars(importlib.import_module(module))
        except ImportError as error:
            raise ConfigError(f"{module}: expected an installed module: {error}") from error
        for name, member in members.items():
            text = "" if name.startswith("_") or not callable(member) else inspect.getdoc(member) or ""
            if re.match(r"[\w.]+\(", text):  # a signature
                text = text.partition("\n\n")[2]
            summary, _, body = text.partition("\n\n")
            if len(summary) in _SUMMARY_CHARS and _SHORTEST_BODY <= len(body) <= _LONGEST_BODY:
                body_of.setdefault(" ".join(summary.split()).rstrip("."), f"{name}\n\n{body}")
    if not body_of:
        raise InvalidInputError(f"{', '.join(modules)}: expected docstrings with a summary and a body, got none")
    return RetrievalData(
        name="docstrings",
        documents={f"d{row}": text for row, text in enumerate(body_of.values())},
        queries={f"q{row}": summary for row, summary in enumerate(body_of)},
        judgements={f"q{row}": {f"d{row}": 1} for row in range(len(body_of))},
    )


def query_metrics(
    rankings: Sequence[Ranking], judgements: Sequence[Mapping[str, int]]
) -> dict[str, NDArray[np.float64]]:
    """``ndcg_10``, ``recall_100`` and ``mrr_10`` (0 without a relevant document among the first 10) of each query.

    Values are in ``[0, 1]``, computed by trec_eval. A ranking may be empty or longer than 100.

    Example:
        >>> values = query_metrics([["a", "b"]], [{"b": 1, "c": 1}])
        >>> {name: round(float(value[0]), 2) for name, value in values.items()}
        {'ndcg_10': 0.39, 'recall_100': 0.5, 'mrr_10': 0.5}
    """
    from pytrec_eval import RelevanceEvaluator

    grades = {
        str(row): {key: max(grade, 0) for key, grade in of_query.items()} for row, of_query in enumerate(judgements)
    }
    runs = {str(row): _as_run(ranking[:DEPTH]) for row, ranking in enumerate(rankings) if ranking}
    tops = {str(row): _as_run(ranking[:_FIRST]) for row, ranking in enumerate(rankings) if ranking}
    measured = RelevanceEvaluator(grades, {"ndcg_cut.10", "recall.100"}).evaluate(runs)
    first = RelevanceEvaluator(grades, {"recip_rank"}).evaluate(tops)
    values = np.zeros((len(rankings), len(METRICS)))
    for row, found in measured.items():
        values[int(row)] = found["ndcg_cut_10"], found["recall_100"], first[row]["recip_rank"]
    return dict(zip(METRICS, values.T, strict=True))


def _as_run(ranking: Ranking) -> dict[str, float]:
    """Gives a ranking decreasing scores, because trec_eval sorts by score and breaks ties by id."""
    return {key: float(len(ranking) - row) for row, key in enumerate(ranking)}
