"""Authors for papers, without encoding: ``python -m benchmarks.papers``; JSON on standard output.

One paper after the other against many authors, through the index and against all of them, with the recall of the
first; a whole conference, thousands of submissions against thousands of reviewers; and papers added one by one while
others ask, with what the last ones cost against the first and against putting everything together anew. Vectors are
synthetic: papers of clustered subjects, authors who keep to a few of them.

With ``--data FILE`` papers of a file are asked of a model that is there, with the recall of its index.

Shape letters: I papers, J authors, N queries, K facets, D dimensions, W of documents.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from facets_lab.papers.data import read_papers
from numpy.typing import NDArray

from benchmarks.measuring import print_report, spent
from facets.language.vectors import WordVectors, unit_rows
from facets.language.vocabulary import Vocabulary
from facets.papers.engine import PaperEngine
from facets.papers.records import Author, CandidateKind, Paper, PaperFacets, PaperOptions

_SUBJECTS = 4000
_PAPERS_OF_AN_AUTHOR = 3
_TOP_K = 50


class SyntheticModel:
    """What ``PaperEngine`` needs of a model, with random tables."""

    name = "synthetic"
    revision = "1"
    task = "papers"

    def __init__(self, num_authors: int, *, num_facets: int, dim: int, word_dim: int) -> None:
        rng = np.random.default_rng(1)
        self._num_facets, self._dim = num_facets, dim
        self._subjects = rng.standard_normal((_SUBJECTS, dim)).astype(np.float32)
        self._word_subjects = rng.standard_normal((_SUBJECTS, word_dim)).astype(np.float32)
        num_papers = num_authors * _PAPERS_OF_AN_AUTHOR // 2
        home_J = rng.integers(0, _SUBJECTS, num_authors)
        subject_I = rng.integers(0, _SUBJECTS, num_papers)
        pairs = np.stack(
            [
                rng.integers(0, num_papers, num_authors * _PAPERS_OF_AN_AUTHOR),
                np.repeat(np.arange(num_authors), _PAPERS_OF_AN_AUTHOR),
            ],
            axis=1,
        )
        self.words = WordVectors(Vocabulary(["word"], np.array([1])), np.ones((1, word_dim), np.float32))
        vectors = self._near(self._subjects, home_J, rng)
        none = np.zeros((0, dim), np.float32)
        even = np.eye(dim, dtype=np.float32)
        self.tables = SimpleNamespace(
            vectors={"authors": vectors, "citations": none}, spreads={"authors": even, "citations": even}
        )
        self.settings = SimpleNamespace(
            facet_weights=dict.fromkeys(CandidateKind, 0.5),
            document_modes=dict.fromkeys(CandidateKind, "average"),
            other_weights={},
        )
        self._documents = self._near(self._word_subjects, subject_I, rng)
        ids = [f"a{number}" for number in range(num_authors)]
        self.papers = SimpleNamespace(
            ids=[f"p{number}" for number in range(num_papers)],
            titles=[""] * num_papers,
            years=np.zeros(num_papers, np.int32),
            rows=np.zeros(num_papers, np.uint16),
            offsets=np.arange(num_papers + 1),
            column_ids={"authors": ids, "citations": []},
            column_names={"authors": ids, "citations": []},
            pairs={"authors": pairs, "citations": np.empty((0, 2), np.int64)},
        )

    def _near(
        self, subjects: NDArray[np.float32], chosen: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float32]:
        noise = rng.standard_normal((len(chosen), subjects.shape[1])).astype(np.float32)
        return unit_rows(subjects[chosen] + np.float32(0.8) * noise)

    def queries(self, num: int) -> PaperFacets:
        """Papers that were never seen."""
        rng = np.random.default_rng(2)
        subject_NK = rng.integers(0, _SUBJECTS, (num, self._num_facets))
        facets = self._near(self._subjects, subject_NK.ravel(), rng).reshape(num, self._num_facets, self._dim)
        magnitudes = rng.uniform(0.5, 1.5, (num, self._num_facets)).astype(np.float32)
        return PaperFacets(facets, magnitudes, magnitudes, self._near(self._word_subjects, subject_NK[:, 0], rng))

    def trained_documents(self) -> NDArray[np.float32]:
        """Made at the start."""
        return self._documents

    def document_vectors(
        self, rows: Sequence[NDArray[np.uint16]], sentences: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Of papers that were never seen."""
        return self.encode_papers(rows).documents

    def sentence_vectors(self, titles: Sequence[str], abstracts: Sequence[str]) -> NDArray[np.float32]:
        """None: nothing is read."""
        return np.empty((len(titles), 0), np.float32)

    def paper_rows(self, titles: Sequence[str], abstracts: Sequence[str]) -> list[NDArray[np.uint16]]:
        """Nothing is read."""
        return [np.zeros(1, dtype=np.uint16)] * len(titles)

    def encode_papers(
        self, rows: Sequence[NDArray[np.uint16]], sentences: NDArray[np.float32] | None = None
    ) -> PaperFacets:
        """Papers that were never seen."""
        return self.queries(len(rows))

    def words_as_facets(self, rows_V: NDArray[np.int64]) -> NDArray[np.float32]:
        """Not measured."""
        raise NotImplementedError


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--authors", type=int, default=100_000)
    parser.add_argument("--papers", type=int, default=200, help="papers asked one by one")
    parser.add_argument("--submissions", type=int, default=5_000)
    parser.add_argument("--reviewers", type=int, default=10_000)
    parser.add_argument("--added", type=int, default=10_000, help="papers added one by one")
    parser.add_argument("--facets", type=int, default=5)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--word-dim", type=int, default=384, help="of documents")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, help="papers as JSON lines, for --model")
    parser.add_argument("--model", default="facets-papers-en", help="asked for the papers of --data")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    report: dict[str, object] = {"parameters": {name: str(value) for name, value in vars(options).items()}}
    report |= of_a_model(options) if options.data else of_synthetic_vectors(options)
    print_report(report)


