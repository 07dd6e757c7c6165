"""Authors and citing papers as up to K vectors of what they wrote or cited, papers as one vector or as soft spans.

Shape suffixes: N papers, T spans of all of them, D dimensions, C vectors of a candidate, J candidates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from facets.errors import InvalidInputError
from facets.language.vectors import unit_rows
from facets.papers.records import CandidateKind, Paper
from facets_lab.papers.systems import column_metrics, make_data, sample_data

EVERY = 0  # in the place of K: every paper for itself
_LEAST = 5  # papers of a candidate in the training


class PassageEncoder(Protocol):
    """What ``PassageModel`` offers."""

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """One vector a text, ``[N, D]``."""
        ...

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Vectors of soft spans, ``[N, S, D]``; zero rows where a text has fewer."""
        ...


@dataclass(frozen=True, slots=True)
class Read:
    """Papers as vectors: ``whole`` ``[N, D]``; ``spans`` ``[T, D]``, those of each paper from ``starts`` ``[N]``."""

    whole: NDArray[np.float32]
    spans: NDArray[np.float32]
    starts: NDArray[np.int64]


def read(encoder: PassageEncoder, papers: Sequence[Paper], *, with_spans: bool) -> Read:
    """Vectors of titles with abstracts, at unit length."""
    texts = [f"{paper.title}. {paper.abstract}".strip() for paper in papers]
    whole = unit_rows(encoder.embed(texts))
    spans_NSD = encoder.encode(texts) if with_spans else whole[:, None]
    used_NS = np.linalg.norm(spans_NSD, axis=2) > 0
    starts = np.concatenate([[0], np.cumsum(used_NS.sum(axis=1))[:-1]])
    return Read(whole, unit_rows(spans_NSD[used_NS]), starts)


def centres(vectors_ND: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """At most ``count`` centres of k-means, unit length, ``[C, D]``; ``EVERY``: the vectors themselves."""
    if count == 1:
        return unit_rows(vectors_ND.mean(axis=0, keepdims=True))
    distinct_ND = np.unique(vectors_ND, axis=0)
    if count == EVERY or count >= len(distinct_ND):
        return distinct_ND
    found = KMeans(count, n_init=1, random_state=0).fit(vectors_ND).cluster_centers_
    return unit_rows(found.astype(np.float32))


def closest(read: Read, centres_CD: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    """Cosine of each paper, ``whole``, and mean one of its ``spans``, with the closest centre of each, ``[N]``."""
    of_spans = (read.spans @ centres_CD.T).max(axis=1)
    counts = np.diff(np.append(read.starts, len(read.spans)))
    return {
        "whole": (read.whole @ centres_CD.T).max(axis=1),
        "spans": np.add.reduceat(of_spans, read.starts) / counts.astype(np.float32),
    }


def measure_clusters(
    train: Sequence[Paper],
    papers: Sequence[Paper],
    encoder: PassageEncoder,
    *,
    counts: Sequence[int],
    num_candidates: int,
    num_papers: int,
) -> dict[str, object]:
    """Which of some unseen papers an author wrote, and which a paper cites, by K vectors of each candidate.

    Args:
        train: Papers of the candidates.
        papers: Unseen ones; those with an abstract are drawn from.
        encoder: Of texts.
        counts: Values of K; ``EVERY``: a vector a paper. K = 1 with whole papers is what the others are compared with.
        num_candidates: Authors, and citing papers, at most.
        num_papers: Unseen papers at most.

    Returns:
        ``papers``, and of each kind of candidates their number and, by ``"K=3 spans"``, the mean average precision
        times 100 over candidates, ``more``, by how much it is above ``"K=1 whole"``, and ``more_ci95``, half the width
        of the 95 % interval of that difference.

    Raises:
        InvalidInputError: No candidate has enough papers in ``train`` and one in ``papers``.
    """
    if 1 not in counts:
        raise InvalidInputError(f"must hold 1, which the others are compared with, got {list(counts)}", path="counts")
    random = np.random.default_rng(0)
    with_abstract = [paper for paper in papers if paper.abstract]
    chosen = [with_abstract[place] for place in random.permutation(len(with_abstract))[:num_papers]]
    written = {kind: _written(train, kind) for kind in CandidateKind}
    data = sample_data(make_data(chosen, {kind: set(own) for kind, own in written.items()}), num_candidates)
    needed = sorted({place for kind in CandidateKind for key in data.ids[kind] for place in written[kind][key]})
    row_of = {place: row for row, place in enumerate(needed)}
    known = read(encoder, [train[place] for place in needed], with_spans=False).whole
    unseen = read(encoder, chosen, with_spans=True)
    report: dict[str, object] = {"papers": len(chosen), "spans_a_paper": len(unseen.spans) / len(chosen)}
    names = [f"K={count or 'every'} {of}" for count in counts for of in ("whole", "spans")]
    for kind in (kind for kind in CandidateKind if data.ids[kind]):
        of_candidate = [known[[row_of[place] for place in written[kind][key]]] for key in data.ids[kind]]
        scores: dict[str, NDArray[np.float32]] = {}
        for count in counts:
            each = [closest(unseen, centres(own, count)) for own in of_candidate]
            for of in ("whole", "spans"):
                scores[f"K={count or 'every'} {of}"] = np.stack([found[of] for found in each], axis=1)
        metrics = column_metrics(
            partial(_columns, scores),
            names,
            data.positives[kind],
            num_papers=len(chosen),
        )
        report[str(kind)] = {"candidates": len(of_candidate)} | _compared(
            {name: 100 * metrics[name].values["map"] for name in names}
        )
    return report


def _columns(scores: Mapping[str, NDArray[np.float32]], columns_J: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
    return {name: scores_NJ[:, columns_J] for name, scores_NJ in scores.items()}


def _written(papers: Sequence[Paper], kind: CandidateKind) -> dict[str, list[int]]:
    """Of each author, or citing paper, the places of its papers, where there are enough."""
    found: dict[str, list[int]] = {}
    for place, paper in enumerate(papers):
        keys = {author.key for author in paper.authors} if kind is CandidateKind.AUTHORS else {*paper.cited_by_ids}
        for key in keys:
            found.setdefault(key, []).append(place)
    return {key: places for key, places in found.items() if len(places) >= _LEAST}


def _compared(precision: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
    first = precision["K=1 whole"]
    report = {}
    for name, values in precision.items():
        more = values - first
        half = 1.96 * more.std(ddof=1) / len(more) ** 0.5 if len(more) > 1 else 0.0
        report[name] = {"map": float(values.mean()), "more": float(more.mean()), "more_ci95": float(half)}
    return report
