"""Fits what a search can say of its hits: how probable it is that the first one answers at all.

A curve sees three kinds of queries, and the first hit of each: those of the folder (``asked``), the same where every
relevant document is gone (``removed``), and queries of the other folders and without sense (``foreign``). How fast it
falls behind the first is fitted on the next hits of the queries that are asked (``behind``). A folder is searched whole
and in small parts, as the best of few documents means more than the best of many. Each kind of texts is left out in its
turn: a curve is as good as it is on what it was never fitted on. Shape letters: M hits, S signals, F features.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.documents.confidence import FEATURES, SIGNALS, RelevanceCurve, features_of
from facets.documents.types import SearchHit, SearchMode
from facets.errors import ConfigError
from facets.model.loading import TASKS
from facets.model.passage_checkpoint import TASK
from facets.model.shipped import find_model
from facets_lab.documents.beir import (
    RetrievalData,
    limit_documents,
    limit_queries,
    read_beir,
    read_docstrings,
    read_pairs,
)
from facets_lab.documents.systems import EncodedTexts, SearchedModel, indexed, load_searched
from facets_lab.evaluation.statistics import expected_calibration_error, fit_logistic

KINDS = ("asked", "removed", "foreign", "behind")
_BEHIND = KINDS.index("behind")
_KIND_WEIGHTS = (1 / 3, 1 / 3, 1 / 3, 1.0)
_NEXT = 9  # hits behind the first
_STEEPEST = 200.0  # logits for one point of the score
_MODES: tuple[SearchMode, ...] = ("hybrid", "facets", "lexical")
_DEPTH = 60  # hits that are looked through for ten that are not relevant
_SENSELESS_SHARE = 0.2  # queries without sense, for each query of the folder
_PARTS = (200, 40, 8)  # documents of the small collections made of each folder
_DOCSTRINGS = "python:"
_STOP_WORDS = tuple("the of and to a in is it that for on with as was what who how do you this".split())


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibrationRun:
    """What is asked for.

    Attributes:
        folders: Two or more, of different names: folders in BEIR's layout, files of pairs, or ``python:MODULE,...``:
            docstrings of modules.
        kinds: What kind of texts a folder holds, by its place in ``folders``; others are a kind of their own.
        model: Name or path; the default of collections when None.
        num_queries: Only so many queries of a folder, drawn with ``seed``.
        num_documents: Only so many documents of a folder, the judged ones of its queries among them; None: all.
        source: What the folders are, for readers of the file; None: their names.
        seed: Of the drawing.
        dry_run: Leaves the model as it is.
    """

    folders: Sequence[Path]
    kinds: Mapping[int, str] = field(default_factory=dict)
    model: str | None = None
    num_queries: int | None = 300
    num_documents: int | None = None
    source: str | None = None
    seed: int = 0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class FirstHits:
    """First hits of the queries of one folder in one mode, and some behind them.

    Attributes:
        features: ``[M, F]``, see :data:`facets.documents.confidence.FEATURES`.
        relevant: ``[M]`` bool.
        kinds: ``[M]``, places in ``KINDS``.
    """

    features: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    kinds: NDArray[np.int64]


def calibrate_search(run: CalibrationRun) -> dict[str, object]:
    """Fits a curve for each mode, says how well those of the other folders fit each folder, and stores the curves.

    Returns:
        ``model``, ``revision``, ``data``, ``rows`` (first hits), ``modes``: for each ``weights`` and, by folder, what
        the curve of the other folders gives there; ``file``: where the curves are, None in a dry run.

    Raises:
        ConfigError: Fewer than two folders, or two of one name.
        InvalidInputError: A folder is not in BEIR's layout, or a file has other lines than pairs.
        NotFoundError: There is no such model.
    """
    sets = [
        limit_documents(limit_queries(_read(path), run.num_queries, seed=run.seed), run.num_documents, seed=run.seed)
        for path in run.folders
    ]
    names = [data.name for data in sets]
    kinds = {name: run.kinds.get(place, name) for place, name in enumerate(names)}
    if len(names) < 2 or len(set(names)) < len(names):
        raise ConfigError(f"expected two or more folders of different names, got {', '.join(names)}")
    if len(set(kinds.values())) < 2:
        raise ConfigError(f"expected folders of two kinds or more, got {kinds[names[0]]} alone")
    folder = find_model(TASKS[TASK].default if run.model is None else run.model)
    model = load_searched(str(folder))
    observed = {data.name: _observe_parts(model, data, sets, seed=run.seed) for data in sets}
    modes: dict[SearchMode, dict[str, object]] = {}
    weights: dict[str, Mapping[str, float]] = {}
    for mode in _MODES:
        by_folder = {name: hits[mode] for name, hits in observed.items()}
        weights[mode] = fit_curve(list(by_folder.values()))
        left_out = {
            name: _fit_of(
                fit_curve([hits for other, hits in by_folder.items() if kinds[other] != kinds[name]]), mode, mine
            )
            for name, mine in by_folder.items()
        }
        modes[mode] = {"weights": weights[mode], "left_out": left_out}
    source = run.source or f"first hits of {', '.join(names)}"
    curve = RelevanceCurve(revision=model.revision, weights=weights, source=source)
    file = None if run.dry_run else str(curve.write(folder))
    rows = sum(len(hits["hybrid"].relevant) for hits in observed.values())
    return {
        "model": model.name,
        "revision": model.revision,
        "data": [str(path) for path in run.folders],
        "rows": rows,
        "modes": modes,
        "file": file,
    }


def fit_curve(observed: Sequence[FirstHits]) -> dict[str, float]:
    """Weights of a logistic curve; every folder weighs the same, and in it the kinds as ``_KIND_WEIGHTS`` say."""
    features_MF = np.concatenate([hits.features for hits in observed])
    relevant_M = np.concatenate([hits.relevant for hits in observed])
    weights_M = np.concatenate([_weights(hits) for hits in observed])
    is_first = np.concatenate([hits.kinds != _BEHIND for hits in observed])
    weights = _fit_first(features_MF[is_first], relevant_M[is_first], weights_M[is_first])
    later = features_MF[~is_first], relevant_M[~is_first], weights_M[~is_first]
    if len(later[0]):
        weights["behind"] = _fit_behind(weights, *later)
    return weights


def _fit_first(
    features_MF: NDArray[np.float64], relevant_M: NDArray[np.bool_], weights_M: NDArray[np.float64]
) -> dict[str, float]:
    told = np.flatnonzero(features_MF.any(axis=0))  # a mode without words, or without facets, has zeros there
    if not 0 < relevant_M.sum() < len(relevant_M):
        raise ConfigError("expected first hits that are relevant and others that are not, got one kind only")
    return fit_logistic(features_MF[:, told], relevant_M, weights_M, [FEATURES[place] for place in told])


def _fit_behind(
    weights: Mapping[str, float],
    features_MF: NDArray[np.float64],
    relevant_M: NDArray[np.bool_],
    weights_M: NDArray[np.float64],
) -> float:
    """How many logits a point of the score behind the first costs, as a weight; 0 or less."""
    from scipy.optimize import minimize_scalar

    first_M = weights["intercept"] + features_MF @ np.array([weights.get(name, 0.0) for name in FEATURES])
    behind_M = features_MF[:, FEATURES.index("behind")]

    def loss(steepness: float) -> float:
        logits_M = first_M - steepness * behind_M
        return float((weights_M * (np.logaddexp(0, logits_M) - relevant_M * logits_M)).sum())

    return -float(minimize_scalar(loss, bounds=(0.0, _STEEPEST), method="bounded").x)


def _read(path: Path) -> RetrievalData:
    if path.name.startswith(_DOCSTRINGS):
        return read_docstrings(path.name.removeprefix(_DOCSTRINGS).split(","))
    return read_pairs(path) if path.is_file() else read_beir(path)


def parts(data: RetrievalData, *, seed: int) -> Iterator[RetrievalData]:
    """The folder, and smaller collections of it: as many queries as half of the documents, one that answers each."""
    yield data
    for size in _PARTS:
        if size >= len(data.documents):
            continue
        asked = limit_queries(data, size // 2, seed=seed)
        judged = {key for grades in asked.judgements.values() for key in grades}
        answers = {max(grades, key=lambda key: (grades[key], key)) for grades in asked.judgements.values()}
        kept = [row for row, key in enumerate(data.document_ids) if key not in judged or key in answers]
        few = replace(
            asked,
            document_ids=tuple(data.document_ids[row] for row in kept),
            documents=tuple(data.documents[row] for row in kept),
            judgements={
                query: {key: grade for key, grade in grades.items() if key in answers}
                for query, grades in asked.judgements.items()
            },
        )
        yield limit_documents(few, size, seed=seed)


def _joined(observed: Sequence[Mapping[SearchMode, FirstHits]]) -> dict[SearchMode, FirstHits]:
    """First hits of several collections as those of one."""
    return {
        mode: FirstHits(
            np.concatenate([part[mode].features for part in observed]),
            np.concatenate([part[mode].relevant for part in observed]),
            np.concatenate([part[mode].kinds for part in observed]),
        )
        for mode in _MODES
    }


def _foreign(data: RetrievalData, sets: Sequence[RetrievalData], *, seed: int) -> list[str]:
    """As many queries of the others as the folder has, and some of stop words or letters by chance."""
    drawing = random.Random(f"{seed} {data.name}")
    others = [query for other in sets if other.name != data.name for query in other.queries]
    drawn = drawing.sample(others, min(len(others), len(data.queries)))
    half = round(len(data.queries) * _SENSELESS_SHARE / 2)
    senseless = [" ".join(drawing.choices(_STOP_WORDS, k=drawing.randint(1, 6))) for _ in range(half)]
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(drawing.choices(letters, k=drawing.randint(3, 9))) for _ in range(2 * half)]
    return drawn + senseless + [" ".join(words[row : row + 2]) for row in range(0, len(words), 2)]


def _observe_parts(
    model: SearchedModel, data: RetrievalData, sets: Sequence[RetrievalData], *, seed: int
) -> dict[SearchMode, FirstHits]:
    encoded: EncodedTexts = {}  # the parts hold the same texts
    return _joined([_observe(model, part, _foreign(part, sets, seed=seed), encoded) for part in parts(data, seed=seed)])


def _observe(
    model: SearchedModel, data: RetrievalData, foreign: Sequence[str], encoded: EncodedTexts
) -> dict[SearchMode, FirstHits]:
    with indexed(model, data, encoded) as collection:
        asked = collection.search(data.queries, _MODES, top_k=_DEPTH)
        others = collection.search(foreign, _MODES, top_k=_DEPTH)
    itself = dict(zip(data.document_ids, data.documents, strict=True))
    observed: dict[SearchMode, FirstHits] = {}
    for mode in _MODES:
        found: list[tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]] = []
        for key, text, hits in zip(data.query_ids, data.queries, asked[mode], strict=True):
            grades = data.judgements[key]
            kept = [hit for hit in hits if not (hit.id == key and itself[key].endswith(text))]
            wrong = [hit for hit in kept if grades.get(hit.id, 0) <= 0]
            first = features_of_hits(kept, num_searched=len(data.documents))[: 1 + _NEXT]
            relevant = np.array([grades.get(hit.id, 0) > 0 for hit in kept[: 1 + _NEXT]], dtype=np.bool_)
            found.append((first, relevant, np.where(np.arange(len(first)) > 0, _BEHIND, 0)))
            found.append(_one_wrong(features_of_hits(wrong, num_searched=len(data.documents)), KINDS.index("removed")))
        for hits in others[mode]:
            found.append(_one_wrong(features_of_hits(hits, num_searched=len(data.documents)), KINDS.index("foreign")))
        observed[mode] = FirstHits(*(np.concatenate(column) for column in zip(*found, strict=True)))
    return observed


def features_of_hits(hits: Sequence[SearchHit], *, num_searched: int) -> NDArray[np.float64]:
    """What a curve weighs of hits of one query, best first, ``[len(hits), F]``."""
    signals = np.array([[hit.signals[name] for name in SIGNALS] for hit in hits]).reshape(-1, len(SIGNALS))
    return features_of(np.array([hit.score for hit in hits]), signals, num_searched=num_searched)


def _one_wrong(
    features: NDArray[np.float64], kind: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]:
    """The first of hits that are all wrong, as hits are observed."""
    first = features[:1]
    return first, np.zeros(len(first), dtype=np.bool_), np.full(len(first), kind)


def _weights(hits: FirstHits) -> NDArray[np.float64]:
    """What each hit counts; first hits together 1."""
    counts = np.bincount(hits.kinds, minlength=len(KINDS))
    return (np.array(_KIND_WEIGHTS) / np.maximum(counts, 1))[hits.kinds]


def _chosen(hits: FirstHits, chosen_M: NDArray[np.bool_]) -> FirstHits:
    return FirstHits(hits.features[chosen_M], hits.relevant[chosen_M], hits.kinds[chosen_M])


def _fit_of(weights: Mapping[str, float], mode: SearchMode, hits: FirstHits) -> dict[str, float | None]:
    """What a curve gives on first hits it has not seen."""
    from sklearn.metrics import roc_auc_score

    curve = RelevanceCurve(revision="", weights={mode: weights})
    later = _chosen(hits, hits.kinds == _BEHIND)
    later_M = np.asarray(curve.confidence(mode, later.features), dtype=np.float64)
    hits = _chosen(hits, hits.kinds != _BEHIND)
    given_M = np.asarray(curve.confidence(mode, hits.features), dtype=np.float64)
    asked_M = hits.kinds == 0

    def auc(chosen: NDArray[np.bool_]) -> float | None:
        two = 0 < hits.relevant[chosen].sum() < chosen.sum()
        return float(roc_auc_score(hits.relevant[chosen], given_M[chosen])) if two else None

    groups: dict[str, NDArray[np.bool_]] = {
        "right": hits.relevant,
        "wrong": asked_M & ~hits.relevant,
        "removed": hits.kinds == 1,
        "foreign": hits.kinds == 2,
    }
    means = {name: float(given_M[chosen].mean()) if chosen.any() else None for name, chosen in groups.items()}
    return {
        "right_share": float(hits.relevant[asked_M].mean()),
        "auc": auc(np.ones_like(asked_M)),
        "auc_asked": auc(asked_M),
        "auc_removed": auc(asked_M | groups["removed"]),
        "auc_foreign": auc(asked_M | groups["foreign"]),
        "calibration_error": expected_calibration_error(given_M, hits.relevant, _weights(hits)),
        "calibration_error_behind": (expected_calibration_error(later_M, later.relevant) if len(later_M) else None),
        **{f"mean_{name}": mean for name, mean in means.items()},
    }
