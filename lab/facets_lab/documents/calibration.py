"""Fits the probability that a hit is relevant, before and after the answer reader has read it.

``facets-eval calibrate-search``: four kinds of hits are observed in collections from each data set: the first hits of
its own queries (``asked``), of the same queries when every relevant document is removed (``removed``), of queries from
other sets and of nonsense (``foreign``), and the hits after the first one (``behind``). Each set is searched as a whole
and as small collections, because the best of few documents means more than the best of many. Each kind of text is also
left out of a fit, to measure curves on unseen texts.

``facets-eval calibrate-reader``: first hits of asked, removed and foreign queries are observed and, in the written
texts and folders, those of questions about what a text does not say. Each set is also left out of a fit.

Shape suffixes: M hits, F features.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

from facets.arrays import Bools, Doubles
from facets.documents import DocumentQuery
from facets.documents.confidence import FEATURES, SIGNALS, RelevanceCurve, features_of
from facets.documents.types import Document, SearchHit, SearchMode
from facets.errors import ConfigError
from facets.model.answer_reader import AnswerReader, counted
from facets.model.loading import TASKS
from facets.model.passage_checkpoint import TASK
from facets.model.shipped import ENCODER_PREFIX, find_model
from facets.storage.files import write_whole
from facets_lab.documents.beir import RetrievalData, read_beir, read_pairs, sampled
from facets_lab.documents.collection import NAME, SearchedModel, indexed, load_searched
from facets_lab.documents.folders import documents_of, read_folders
from facets_lab.documents.reader_data import OF_FILES, written_examples
from facets_lab.documents.retrieval import is_itself
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import CalibratedModel, DryRun, Folders, NumDocuments, Seed, Source
from facets_lab.evaluation.statistics import expected_calibration_error, fit_logistic

_ASKED, _REMOVED, _FOREIGN, _BEHIND = range(4)
_NUM_BEHIND = 9  # hits after the first
_STEEPEST = 200.0  # logits per point of the score
_MODES: tuple[SearchMode, ...] = ("hybrid", "facets", "lexical")
_DEPTH = 60  # hits to search in order to find ten that are not relevant
_NONSENSE_SHARE = 0.2  # nonsense queries per query of the set
_SMALL_SIZES = (200, 40, 8)  # documents of the small collections
_STOP_WORDS = "the of and to a in is it that for on with as was what who how do you this".split()
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Of hits that were read.
_READ_FEATURES = ("confidence", "answer")
_TOP_K, _BATCH, _LEAST = 5, 32, 1e-6
_NUM_QUERIES, _NUM_DOCUMENTS = 40, 160  # of each set
_WRITTEN = "written"


class ObservedHits(NamedTuple):
    """Hits of one data set, on which a logistic curve is fitted."""

    features: Doubles  # [M, F]
    relevant: Bools  # [M]
    kinds: NDArray[np.generic]  # [M], such as the numbers _ASKED to _BEHIND

    @classmethod
    def concatenate(cls, parts: Sequence["ObservedHits"]) -> "ObservedHits":
        """The hits of all parts."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def select(self, chosen_M: Bools) -> "ObservedHits":
        """Selects hits by a mask."""
        return ObservedHits(self.features[chosen_M], self.relevant[chosen_M], self.kinds[chosen_M])

    def weights(self) -> Doubles:
        """Weight of each hit, ``[M]``; the hits of each kind together weigh 1."""
        _, kind_M, counts = np.unique(self.kinds, return_inverse=True, return_counts=True)
        return (1 / counts)[kind_M]


