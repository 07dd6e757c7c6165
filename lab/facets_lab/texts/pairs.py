"""Evaluates pairs of texts: sentences (Chang 2022, table 3.2), phrases (table 3.4), paraphrases and contradictions.

Also fits what similarity scores mean. Shape suffixes: P pairs, T texts, D dimensions, C choices, N candidates or points
of a curve, B bins.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from scipy.stats import pearsonr, spearmanr
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import auc, precision_recall_curve

from facets.arrays import Bools, Doubles, Floats, Vectors
from facets.errors import InvalidInputError
from facets.extras import missing_modules
from facets.language.vectors import unit_rows
from facets.model.contract import TextModel
from facets.model.loading import DEFAULT_MODEL
from facets.model.score_curves import apply_curve, write_score_curves
from facets.model.shipped import find_model
from facets.texts.similarity import WORD_METHODS, PairScorer, SimilarityMethod, method_named
from facets_lab.evaluation.comparison import (
    Embed,
    ModelOfTexts,
    Report,
    if_installed,
    load_models,
    load_text_model,
    make_report,
    minilm,
    model2vec,
)
from facets_lab.evaluation.files import parse_number, read_table, require_rows
from facets_lab.evaluation.options import Baselines, Bootstrap, CalibratedModel, DataFile, DryRun, Models, Source
from facets_lab.evaluation.statistics import Metrics, with_intervals

logger = logging.getLogger(__name__)

ATTENTION_SUFFIX = "+attention"
PAIR_METHODS = (
    *SimilarityMethod,
    *(f"{method}{ATTENTION_SUFFIX}" for method in SimilarityMethod if method in WORD_METHODS),
)
BASELINE_MODELS = ("facets-en-k1", "facets-en-kmeans")
EMBEDDERS: dict[str, Callable[[], Embed]] = {"minilm": minilm, "model2vec": model2vec}
_PHRASE_METHODS = (str(SimilarityMethod.CODEBOOK), str(SimilarityMethod.ENCODER))
_NUM_DISTRACTORS = 4
HIGHEST_GOLD = 5.0  # of the STS data sets
_NUM_BINS = 32  # fewer bins lose shape, more add noise (STS dev)
_SAME_SCORE = 1e-5  # closer scores count as a tie: rounding depends on the batch in which a text is encoded

Pairs = Sequence[tuple[str, str]]
Scores = Floats  # [P]
Measure = Callable[[Scores], Metrics]


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """Sentence pairs with human similarity scores."""

    gold: Doubles  # [P]
    pairs: tuple[tuple[str, str], ...]


def read_sts(path: Path) -> ScoredPairs:
    """Reads ``score<TAB>sentence<TAB>sentence`` lines."""
    rows = list(read_table(path, {"score": parse_number, "first sentence": str, "second sentence": str}))
    require_rows(path, rows)
    return ScoredPairs(np.array([score for score, *_ in rows]), tuple((first, second) for _, first, second in rows))


def read_labelled(
    path: Path, names: tuple[str, ...], *, negative: str, positive: str
) -> tuple[Bools, list[tuple[str, str]]]:
    """Whether each line is positive ``[P]``, and its pair; lines begin with one of two labels and end with the pair."""

    def parse_label(text: str) -> bool:
        if text not in (negative, positive):
            raise ValueError(f"expected the label {negative} or {positive}, got {text[:40]!r}")
        return text == positive

    rows = list(read_table(path, dict.fromkeys(names, str) | {names[0]: parse_label}))
    if len({is_positive for is_positive, *_ in rows}) != 2:
        raise InvalidInputError(f"{path}: expected lines of both labels, {negative} and {positive}, got one label")
    return np.array([is_positive for is_positive, *_ in rows]), [(first, second) for *_, first, second in rows]


def read_phrase_choices(path: Path) -> tuple[list[tuple[str, str]], list[tuple[str, ...]]]:
    """The two words of each phrase, and its five candidates, the answer first, from tab-separated lines."""
    names = ("phrase", "answer", "first word", "second word", *(f"distractor {i + 1}" for i in range(_NUM_DISTRACTORS)))
    rows = list(read_table(path, dict.fromkeys(names, str)))
    require_rows(path, rows)
    phrases = [(first, second) for _, _, first, second, *_ in rows]
    return phrases, [(answer, *distractors) for _, answer, _, _, *distractors in rows]


def load_text_models(names_or_paths: Sequence[str] | None, baselines: bool) -> list[ModelOfTexts]:
    """The requested models and, with ``baselines``, the ablations of the shipped one."""
    return load_models(names_or_paths, BASELINE_MODELS if baselines else (), load_text_model)


def method_of(name: str) -> SimilarityMethod:
    """The method with this name in ``PAIR_METHODS``."""
    return method_named(name.removesuffix(ATTENTION_SUFFIX))


def available_methods(model: TextModel, *, skip_wmd: bool = False) -> tuple[str, ...]:
    """Methods that the model and the installed packages support; logs a warning for the others."""
    is_missing = missing_modules("ot")
    if is_missing and not skip_wmd:
        logger.warning("the extra 'wmd' is not installed: the methods that need it are left out")
    if not model.common_components:
        logger.warning("%s stores no common components: sif is left out", model.name)
    rows = {str(name): method_of(name).row for name in PAIR_METHODS}
    return tuple(
        name
        for name, row in rows.items()
        if not (row.needs_pot and (is_missing or skip_wmd))
        and (model.common_components or not row.needs_common_component)
    )


def model_scores(model: TextModel, pairs: Pairs, methods: Sequence[str]) -> Iterator[tuple[str, Scores]]:
    """Each method with its scores, ``[P]``; higher is more similar."""
    scorer = PairScorer(model, pairs)
    for name in methods:
        yield str(name), scorer.scores(method_of(name), attention=name.endswith(ATTENTION_SUFFIX))


def cosine_scores(embed: Embed, pairs: Pairs) -> Scores:
    """Cosines in ``[-1, 1]``, ``[P]``; 0 where an embedding is zero. Each distinct text is embedded once."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
    units_TD = unit_rows(embed(list(rows)))
    first_P, second_P = (np.array([rows[pair[side]] for pair in pairs]) for side in (0, 1))
    return np.einsum("pd,pd->p", units_TD[first_P], units_TD[second_P])


