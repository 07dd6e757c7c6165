"""Fits the probability that a paper is in a candidate's field (``facets-eval calibrate-recommendation``).

Unseen papers, whole and as titles alone, are compared with texts of other kinds: abstracts of medicine, articles, news,
and nonsense. Each kind is also measured with a curve that has not seen it. Shape suffixes: N papers, F features.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from facets.errors import ConfigError
from facets.model.loading import TASKS, load
from facets.model.shipped import find_model
from facets.papers.confidence import FEATURES, PaperConfidence, features_of, text_features
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, PaperOptions
from facets_lab.documents.beir import read_corpus
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import CalibratedModel, DataFile, DryRun, Folders, Seed, Source
from facets_lab.evaluation.statistics import expected_calibration_error, fit_logistic
from facets_lab.papers.data import read_papers

_NONSENSE = "nonsense"
_NUM_NONSENSE = 80
_TITLE_EVERY = 3  # every third text is only a title
_TITLE_WORDS = 10  # words used as the title of a text that has none
_TEXT_CHARS = 1_500
_UNSURE = 0.1
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def calibrate_recommendation(
    file: DataFile,
    folders: Folders,
    name_or_path: CalibratedModel = None,
    num_texts: Annotated[
        int, typer.Option("--limit-texts", min=10, metavar="N", help="N texts per folder and 3 N papers.")
    ] = 300,
    source: Source = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
) -> Report:
    """Fit the probability that a paper is in a candidate's field, against texts of other kinds.

    FILE has papers as for the command recommendation. left_out: metrics of a curve fitted without that kind of text.

    Example: facets-eval calibrate-recommendation dev.jsonl.xz bioasq cranfield squad --model models/facets-papers-en
    """
    if len(folders) < 2:
        raise ConfigError(f"expected two or more folders of other texts, got {len(folders)}")
    drawing = random.Random(seed)
    texts = {folder.name: _read_texts(folder, num_texts, drawing) for folder in folders}
    texts[_NONSENSE] = [Paper(_nonsense(drawing)) for _ in range(_NUM_NONSENSE)]
    papers = [paper for paper in read_papers(file) if paper.abstract]
    papers = _with_titles_alone(drawing.sample(papers, min(len(papers), 3 * num_texts)))
    folder = find_model(name_or_path or TASKS["papers"].default)
    model = load(folder, PaperModel)
    engine = PaperEngine(model)
    kinds: dict[str, object] = {}
    weights: dict[str, Mapping[str, float]] = {}
    own_features = first_features(engine, papers)
    foreign_features = {name: first_features(engine, foreign) for name, foreign in texts.items()}
    for kind in CandidateKind:
        own_NF = own_features[kind]
        foreign = {name: features[kind] for name, features in foreign_features.items()}
        weights[kind] = _fit(own_NF, list(foreign.values()))
        left_out = {}
        for name, foreign_NF in foreign.items():
            others = [features for other, features in foreign.items() if other != name]
            left_out[name] = _measure(kind, _fit(own_NF[::2], others), own_NF[1::2], foreign_NF)
        kinds[kind] = {"weights": weights[kind], "left_out": left_out}
    description = source or f"{file.name} against {', '.join(texts)}"
    curve = PaperConfidence(revision=model.revision, weights=weights, source=description)
    return {
        "model": model.name,
        "revision": model.revision,
        "rows": len(papers) + sum(map(len, texts.values())),
        "kinds": kinds,
        "file": None if dry_run else str(curve.write(folder)),
    }


def first_features(engine: PaperEngine, papers: Sequence[Paper]) -> dict[CandidateKind, NDArray[np.float64]]:
    """Features of the best-ranked candidate of each paper: ``[N, F]`` for each kind of candidate."""
    options = PaperOptions(top_k=1)
    firsts = {
        CandidateKind.AUTHORS: engine.recommend_authors(papers, options),
        CandidateKind.CITATIONS: engine.recommend_citations(papers, options),
    }
    rows = engine.model.paper_rows([paper.title for paper in papers], [paper.abstract for paper in papers])
    of_texts = [text_features(row, vocabulary_size=len(engine.model.words.vocabulary)) for row in rows]
    features: dict[CandidateKind, list[NDArray[np.float64]]] = {kind: [] for kind in CandidateKind}
    for kind, rankings in firsts.items():
        for ranked, (known, words) in zip(rankings, of_texts, strict=True):
            signals = np.array([ranked[0].document_score]), np.array([ranked[0].facet_score])
            features[kind].append(features_of(*signals, known=known, words=words))
    return {kind: np.concatenate(parts) for kind, parts in features.items()}


def _read_texts(folder: Path, num_texts: int, drawing: random.Random) -> list[Paper]:
    """Reads documents as papers; a document without a title gets its first words as the title."""
    papers = []
    for record in read_corpus(folder).values():
        text = " ".join(record.text.split())
        title = (record.title or "").strip() or " ".join(text.split()[:_TITLE_WORDS])
        if title:
            papers.append(Paper(title, text[:_TEXT_CHARS]))
    return _with_titles_alone(drawing.sample(papers, min(len(papers), num_texts)))


def _with_titles_alone(papers: Sequence[Paper]) -> list[Paper]:
    return [replace(paper, abstract="") if row % _TITLE_EVERY == 0 else paper for row, paper in enumerate(papers)]


def _nonsense(drawing: random.Random) -> str:
    num_words = drawing.randint(1, 60)
    return " ".join("".join(drawing.choices(_LETTERS, k=drawing.randint(3, 9))) for _ in range(num_words))


def _fit(own_NF: NDArray[np.float64], foreign: Sequence[NDArray[np.float64]]) -> dict[str, float]:
    """Weights of a logistic curve; papers have half the weight, the other kinds of texts share the rest equally."""
    features_NF = np.concatenate([own_NF, *foreign])
    is_own_N = np.arange(len(features_NF)) < len(own_NF)
    shares = [np.full(len(own_NF), 0.5 / len(own_NF)), *(np.full(len(f), 0.5 / len(foreign) / len(f)) for f in foreign)]
    return fit_logistic(features_NF, is_own_N, np.concatenate(shares), FEATURES)


def _measure(
    kind: CandidateKind, weights: Mapping[str, float], own_NF: NDArray[np.float64], foreign_NF: NDArray[np.float64]
) -> dict[str, float]:
    """Figures of a curve on papers and texts it has not seen; both weigh the same."""
    from sklearn.metrics import roc_auc_score

    curve = PaperConfidence(revision="", weights={kind: weights})
    features_NF = np.concatenate([own_NF, foreign_NF])
    confidence_N = np.array([curve.confidence(kind, row[None]) for row in features_NF], dtype=np.float64).ravel()
    is_own_N = np.arange(len(features_NF)) < len(own_NF)
    weights_N = np.where(is_own_N, 0.5 / len(own_NF), 0.5 / len(foreign_NF))
    return {
        "auc": float(roc_auc_score(is_own_N, confidence_N)),
        "calibration_error": expected_calibration_error(confidence_N, is_own_N, weights_N),
        "foreign_below": float((confidence_N[~is_own_N] < _UNSURE).mean()),
        "own_above": float((confidence_N[is_own_N] >= _UNSURE).mean()),
    }
