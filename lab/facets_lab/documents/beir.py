"""Retrieval data (BEIR folders, files of pairs), and the metrics of rankings by trec_eval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import Field

from facets.arrays import Doubles
from facets.errors import InvalidInputError
from facets_lab.evaluation.files import Columns, NonBlank, Record, read_records, read_table, require_rows

DEPTH = 100  # documents of a ranking that are evaluated
METRICS = ("ndcg_10", "recall_100", "mrr_10")
_FIRST = 10

Ranking = Sequence[str]  # ids of documents, best first, each once


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalData:
    """Documents and queries with relevance judgements."""

    name: str  # name of the folder or file
    documents: Mapping[str, str]  # text by id: title, newline and text
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
        key: "\n".join(part for part in (record.title or "", record.text) if part.strip())
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


def sampled(
    data: RetrievalData, num_queries: int | None = None, num_documents: int | None = None, *, seed: int
) -> RetrievalData:
    """A seeded sample of the queries, and of the documents besides the judged ones, in order; None: all of them."""
    if num_queries is not None and num_queries < len(data.queries):
        keys = list(data.queries)
        rows = np.sort(np.random.default_rng(seed).choice(len(keys), num_queries, replace=False))
        queries = {keys[row]: data.queries[keys[row]] for row in rows}
        data = replace(data, queries=queries, judgements={key: data.judgements[key] for key in queries})
    if num_documents is not None and num_documents < len(data.documents):
        judged = {key for grades in data.judgements.values() for key in grades}
        others = [key for key in data.documents if key not in judged]
        num_others = min(len(others), max(0, num_documents - len(judged)))
        drawn = np.random.default_rng(seed).choice(len(others), num_others, replace=False)
        kept = judged | {others[row] for row in drawn}
        data = replace(data, documents={key: text for key, text in data.documents.items() if key in kept})
    return data


def _find(folder: Path, name: str) -> Path:
    paths = [path for path in (folder / f"{name}{suffix}" for suffix in ("", ".xz", ".gz")) if path.is_file()]
    if len(paths) != 1:
        got = f"both {paths[0].name} and {paths[1].name}" if paths else "none of them"
        raise InvalidInputError(f"{folder}: expected {name}, {name}.xz or {name}.gz, got {got}")
    return paths[0]


class _DocumentRecord(Record):
    # Some tools write ids as numbers, but judgements always have text.
    id: str = Field(alias="_id", min_length=1, coerce_numbers_to_str=True, strict=False)
    title: str | None = None
    text: str


class _QueryRecord(_DocumentRecord):
    text: NonBlank


class PairRecord(Record):
    """A question and a text that answers it."""

    query: NonBlank
    positive: NonBlank


def _by_id(kind: type[_DocumentRecord], path: Path) -> dict[str, _DocumentRecord]:
    records: dict[str, _DocumentRecord] = {}
    for place, record in read_records(kind, path):
        if record.id in records:
            raise InvalidInputError(f"{place}: expected a new _id, got {record.id!r} again")
        records[record.id] = record
    require_rows(path, records)
    return records


def _read_judgements(path: Path, queries: Mapping[str, str], documents: Mapping[str, str]) -> dict[str, dict[str, int]]:
    def id_of(kind: str, known: Mapping[str, str]) -> Callable[[str], str]:
        def parse(key: str) -> str:
            if key not in known:
                raise ValueError(f"expected the id of a {kind}, got the unknown id {key!r}")
            return key

        return parse

    columns: Columns = {"query-id": id_of("query", queries), "corpus-id": id_of("document", documents), "score": int}
    judgements: dict[str, dict[str, int]] = {}
    for query, document, grade in read_table(path, columns):
        judgements.setdefault(query, {})[document] = grade
    return judgements


def read_pairs(path: Path) -> RetrievalData:
    """Reads JSON lines ``{"query", "positive"}``; the documents are the distinct positive texts."""
    document_ids: dict[str, str] = {}
    query_ids: dict[str, str] = {}
    judgements: dict[str, dict[str, int]] = {}
    for _, pair in read_records(PairRecord, path):
        document_id = document_ids.setdefault(pair.positive, f"d{len(document_ids)}")
        query_id = query_ids.setdefault(pair.query, f"q{len(query_ids)}")
        judgements.setdefault(query_id, {})[document_id] = 1
    require_rows(path, query_ids)
    return RetrievalData(
        name=path.name.partition(".")[0],
        documents={key: text for text, key in document_ids.items()},
        queries={key: text for text, key in query_ids.items()},
        judgements=judgements,
    )


def query_metrics(rankings: Sequence[Ranking], judgements: Sequence[Mapping[str, int]]) -> dict[str, Doubles]:
    """``ndcg_10``, ``recall_100`` and ``mrr_10`` (0 without a relevant document among the first 10) of each query.

    Values are in ``[0, 1]``, computed by trec_eval. A ranking may be empty or longer than 100.
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