def _measured(
    models: Sequence[TextModel],
    pairs: Pairs,
    methods: Callable[[TextModel], Sequence[str]],
    baselines: bool,
    measure: Measure,
) -> Iterator[tuple[str, dict[str, Metrics]]]:
    """Metrics of each model by method and, with ``baselines``, of the cosines of the installed embedders."""
    for model in models:
        scores = model_scores(model, pairs, methods(model))
        yield model.name, {method: measure(scores_P) for method, scores_P in scores}
    for name, make in EMBEDDERS.items() if baselines else ():
        for embed in if_installed(name, make):
            yield name, {"cosine": measure(cosine_scores(embed, pairs))}


def evaluate_sts(
    file: DataFile,
    names_or_paths: Models = None,
    *,
    baselines: Baselines = False,
    num_resamples: Bootstrap = 0,
    skip_wmd: Annotated[bool, typer.Option("--skip-wmd", help="Leave out the word mover's distances.")] = False,
) -> Report:
    """Evaluate sentence similarity. Tab-separated columns: score, sentence, sentence.

    Example: facets-eval sts stsb-dev.tsv --model facets-en --model facets-en-k1 --skip-wmd
    """
    data = read_sts(file)
    models = load_text_models(names_or_paths, baselines)
    measure = partial(with_intervals, correlations, data.gold, num_resamples=num_resamples)
    measured = _measured(models, data.pairs, partial(available_methods, skip_wmd=skip_wmd), baselines, measure)
    return make_report(file, len(data.pairs), measured)