def calibrate_search(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND=]DIR|FILE...",
            help="BEIR folders or files of (query, positive) pairs; each with its kind of text.",
        ),
    ],
    name_or_path: CalibratedModel = None,
    num_queries: Annotated[
        int, typer.Option("--limit-queries", min=1, metavar="N", help="Sample N queries of each source.")
    ] = 300,
    num_documents: NumDocuments = None,
    source: Source = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write relevance.json here; default: the folder of the model.")
    ] = None,
    dry_run: DryRun = False,
) -> Report:
    """Fit the probability that a hit is relevant; each kind is also measured with a fit on the other kinds (left_out).

    Example: facets-eval calibrate-search articles=squad abstracts=bioasq notes=pairs.jsonl questions=quora
    """
    sets, kind_of = [], {}
    for text in sources:
        kind, separator, path = text.partition("=") if "=" in text else ("", "", text)
        read = read_pairs if Path(path).is_file() else read_beir
        data = sampled(read(Path(path)), num_queries, num_documents, seed=seed)
        sets.append(data)
        kind_of[data.name] = kind if separator and kind else data.name
    names = [data.name for data in sets]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ConfigError(f"expected two or more folders of different names, got {', '.join(names)}")
    if len(set(kind_of.values())) < 2:
        raise ConfigError(f"expected folders of two or more kinds, got only {kind_of[names[0]]}")
    name = name_or_path or TASKS[TASK].default
    if name.startswith(ENCODER_PREFIX) and out is None and not dry_run:
        raise ConfigError("--out: expected a folder for the curve of an encoder, such as DATA_DIR/passages/NAME")
    folder = out or (None if name.startswith(ENCODER_PREFIX) else find_model(name))
    if folder is not None and not dry_run:
        folder.mkdir(parents=True, exist_ok=True)
    model = load_searched(name)
    observed = {data.name: _observe(model, data, sets, seed=seed) for data in sets}
    modes: dict[SearchMode, dict[str, object]] = {}
    weights: dict[str, Mapping[str, float]] = {}
    for mode in _MODES:
        by_set = {name: hits[mode] for name, hits in observed.items()}
        weights[mode] = fit_curve(list(by_set.values()))
        left_out = {}
        for name, hits in by_set.items():
            others = [own for other, own in by_set.items() if kind_of[other] != kind_of[name]]
            left_out[name] = _measure(fit_curve(others), mode, hits)
        modes[mode] = {"weights": weights[mode], "left_out": left_out}
    curve = RelevanceCurve(
        revision=model.revision, weights=weights, source=source or f"first hits of {', '.join(names)}"
    )
    return {
        "model": model.name,
        "revision": model.revision,
        "data": list(sources),
        "rows": sum(len(hits["hybrid"].relevant) for hits in observed.values()),
        "modes": modes,
        "file": None if dry_run or folder is None else str(curve.write(folder)),
    }


def fit_curve(observed: Sequence[ObservedHits]) -> dict[str, float]:
    """Weights of a logistic curve of ``FEATURES``; all sets have equal weight, and so have the kinds within a set."""
    hits = ObservedHits.concatenate(observed)
    weights_M = np.concatenate([own.weights() for own in observed])
    is_first = hits.kinds != _BEHIND
    first = hits.select(is_first)
    if not 0 < first.relevant.sum() < len(first.relevant):
        raise ConfigError("expected first hits that are relevant and others that are not, got one kind only")
    used = np.flatnonzero(first.features.any(axis=0))  # features that a mode does not use are all zero
    names = [FEATURES[column] for column in used]
    weights = fit_logistic(first.features[:, used], first.relevant, weights_M[is_first], names)
    if not is_first.all():
        weights["behind"] = _fit_behind(weights, hits.select(~is_first), weights_M[~is_first])
    return weights


def _fit_behind(weights: Mapping[str, float], hits: ObservedHits, weights_M: Doubles) -> float:
    """Change of the logits per point of score behind the first hit, as a weight <= 0."""
    first_M = weights["intercept"] + hits.features @ np.array([weights.get(name, 0.0) for name in FEATURES])
    behind_M = hits.features[:, FEATURES.index("behind")]

    def loss(steepness: float) -> float:
        logits_M = first_M - steepness * behind_M
        return float((weights_M * (np.logaddexp(0, logits_M) - hits.relevant * logits_M)).sum())

    return -float(minimize_scalar(loss, bounds=(0.0, _STEEPEST), method="bounded").x)


