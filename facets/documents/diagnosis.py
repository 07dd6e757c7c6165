"""Diagnosis of a whole collection: its vectors, the recall of its index, a map of its documents, its words.

Shape letters: D dimensions, R rows of the index (parts of documents), T facets of some of them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from facets.arrays import Floats, Ints
from facets.diagnose import VectorReport, describe, lay_out
from facets.documents.queries import SearchRequest
from facets.documents.records import CollectionRecord
from facets.documents.types import SearchResult
from facets.documents.view import StoreView
from facets.errors import InvalidInputError
from facets.language.interruption import Run, check_interrupted
from facets.language.languages import DEFAULT_LANGUAGE, language_of
from facets.language.terms import located_terms
from facets.language.vectors import unit_rows
from facets.language.vocabulary import Vocabulary
from facets.model.contract import ModelInfo

MAX_DIAGNOSE_QUERIES = 1_000
_MAX_DOCUMENTS = 100_000  # on a map; more are sampled
_MAX_FACETS = 10_000  # sample of facets that are compared with each other
_PARTS_AT_A_TIME = 2_048  # parts whose facets are in memory at once
_TOP_K = 10
_MAX_MISSED_IDS = 20
_NUM_THEMES = 8
_MAX_READ_DOCUMENTS, _MAX_CHARS = 2_000, 4_000_000  # of the sample whose words are counted
_MAX_TEXT_CHARS = 20_000  # of a document
_DOCUMENTS_AT_A_TIME = 16
_MAX_WORDS = 3_000
_SHORTEST = 2  # characters; a pair of Chinese characters is a word
_SEED = 1  # of samples, layout and themes


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionDiagnosis:
    """Diagnosis of a collection."""

    num_documents: int
    num_parts: int  # rows of its index
    num_parts_seen: int  # rows whose facets were examined: all, or a random sample
    num_queries: int
    vectors: VectorReport  # of a sample of the facets
    recall: float | None = None  # share of the first 10 exact hits that the index finds; None without queries
    missed_ids: tuple[str, ...] = ()  # documents that the index misses, most frequently missed first, at most 20
    index_kind: str = ""  # index that the queries were searched with; empty without queries
    index_revision: int  # revision that was read
    model: ModelInfo | None = None  # that encoded the queries


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionMap:
    """Two-dimensional layout of the documents of a collection."""

    num_documents: int  # in the collection
    ids: tuple[str, ...]  # of the N documents on the map: all, or a random sample
    points: Floats  # `[N, 2]`; similar documents lie close together
    document_themes: tuple[int, ...]  # theme of each document, `[N]`; theme 0 is the largest
    centers: Floats  # center of each theme in the space of the facets, `[themes, D]`
    method: str  # see `facets.diagnose.Plane`
    index_revision: int  # revision that was read
    # Nearest words of each theme, with cosines, and the number of its documents; empty unless asked for.
    themes: tuple[tuple[tuple[tuple[str, float], ...], int], ...] = ()


def map_collection(view: StoreView, record: CollectionRecord, *, max_documents: int, run: Run) -> CollectionMap:
    """Lays out a collection by the mean facet of each document; a long document is represented by its first part.

    ``max_documents``: size of the random sample of a larger collection, at most 100,000; 0: 100,000.
    """
    if max_documents > _MAX_DOCUMENTS:
        raise InvalidInputError(f"is {max_documents}, the limit is {_MAX_DOCUMENTS}", path="max_documents")
    firsts = view.document_rows(record).firsts
    if not len(firsts):
        raise InvalidInputError(f"collection {record.name!r} is empty: expected at least one document")
    rows = np.sort(np.random.default_rng(_SEED).permutation(firsts)[: max_documents or _MAX_DOCUMENTS])
    sums = [np.add.reduceat(facets, starts[:-1], axis=0) for facets, starts in _chunks(view, record, rows)]
    vectors = unit_rows(np.concatenate(sums))
    plane = run(partial(lay_out, num_themes=_NUM_THEMES, seed=_SEED, on_step=check_interrupted), vectors)
    first_rows_and_ids = view.first_rows_and_ids(rows)
    return CollectionMap(
        num_documents=len(firsts),
        ids=tuple(first_rows_and_ids[row][1] for row in rows.tolist()),
        points=plane.points,
        document_themes=tuple(plane.themes.tolist()),
        centers=plane.centers,
        method=plane.method,
        index_revision=view.revision(),
    )


def diagnose_collection(
    view: StoreView,
    record: CollectionRecord,
    requests: Sequence[SearchRequest],
    *,
    search: Callable[[SearchRequest], SearchResult],
    run: Run,
) -> CollectionDiagnosis:
    """Describes the vectors of a collection, and with queries the recall of its index.

    ``requests``: searches by facets, which are made with and without the index.
    """
    rows = view.document_rows(record).parts
    if not len(rows):
        raise InvalidInputError(f"collection {record.name!r} is empty: expected at least one document")
    facets_TD, owners_T = _sample_of_facets(view, record, np.random.default_rng(_SEED).permutation(rows))
    vectors = run(partial(describe, owners_N=owners_T), facets_TD)
    num_queries = sum(len(request.facets) for request in requests if request.facets is not None)
    recall, missed_ids, index_kind = _recall(search, requests) if requests else (None, (), "")
    return CollectionDiagnosis(
        num_documents=record.num_documents,
        num_parts=len(rows),
        num_parts_seen=int(owners_T[-1]) + 1,
        num_queries=num_queries,
        vectors=vectors,
        recall=recall,
        missed_ids=missed_ids,
        index_kind=index_kind,
        index_revision=view.revision(),
    )


def _chunks(view: StoreView, record: CollectionRecord, rows_R: Ints) -> Iterator[tuple[Floats, Ints]]:
    """Yields the facets of a few parts at a time, with zero rows for words that were not read, and their offsets."""
    for start in range(0, len(rows_R), _PARTS_AT_A_TIME):
        check_interrupted()
        stored = view.facets(record, rows_R[start : start + _PARTS_AT_A_TIME])
        yield stored.units.astype(np.float32), stored.starts


def _sample_of_facets(view: StoreView, record: CollectionRecord, shuffled_R: Ints) -> tuple[Floats, Ints]:
    """Facets ``[T, D]`` of parts, and which part each belongs to, ``[T]``."""
    facets, owners, num_parts = list[Floats](), list[Ints](), 0
    for facets_TD, starts in _chunks(view, record, shuffled_R):
        facets.append(facets_TD)
        owners.append(num_parts + np.repeat(np.arange(len(starts) - 1), np.diff(starts)))
        num_parts += len(starts) - 1
        if sum(map(len, facets)) >= _MAX_FACETS:
            break
    return np.concatenate(facets)[:_MAX_FACETS], np.concatenate(owners)[:_MAX_FACETS]


def _recall(
    search: Callable[[SearchRequest], SearchResult], requests: Sequence[SearchRequest]
) -> tuple[float, tuple[str, ...], str]:
    """Recall of the index for some queries, the ids it misses, and its kind."""
    num_expected, num_missed, index_kind = 0, Counter[str](), ""
    for request in requests:
        request = replace(request, top_k=_TOP_K, mode="facets", reasons=False)
        result = search(request)
        exact = result if result.exhaustive else search(replace(request, exact=True))
        for hits, expected in zip(result.hits, exact.hits, strict=True):
            num_missed.update({hit.id for hit in expected} - {hit.id for hit in hits})
            num_expected += len(expected)
        index_kind = result.index_kind
    missed_ids = sorted(num_missed, key=lambda id: (-num_missed[id], id))[:_MAX_MISSED_IDS]
    return 1.0 - num_missed.total() / max(1, num_expected), tuple(missed_ids), index_kind


def collection_vocabulary(view: StoreView, record: CollectionRecord) -> tuple[Vocabulary, Ints]:
    """The words in most documents of a sample, most frequent first, each in its most frequent form; no stop words.

    Also returns the first rows of the documents of the sample.
    """
    rows = np.random.default_rng(_SEED).permutation(view.document_rows(record).firsts)[:_MAX_READ_DOCUMENTS]
    language = language_of(record.language or DEFAULT_LANGUAGE)
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by stem
    for text in _texts(view, rows):
        check_interrupted()
        located = located_terms(text, language=language.code)
        for term, form in {term: text[start:end] for term, start, end in located}.items():
            if len(form) >= _SHORTEST and not form.isnumeric() and language.fold(form) not in language.stop_words:
                forms[term][form] += 1
    counts = Counter({term: own.total() for term, own in forms.items()}).most_common(_MAX_WORDS)
    words = {forms[term].most_common(1)[0][0]: count for term, count in counts}
    return Vocabulary([*words], np.array([*words.values()], dtype=np.int64)), rows


def _texts(view: StoreView, rows: Ints) -> Iterator[str]:
    num_chars = 0
    for start in range(0, len(rows), _DOCUMENTS_AT_A_TIME):
        for document in view.documents(np.sort(rows[start : start + _DOCUMENTS_AT_A_TIME])).values():
            yield document.text[:_MAX_TEXT_CHARS]
            num_chars += min(len(document.text), _MAX_TEXT_CHARS)
        if num_chars >= _MAX_CHARS:
            return