def of_a_model(options: argparse.Namespace) -> dict[str, object]:
    """Papers of a file, evenly drawn, encoded one by one, then asked one by one."""
    engine = PaperEngine.load(options.model)
    papers = read_papers(options.data)
    papers = papers[:: max(1, len(papers) // options.papers)][: options.papers]
    encode_ms = []
    for paper in papers:
        start = time.thread_time()
        engine.encode([paper])
        encode_ms.append(1e3 * (time.thread_time() - start))
    encoded = engine.encode(papers)
    return {
        "encode_median_cpu_ms": statistics.median(encode_ms),
        "top_10": one_by_one(engine, encoded, top_k=10),
        "top_50": one_by_one(engine, encoded),
    }


def of_synthetic_vectors(options: argparse.Namespace) -> dict[str, object]:
    """One by one, a conference, and additions."""
    model = SyntheticModel(options.authors, num_facets=options.facets, dim=options.dim, word_dim=options.word_dim)
    report: dict[str, object] = {}
    start = time.perf_counter()
    engine = PaperEngine(model)
    report["open_seconds"] = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        report["additions"] = additions(model, Path(folder), options.added)
    report["one_by_one"] = one_by_one(engine, model.queries(options.papers))
    report["conference"] = conference(engine, model.queries(options.submissions), options.reviewers)
    return report


def one_by_one(engine: PaperEngine, papers: PaperFacets, *, top_k: int = _TOP_K) -> dict[str, float]:
    """Milliseconds a paper, through the index and against everybody."""
    options = PaperOptions(top_k=top_k)
    indexed_ms, exact_ms, found, common = [], [], 0, 0
    for number in range(len(papers)):
        one = papers.part(slice(number, number + 1))
        start = time.perf_counter()
        [hits] = engine.recommend_authors(one, options)
        middle = time.perf_counter()
        exact = engine.recommend_bulk(CandidateKind.AUTHORS, one, options)
        exact_ms.append(1e3 * (time.perf_counter() - middle))
        indexed_ms.append(1e3 * (middle - start))
        right = {exact.candidate_ids[row] for row in exact.rows[0]}
        common += len(right & {hit.id for hit in hits})
        found += len(right)
    indexed, exact_median = statistics.median(indexed_ms), statistics.median(exact_ms)
    return {
        "median_ms": indexed,
        "p99_ms": float(np.percentile(indexed_ms, 99)),
        "recall": common / max(1, found),
        "exact_median_ms": exact_median,
        "ratio": exact_median / indexed,
    }


def additions(model: SyntheticModel, folder: Path, num: int) -> dict[str, float]:
    """Papers of a known and a new author each: processor time of the first and of the last tenth, and of readers."""
    engine = PaperEngine(model, data_dir=folder)
    one = model.queries(1)
    recommend = partial(engine.recommend_authors, one, PaperOptions(top_k=_TOP_K))
    alone, beside = [1e3 * spent(recommend).wall for _ in range(50)], []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            beside.append(1e3 * spent(recommend).wall)

    reader = threading.Thread(target=read)
    reader.start()
    seconds = []
    for number in range(num):
        paper = Paper("title", id=f"n{number}", authors=(Author(f"a{number}"), Author(f"new {number}")))
        start = time.thread_time()
        engine.add_papers([paper])
        seconds.append(time.thread_time() - start)
    done.set()
    reader.join()
    engine.close()
    start = time.thread_time()
    PaperEngine(model).close()
    tenth = max(1, num // 10)
    return {
        "median_ms": 1e3 * statistics.median(seconds),
        "last_to_first_tenth": sum(seconds[-tenth:]) / sum(seconds[:tenth]),
        "total_seconds": sum(seconds),
        "put_together_to_median": (time.thread_time() - start) / statistics.median(seconds),
        "reader_alone_ms": statistics.median(alone),
        "reader_beside_ms": statistics.median(beside),
        "reader_beside_greatest_ms": max(beside),
    }


def conference(engine: PaperEngine, papers: PaperFacets, num_reviewers: int) -> dict[str, float]:
    """Seconds for the top 50 reviewers of every submission, in bulk and by the products of one paper at a time."""
    reviewers = list(engine.state.tables[CandidateKind.AUTHORS].ids[:num_reviewers])
    options = PaperOptions(top_k=_TOP_K, candidates=reviewers)
    bulk = spent(lambda: engine.recommend_bulk(CandidateKind.AUTHORS, papers, options)).wall
    sample = min(20, len(papers))
    start = time.perf_counter()
    for number in range(sample):
        engine.recommend_authors(papers.part(slice(number, number + 1)), options)
    single = (time.perf_counter() - start) * len(papers) / sample
    return {"seconds": bulk, "one_by_one_seconds": single, "ratio": single / bulk}


if __name__ == "__main__":
    main()
