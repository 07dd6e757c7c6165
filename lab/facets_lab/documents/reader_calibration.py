"""Fits the confidence of hits that the answer reader has read (``facets-eval calibrate-reader``).

Four kinds of first hits are observed: of queries as asked, of queries whose relevant documents are removed, of queries
to other sets, and, in the written texts, of questions about what a text does not say.
Each set is also left out of a fit. Shape suffix: M hits.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.special import expit, logit

from facets.documents import DocumentQuery
from facets.model.answer_reader import AnswerReader, HitWeights, counted
from facets.model.shipped import find_model
from facets.storage.files import write_whole
from facets_lab.documents.beir import RetrievalData, read_beir, sampled
from facets_lab.documents.calibration import ObservedHits
from facets_lab.documents.collection import NAME, indexed, load_searched
from facets_lab.documents.reader_data import written_examples
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import DryRun, Folders, Seed
from facets_lab.evaluation.statistics import fit_logistic

_FEATURES = ("confidence", "answer")
_TOP_K, _BATCH, _LEAST = 5, 32, 1e-6
_NUM_QUERIES, _NUM_DOCUMENTS = 40, 160  # of each set
_WRITTEN = "written"


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
    reader.config = own.replaced(intercept=0.0, slope=1.0, hits=HitWeights())  # gives plain log-odds
    sets = [sampled(read_beir(path), _NUM_QUERIES, _NUM_DOCUMENTS, seed=seed) for path in folders]
    observed = {data.name: _observed(_collections_of(data, sets, seed=seed), reader) for data in sets}
    observed[_WRITTEN] = _observed(_written_collections(sets, seed=seed), reader)
    left_out = {}
    for name, hits in observed.items():
        weights = _fitted([others for other, others in observed.items() if other != name])
        slopes = np.array([weights[feature] for feature in _FEATURES])
        left_out[name] = _measured(hits, expit(weights["intercept"] + hits.features @ slopes))
        left_out[name]["without_reader"] = _measured(hits, expit(hits.features[:, 0]))
    fitted = _fitted(list(observed.values()))
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
    yield data.documents, [*asked, *_foreign([other for other in sets if other is not data], len(asked), seed)]
    gone = frozenset().union(*relevant.values())
    rest = {key: text for key, text in data.documents.items() if key not in gone}
    if len(rest) > len(asked):
        yield rest, [_Query("removed", text, frozenset()) for text in data.queries.values()]


def _written_collections(
    sets: Sequence[RetrievalData], *, seed: int
) -> Iterator[tuple[Mapping[str, str], list[_Query]]]:
    keys: dict[str, str] = {}  # of each text
    firsts: dict[int, tuple[str, ...]] = {}  # text of each pair of twins: the other one answers what this one does not
    queries = []
    for one in written_examples("dev"):
        if one.pair is not None and firsts.setdefault(one.pair, one.sentences) != one.sentences:
            continue
        key = keys.setdefault("\n".join((f"# {one.heading}", *one.sentences)), str(len(keys)))
        relevant = frozenset([key]) if one.answers else frozenset[str]()
        queries.append(_Query("asked" if one.answers else "attribute", one.question, relevant))
    yield {key: text for text, key in keys.items()}, [*queries, *_foreign(sets, 2 * _NUM_QUERIES, seed)]


def _foreign(sets: Sequence[RetrievalData], number: int, seed: int) -> list[_Query]:
    texts = [text for data in sets for text in data.queries.values()]
    drawn = random.Random(seed).sample(texts, min(number, len(texts)))
    return [_Query("foreign", text, frozenset()) for text in drawn]


def _observed(collections: Iterator[tuple[Mapping[str, str], list[_Query]]], reader: AnswerReader) -> ObservedHits:
    """The first hit of every query that the reader has read, with its log-odds without the reader and of the answer."""
    model, rows = load_searched(None), list[tuple[float, float, bool, str, str]]()
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
                            rows.append((hit.confidence, hit.answer_confidence, right, query.kind, query.text))
    log_odds = logit(np.clip([row[:2] for row in rows], _LEAST, 1 - _LEAST))
    log_odds[:, 1] = [counted(row[4], answer) for row, answer in zip(rows, log_odds[:, 1].tolist(), strict=True)]
    return ObservedHits(log_odds, np.array([row[2] for row in rows]), np.array([row[3] for row in rows]))


def _fitted(observed: Sequence[ObservedHits]) -> dict[str, float]:
    hits = ObservedHits.concatenate(observed)
    weights = np.concatenate([own.weights() for own in observed])
    fitted = fit_logistic(hits.features, hits.relevant, weights, _FEATURES)
    return {name: max(0.0, weight) if name in _FEATURES else weight for name, weight in fitted.items()}


def _measured(hits: ObservedHits, confidence_M: NDArray[np.float64]) -> dict[str, object]:
    """Area under the curve, and the share of each kind of hits with a confidence below 0.1."""
    from sklearn.metrics import roc_auc_score

    is_hidden, kinds = confidence_M < 0.1, np.where(hits.relevant, "right", hits.kinds)
    hidden = {str(kind): float(is_hidden[kinds == kind].mean()) for kind in np.unique(kinds)}
    return {"auc": float(roc_auc_score(hits.relevant, confidence_M)), "hidden": hidden}
