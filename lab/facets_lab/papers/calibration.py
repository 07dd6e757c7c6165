"""Fits what a recommendation can say of itself: how probable it is that a paper lies in the field of a candidate.

Papers that were never trained on, whole and as titles alone, stand against texts of other kinds, the same way:
abstracts of medicine, articles, news, and words without sense. Each kind is also judged by a curve that has not seen
it, on papers that it has not seen either. Shape letters: N papers, F features.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError
from facets.model.loading import TASKS, load
from facets.model.shipped import find_model
from facets.papers.confidence import FEATURES, PaperConfidence, features_of, text_features
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, PaperOptions
from facets_lab.evaluation.files import read_records
from facets_lab.evaluation.statistics import expected_calibration_error, fit_logistic
from facets_lab.papers.data import read_papers

SENSELESS = "senseless"
_TITLE_SHARE = 0.3  # of texts that stand there as titles alone
_TITLE_WORDS = 10  # of a text without a title
_TEXT_CHARS = 1_500
_NUM_SENSELESS = 80
_UNSURE = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperCalibrationRun:
    """What is asked for.

    Attributes:
        file: Papers of the model's field that it was not trained on.
        folders: Texts of other kinds, folders in BEIR's layout; two or more.
        model: Name or path; the shipped one when None.
        num_texts: Texts drawn of each kind; of papers three times as many.
        source: What the files are, for readers; None: their names.
        seed: Of the drawing.
        dry_run: Leaves the model as it is.
    """

    file: Path
    folders: Sequence[Path]
    model: str | None = None
    num_texts: int = 300
    source: str | None = None
    seed: int = 0
    dry_run: bool = False


def calibrate_papers(run: PaperCalibrationRun) -> dict[str, object]:
    """Fits a curve for each kind of candidates, says how well curves fit unseen kinds of texts, stores the curves.

    Returns:
        ``model``, ``revision``, ``rows``, ``kinds``: for each ``weights`` and ``left_out``; ``file``: where the curves
        are, None in a dry run.

    Raises:
        ConfigError: Fewer than two folders, or a file cannot be read.
        NotFoundError: There is no such model.
    """
    if len(run.folders) < 2:
        raise ConfigError(f"expected two or more folders of other texts, got {len(run.folders)}")
    drawing = random.Random(run.seed)
    texts = {folder.name: _texts(folder, run.num_texts, drawing) for folder in run.folders}
    texts[SENSELESS] = [Paper(_senseless(drawing)) for _ in range(_NUM_SENSELESS)]
    own = [paper for paper in read_papers(run.file) if paper.abstract]
    own = _some_titles(drawing.sample(own, min(len(own), 3 * run.num_texts)))
    folder = find_model(TASKS["papers"].default if run.model is None else run.model)
    model = load(folder, PaperModel)
    engine = PaperEngine(model)
    kinds: dict[str, object] = {}
    weights: dict[str, Mapping[str, float]] = {}
    own_features = first_features(engine, own)
    foreign_features = {name: first_features(engine, papers) for name, papers in texts.items()}
    for kind in CandidateKind:
        own_NF = own_features[kind]
        foreign = {name: features[kind] for name, features in foreign_features.items()}
        weights[kind] = _fit(own_NF, list(foreign.values()))
        left_out = {}
        for name, mine_NF in foreign.items():
            others = [features for other, features in foreign.items() if other != name]
            left_out[name] = _measured(kind, _fit(own_NF[::2], others), own_NF[1::2], mine_NF)
        kinds[kind] = {"weights": weights[kind], "left_out": left_out}
    source = run.source or f"{run.file.name} against {', '.join(texts)}"
    curve = PaperConfidence(revision=model.revision, weights=weights, source=source)
    return {
        "model": model.name,
        "revision": model.revision,
        "rows": len(own) + sum(map(len, texts.values())),
        "kinds": kinds,
        "file": None if run.dry_run else str(curve.write(folder)),
    }


def first_features(engine: PaperEngine, papers: Sequence[Paper]) -> dict[CandidateKind, NDArray[np.float64]]:
    """Features of the first candidate of each paper, ``[N, F]`` by kind."""
    encoded = engine.encode(papers)
    options = PaperOptions(top_k=1)
    firsts = {
        CandidateKind.AUTHORS: engine.recommend_authors(encoded, options),
        CandidateKind.CITATIONS: engine.recommend_citations(encoded, options),
    }
    rows = engine.model.paper_rows([paper.title for paper in papers], [paper.abstract for paper in papers])
    told = [text_features(own, vocabulary_size=len(engine.model.words.vocabulary)) for own in rows]
    features: dict[CandidateKind, list[NDArray[np.float64]]] = {kind: [] for kind in CandidateKind}
    for kind, rankings in firsts.items():
        for ranked, (known, words) in zip(rankings, told, strict=True):
            signals = np.array([ranked[0].document_score]), np.array([ranked[0].facet_score])
            features[kind].append(features_of(*signals, known=known, words=words))
    return {kind: np.concatenate(found) for kind, found in features.items()}


def _texts(folder: Path, num_texts: int, drawing: random.Random) -> list[Paper]:
    """Documents as if they were papers; where they have no title, their first words are one."""
    file = next((path for path in sorted(folder.glob("corpus.jsonl*"))), folder / "corpus.jsonl")
    found = []
    for _, record in read_records(file):
        text = " ".join(str(record.get("text", "")).split())
        title = str(record.get("title") or "").strip() or " ".join(text.split()[:_TITLE_WORDS])
        if title:
            found.append(Paper(title, text[:_TEXT_CHARS]))
    return _some_titles(drawing.sample(found, min(len(found), num_texts)))


def _some_titles(papers: Sequence[Paper]) -> list[Paper]:
    """Some as titles alone, spread evenly."""
    step = round(1 / _TITLE_SHARE)
    return [replace(paper, abstract="") if place % step == 0 else paper for place, paper in enumerate(papers)]


def _senseless(drawing: random.Random) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join("".join(drawing.choices(letters, k=drawing.randint(3, 9))) for _ in range(drawing.randint(1, 60)))


def _fit(own_NF: NDArray[np.float64], foreign: Sequence[NDArray[np.float64]]) -> dict[str, float]:
    """Weights of a logistic curve; papers weigh half, every kind of other texts the same."""
    features_NF = np.concatenate([own_NF, *foreign])
    is_own_N = np.arange(len(features_NF)) < len(own_NF)
    shares = [np.full(len(own_NF), 0.5 / len(own_NF)), *(np.full(len(f), 0.5 / len(foreign) / len(f)) for f in foreign)]
    return fit_logistic(features_NF, is_own_N, np.concatenate(shares), FEATURES)


def _measured(
    kind: CandidateKind, weights: Mapping[str, float], own_NF: NDArray[np.float64], foreign_NF: NDArray[np.float64]
) -> dict[str, float]:
    """What a curve gives for papers and for texts of a kind, neither of which it has seen; both weigh the same."""
    from sklearn.metrics import roc_auc_score

    curve = PaperConfidence(revision="", weights={kind: weights})
    features_NF = np.concatenate([own_NF, foreign_NF])
    given_N = np.array([curve.confidence(kind, row[None]) for row in features_NF], dtype=np.float64).ravel()
    is_own_N = np.arange(len(features_NF)) < len(own_NF)
    weights_N = np.where(is_own_N, 0.5 / len(own_NF), 0.5 / len(foreign_NF))
    return {
        "auc": float(roc_auc_score(is_own_N, given_N)),
        "calibration_error": expected_calibration_error(given_N, is_own_N, weights_N),
        "foreign_below": float((given_N[~is_own_N] < _UNSURE).mean()),
        "own_above": float((given_N[is_own_N] >= _UNSURE).mean()),
    }