def correlations(gold_P: Doubles, scores_P: Vectors) -> Metrics:
    """``pearson`` and ``spearman`` of all pairs; ``..._low`` of the pairs with a gold score below the median.

    Values are in ``[-1, 1]``; None if undefined because of fewer than two pairs or constant scores (Chang 2022, section
    3.2.2.3).
    """

    def correlation(statistic: Callable[..., tuple[float, float]], rows: Bools) -> float | None:
        scores, gold = scores_P[rows].astype(np.float64), gold_P[rows]
        is_defined = len(scores) >= 2 and np.ptp(scores) > 0 and np.ptp(gold) > 0
        return float(statistic(scores, gold)[0]) if is_defined else None

    rows = {"": np.ones(len(gold_P), dtype=np.bool_), "_low": gold_P < np.median(gold_P)}
    statistics = {"pearson": pearsonr, "spearman": spearmanr}
    return {f"{name}{kind}": correlation(statistics[name], rows[kind]) for kind in rows for name in statistics}


def _phrase_report(
    file: Path, num_rows: int, pairs: Pairs, names_or_paths: Sequence[str] | None, baselines: bool, measure: Measure
) -> Report:
    """Measures models, embedders, and the word average of the first model (GloVe Avg of table 3.4)."""
    models = load_text_models(names_or_paths, baselines)
    measured = dict(_measured(models, pairs, lambda _: _PHRASE_METHODS, baselines, measure))
    if baselines:
        words = model_scores(models[0], pairs, (str(SimilarityMethod.AVERAGE),))
        measured["words"] = {method: measure(scores_P) for method, scores_P in words}
    return make_report(file, num_rows, measured.items())


def evaluate_phrase_pairs(
    file: DataFile, names_or_paths: Models = None, *, baselines: Baselines = False, num_resamples: Bootstrap = 0
) -> Report:
    """Recognize similar phrases and words. Tab-separated columns: 0 or 1, phrase, word.

    Example: facets-eval phrase-pairs semeval2013-dev.tsv --bootstrap 1000
    """
    is_similar, pairs = read_labelled(file, ("label", "phrase", "word"), negative="0", positive="1")
    measure = partial(with_intervals, precision_recall, is_similar, num_resamples=num_resamples)
    return _phrase_report(file, len(pairs), pairs, names_or_paths, baselines, measure)


def precision_recall(is_similar_P: Bools, scores_P: Vectors) -> Metrics:
    """``auc`` of precision and recall, and the best ``f1``, in ``[0, 1]``; None when no pair is similar."""
    if not is_similar_P.any():
        return {"auc": None, "f1": None}
    precision, recall, _ = precision_recall_curve(is_similar_P, scores_P)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    return {"auc": float(auc(recall, precision)), "f1": float(f1.max())}


def evaluate_phrase_choice(
    file: DataFile, names_or_paths: Models = None, *, baselines: Baselines = False, num_resamples: Bootstrap = 0
) -> Report:
    """Choose the word that means the same as a phrase. Columns: phrase, answer, the phrase's words, four distractors.

    accuracy_5 compares the answer with the distractors; accuracy_10 also with the same words for the reversed phrase.
    The phrase's own two words, which Turney also offers, are left out as in table 3.4.

    Example: facets-eval phrase-choice turney2012-dev.tsv --baselines
    """
    phrases, candidates = read_phrase_choices(file)
    pairs = [
        (phrase, candidate)
        for (first, second), words in zip(phrases, candidates, strict=True)
        for phrase in (f"{first} {second}", f"{second} {first}")
        for candidate in words
    ]

    def accuracies(scores_CN: Scores) -> Metrics:
        right_5, right_10 = choice_accuracy(scores_CN[:, : 1 + _NUM_DISTRACTORS]), choice_accuracy(scores_CN)
        return {"accuracy_5": float(right_5.mean()), "accuracy_10": float(right_10.mean())}

    def measure(scores_P: Scores) -> Metrics:
        return with_intervals(accuracies, scores_P.reshape(len(phrases), -1), num_resamples=num_resamples)

    return _phrase_report(file, len(phrases), pairs, names_or_paths, baselines, measure)