def small_collections(data: RetrievalData, *, seed: int) -> Iterator[RetrievalData]:
    """Yields the whole set, then small samples with half as many queries as documents and one answer per query."""
    yield data
    for size in _SMALL_SIZES:
        if size >= len(data.documents):
            continue
        sample = sampled(data, size // 2, seed=seed)
        judged = {key for grades in sample.judgements.values() for key in grades}
        answers = {max(grades, key=lambda key: (grades[key], key)) for grades in sample.judgements.values()}
        small = replace(
            sample,
            documents={key: text for key, text in data.documents.items() if key not in judged or key in answers},
            judgements={
                query: {key: grade for key, grade in grades.items() if key in answers}
                for query, grades in sample.judgements.items()
            },
        )
        yield sampled(small, None, size, seed=seed)


def _foreign_queries(data: RetrievalData, sets: Sequence[RetrievalData], *, seed: int) -> list[str]:
    """Draws as many queries from other sets as the set has, and some made of stop words or random letters."""
    drawing = random.Random(f"{seed} {data.name}")
    others = [query for other in sets if other.name != data.name for query in other.queries.values()]
    drawn = drawing.sample(others, min(len(others), len(data.queries)))
    half = round(len(data.queries) * _NONSENSE_SHARE / 2)
    stop_words = [" ".join(drawing.choices(_STOP_WORDS, k=drawing.randint(1, 6))) for _ in range(half)]
    words = ["".join(drawing.choices(_LETTERS, k=drawing.randint(3, 9))) for _ in range(2 * half)]
    return drawn + stop_words + [" ".join(words[row : row + 2]) for row in range(0, len(words), 2)]


def _observe(
    model: SearchedModel, data: RetrievalData, sets: Sequence[RetrievalData], *, seed: int
) -> dict[SearchMode, ObservedHits]:
    observed: dict[SearchMode, list[ObservedHits]] = {mode: [] for mode in _MODES}
    for part in small_collections(data, seed=seed):
        foreign = _foreign_queries(part, sets, seed=seed)
        with indexed(model, part.documents) as collection:
            asked = collection.search(list(part.queries.values()), _MODES, top_k=_DEPTH)
            others = collection.search(foreign, _MODES, top_k=_DEPTH)
        for mode in _MODES:
            observed[mode] += _observe_hits(part, mode, asked[mode], others[mode])
    return {mode: ObservedHits.concatenate(parts) for mode, parts in observed.items()}


def _observe_hits(
    data: RetrievalData, mode: SearchMode, asked: Sequence[Sequence[SearchHit]], foreign: Sequence[Sequence[SearchHit]]
) -> Iterator[ObservedHits]:
    def first_of(hits: Sequence[SearchHit], kind: int) -> ObservedHits:
        features = features_of_hits(hits, mode, num_searched=len(data.documents))[:1]
        return ObservedHits(features, np.zeros(len(features), dtype=np.bool_), np.full(len(features), kind))

    for key, hits in zip(data.queries, asked, strict=True):
        grades = data.judgements[key]
        kept = [hit for hit in hits if not (hit.id == key and is_itself(data, key))]
        features = features_of_hits(kept, mode, num_searched=len(data.documents))[: 1 + _NUM_BEHIND]
        relevant = np.array([grades.get(hit.id, 0) > 0 for hit in kept[: 1 + _NUM_BEHIND]], dtype=np.bool_)
        yield ObservedHits(features, relevant, np.where(np.arange(len(features)) > 0, _BEHIND, _ASKED))
        yield first_of([hit for hit in kept if grades.get(hit.id, 0) <= 0], _REMOVED)
    for hits in foreign:
        yield first_of(hits, _FOREIGN)


def features_of_hits(hits: Sequence[SearchHit], mode: SearchMode, *, num_searched: int) -> Doubles:
    """Features of the hits of one query, best first, ``[len(hits), F]``."""
    signals = np.array([[hit.signals[name] for name in SIGNALS] for hit in hits]).reshape(-1, len(SIGNALS))
    scores = signals[:, SIGNALS.index("cosine")] if mode == "facets" else np.array([hit.score for hit in hits])
    return features_of(scores, signals, num_searched=num_searched)


def _measure(weights: Mapping[str, float], mode: SearchMode, hits: ObservedHits) -> dict[str, float | None]:
    """Metrics of a curve on hits it was not fitted on."""
    curve = RelevanceCurve(revision="", weights={mode: weights})
    behind, first = hits.select(hits.kinds == _BEHIND), hits.select(hits.kinds != _BEHIND)
    behind_M = np.asarray(curve.confidence(mode, behind.features), dtype=np.float64)
    first_M = np.asarray(curve.confidence(mode, first.features), dtype=np.float64)
    is_asked = first.kinds == _ASKED
    has_both = 0 < first.relevant.sum() < len(first.relevant)
    return {
        "right_share": float(first.relevant[is_asked].mean()),
        "auc": float(roc_auc_score(first.relevant, first_M)) if has_both else None,
        "calibration_error": expected_calibration_error(first_M, first.relevant, first.weights()),
        "calibration_error_behind": expected_calibration_error(behind_M, behind.relevant) if len(behind_M) else None,
    }


class _Query(NamedTuple):
    kind: str  # asked, removed, foreign or attribute
    text: str
    relevant: frozenset[str]


def calibrate_reader(
    folders: Folders,
    name_or_path: Annotated[
        str, typer.Option("--reader", metavar="NAME|PATH", help="Reader to calibrate.")
    ] = "facets-reader-en",
    seed: Seed = 0,
    dry_run: DryRun = False,
) -> Report:
    """Fit the confidence of hits that the answer reader has read; each set is also measured with a fit on the others.

    Example: facets-eval calibrate-reader squad bioasq fiqa
    """
    folder = find_model(name_or_path)
    reader = AnswerReader.from_folder(folder)  # not shared: it is changed here
    own = reader.config
    reader.config = own.replaced(intercept=0.0, slope=1.0, hits=None)  # gives plain log-odds
    sets = [sampled(read_beir(path), _NUM_QUERIES, _NUM_DOCUMENTS, seed=seed) for path in folders]
    observed = {data.name: _read_hits(_collections_of(data, sets, seed=seed), reader) for data in sets}
    observed[_WRITTEN] = _read_hits(_written_collections(sets, seed=seed), reader)
    observed |= {source: _read_hits(_folder_collections(path), reader) for source, path in OF_FILES.items()}
    left_out = {}
    for name, hits in observed.items():
        weights = _fit_read([others for other, others in observed.items() if other != name])
        slopes = np.array([weights[feature] for feature in _READ_FEATURES])
        left_out[name] = _measure_read(hits, expit(weights["intercept"] + _counted(hits) @ slopes))
        left_out[name]["without_reader"] = _measure_read(hits, expit(hits.features[:, 0]))
    fitted = _fit_read(list(observed.values()))
    if not dry_run:
        stored = json.loads((folder / "config.json").read_text())
        write_whole(folder / "config.json", json.dumps({**stored, "hits": fitted}, indent=2) + "\n")
    return {"reader": own.name, "weights": fitted, "left_out": left_out}


def _collections_of(
    data: RetrievalData, sets: Sequence[RetrievalData], *, seed: int
) -> Iterator[tuple[Mapping[str, str], list[_Query]]]:
    """Documents of a set with queries as asked and of other sets; the set without what is relevant."""
    relevant = {key: frozenset(id for id, grade in data.judgements[key].items() if grade > 0) for key in data.queries}
    asked = [_Query("asked", text, relevant[key]) for key, text in data.queries.items()]
    yield data.documents, [*asked, *_foreign_to_read([other for other in sets if other is not data], len(asked), seed)]
    gone = frozenset().union(*relevant.values())
    rest = {key: text for key, text in data.documents.items() if key not in gone}
    if len(rest) > len(asked):
        yield rest, [_Query("removed", text, frozenset()) for text in data.queries.values()]


def _written_collections(
    sets: Sequence[RetrievalData], *, seed: int
) -> Iterator[tuple[Mapping[str, str], list[_Query]]]:
    keys: dict[str, str] = {}  # of each text
    firsts: dict[str, tuple[str, ...]] = {}  # text of each pair of twins: the other one answers what this one does not
    queries = []
    for one in written_examples("dev"):
        if one.asked is not None and firsts.setdefault(one.asked[0], one.sentences) != one.sentences:
            continue
        key = keys.setdefault("\n".join((f"# {one.heading}", *one.sentences)), str(len(keys)))
        relevant = frozenset([key]) if one.answers else frozenset[str]()
        queries.append(_Query("asked" if one.answers else "attribute", one.question, relevant))
    yield {key: text for text, key in keys.items()}, [*queries, *_foreign_to_read(sets, 2 * _NUM_QUERIES, seed)]


def _folder_collections(path: Path) -> Iterator[tuple[Sequence[Document], list[_Query]]]:
    for folder in read_folders("dev", path=path):
        documents = documents_of(folder)
        queries = []
        for asked in folder.questions:
            right = (document.id for document in documents if asked.is_answered_by(document.id, document.text))
            queries.append(_Query("asked" if asked.documents else "attribute", asked.question, frozenset(right)))
        yield documents, queries


def _foreign_to_read(sets: Sequence[RetrievalData], number: int, seed: int) -> list[_Query]:
    texts = [text for data in sets for text in data.queries.values()]
    drawn = random.Random(seed).sample(texts, min(number, len(texts)))
    return [_Query("foreign", text, frozenset()) for text in drawn]


def _read_hits(
    collections: Iterator[tuple[Mapping[str, str] | Sequence[Document], list[_Query]]], reader: AnswerReader
) -> ObservedHits:
    """The first hit of every query that the reader has read, with its log-odds without the reader and of the answer."""
    model, rows = load_searched(None), list[tuple[float, float, bool, str]]()
    for texts, queries in collections:
        with indexed(model, texts, reader=reader) as collection:
            for start in range(0, len(queries), _BATCH):
                batch = queries[start : start + _BATCH]
                asked = DocumentQuery(queries=[query.text for query in batch], top_k=_TOP_K)
                found = collection.collections.search(NAME, asked)
                for query, hits in zip(batch, found.hits, strict=True):
                    for hit in hits[:1]:
                        if hit.confidence is not None and hit.answer_confidence is not None:
                            right = hit.id in query.relevant
                            rows.append((hit.confidence, hit.answer_confidence, right, query.kind))
    log_odds = logit(np.clip([row[:2] for row in rows], _LEAST, 1 - _LEAST))
    return ObservedHits(log_odds, np.array([row[2] for row in rows]), np.array([row[3] for row in rows]))


def _fit_read(observed: Sequence[ObservedHits]) -> dict[str, float]:
    hits = ObservedHits.concatenate(observed)
    weights = np.concatenate([own.weights() for own in observed])
    fitted = fit_logistic(_counted(hits), hits.relevant, weights, _READ_FEATURES)
    return {name: max(0.0, weight) if name in _READ_FEATURES else weight for name, weight in fitted.items()}


def _counted(hits: ObservedHits) -> Doubles:
    return np.array([counted(*row) for row in hits.features.tolist()])


def _measure_read(hits: ObservedHits, confidence_M: Doubles) -> dict[str, object]:
    """Area under the curve, and the share of each kind of hits with a confidence below 0.1."""
    is_hidden, kinds = confidence_M < 0.1, np.where(hits.relevant, "right", hits.kinds)
    hidden = {str(kind): float(is_hidden[kinds == kind].mean()) for kind in np.unique(kinds)}
    return {"auc": float(roc_auc_score(hits.relevant, confidence_M)), "hidden": hidden}