def choice_accuracy(scores_CN: Vectors) -> Doubles:
    """1 where the first candidate is the best, 1/n where it ties with n - 1 others, else 0; ``[C]``.

    Example:
        >>> choice_accuracy(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])).tolist()
        [1.0, 0.0, 0.5]
    """
    is_best_CN = scores_CN >= scores_CN.max(axis=1, keepdims=True) - _SAME_SCORE
    return is_best_CN[:, 0] / is_best_CN.sum(axis=1)


def fit_curve(scores_P: Vectors, gold_P: Doubles, *, highest: float) -> Doubles:
    """Isotonic regression of human scores in ``[0, 1]`` on a method's, up to ``highest``, ``[2, N]``, N <= 33."""
    bins = [rows for rows in np.array_split(np.argsort(scores_P, kind="stable"), _NUM_BINS) if len(rows)]
    scores_B = np.array([np.mean(scores_P[rows], dtype=np.float64) for rows in bins]).round(6)
    gold_B = np.array([gold_P[rows].mean() for rows in bins])
    weights_B = np.array([len(rows) for rows in bins], dtype=np.float64)
    regression = IsotonicRegression(y_min=0.0, y_max=1.0)
    calibrated_B = regression.fit(scores_B, gold_B, sample_weight=weights_B).predict(scores_B).round(6)
    scores_N, first = np.unique(scores_B, return_index=True)
    below = scores_N < highest - 1e-6
    if not below.any():  # all pairs score as identical, so nothing is known about others
        return np.array([[highest - 1.0, highest], [0.0, 1.0]])
    return np.array([[*scores_N[below], highest], [*calibrated_B[first][below], 1.0]])


def calibrate_similarity(
    file: DataFile,
    test: Annotated[Path | None, typer.Option(metavar="FILE", help="Other pairs, used to measure the curves.")] = None,
    name_or_path: CalibratedModel = None,
    source: Source = "STS Benchmark, training pairs (Cer et al. 2017)",
    dry_run: DryRun = False,
) -> Report:
    """Fit what similarity scores mean. Tab-separated columns: score 0 to 5, sentence, sentence.

    Example: facets-eval calibrate-similarity stsb-train.tsv --test stsb-dev.tsv --model models/facets-en
    """
    train = read_sts(file)
    tested = None if test is None else read_sts(test)
    low, high = train.gold.min(), train.gold.max()
    if low < 0 or high > HIGHEST_GOLD:
        raise InvalidInputError(f"scores must be in [0, {HIGHEST_GOLD:g}], got {low:g} to {high:g}")
    folder = find_model(name_or_path or DEFAULT_MODEL)
    model = load_text_model(str(folder))
    names = available_methods(model)
    curves = {
        name: fit_curve(scores_P, train.gold / HIGHEST_GOLD, highest=method_of(name).row.range[1])
        for name, scores_P in model_scores(model, train.pairs, names)
    }
    if not dry_run:
        write_score_curves(folder, model.revision, {**model.score_curves, **curves}, source=source or "")
    report: dict[str, object] = {name: {"points": curve_2N.shape[1]} for name, curve_2N in curves.items()}
    if tested is not None:
        of_mean = float(np.abs(train.gold.mean() - tested.gold).mean())  # of always predicting the mean
        for name, scores_P in model_scores(model, tested.pairs, names):
            calibrated_P = apply_curve(curves[name], scores_P) * HIGHEST_GOLD
            report[name] = {"mae": float(np.abs(calibrated_P - tested.gold).mean()), "mae_of_mean": of_mean}
    return {"data": str(test or file), "rows": len((tested or train).pairs), "models": {model.name: report}}
