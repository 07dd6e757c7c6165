"""Evaluates pairs of texts: sentences (Chang 2022, table 3.2), phrases (table 3.4), paraphrases and contradictions.

Shape suffixes: P pairs, T texts, D dimensions, C choices, N candidates.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from facets.errors import InvalidInputError
from facets.extras import missing_modules
from facets.language.vectors import unit_rows
from facets.model.contract import TextModel
from facets.model.facet_model import FacetModel
from facets.model.loading import DEFAULT_MODEL, load
from facets.model.passage_model import PassageModel
from facets.texts.comparison import InferenceLabel
from facets.texts.similarity import PairScorer
from facets.texts.similarity_methods import WORD_METHODS, SimilarityMethod, method_named
from facets_lab.evaluation.comparison import (
    Embed,
    MethodMetrics,
    Report,
    if_installed,
    load_models,
    make_report,
    minilm,
    model2vec,
)
from facets_lab.evaluation.files import parse_number, read_lines, split_fields
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
_SAME_SCORE = 1e-5  # closer scores count as a tie: rounding depends on the batch in which a text is encoded

Pairs = Sequence[tuple[str, str]]
Scores = NDArray[np.float32]  # [P]


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """Sentence pairs with human similarity scores and, in some files, inference labels."""

    gold: NDArray[np.float64]  # [P]
    pairs: tuple[tuple[str, str], ...]
    labels: NDArray[np.str_] | None = None  # [P], values of InferenceLabel


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Pairs that are similar or not."""

    is_similar: NDArray[np.bool_]  # [P]
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PhraseChoices:
    """Phrases of two words, each with five candidates; the first candidate has the same meaning."""

    phrases: tuple[tuple[str, str], ...]
    candidates: tuple[tuple[str, ...], ...]


def read_sts(path: Path) -> ScoredPairs:
    """Reads ``score<TAB>sentence<TAB>sentence`` lines; in some files every line also has ``<TAB>label`` (SICK)."""
    names: tuple[str, ...] = ("score", "first sentence", "second sentence")
    gold: list[float] = []
    pairs: list[tuple[str, str]] = []
    labels: list[str] = []
    for place, line in read_lines(path):
        if not pairs and line.count("\t") == len(names):
            names += ("label",)
        score, first, second, *label = split_fields(line, names, place)
        if not set(label) <= set(InferenceLabel):
            raise InvalidInputError(f"{place}: expected a label of {', '.join(InferenceLabel)}, got {label[0][:40]!r}")
        gold.append(parse_number(score, place, name="score"))
        pairs.append((first, second))
        labels += label
    if not pairs:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return ScoredPairs(np.array(gold), tuple(pairs), np.array(labels) if labels else None)


def _read_labelled(path: Path, names: tuple[str, ...], *, negative: str, positive: str) -> LabelledPairs:
    """Reads lines that begin with one of two labels and end with the pair."""
    labels, pairs = [], []
    for place, line in read_lines(path):
        label, *_, first, second = split_fields(line, names, place)
        if label not in (negative, positive):
            raise InvalidInputError(f"{place}: expected the label {negative} or {positive}, got {label[:40]!r}")
        labels.append(label == positive)
        pairs.append((first, second))
    if len(set(labels)) != 2:
        message = f"{path}: expected lines of both labels, {negative} and {positive}, got {len(labels)} lines"
        raise InvalidInputError(message + (": an empty file" if not labels else ""))
    return LabelledPairs(np.array(labels), tuple(pairs))


def read_opposed_pairs(path: Path) -> LabelledPairs:
    """Reads ``paraphrase|contradiction<TAB>kind<TAB>sentence<TAB>sentence`` lines; the kind is not used."""
    names = ("label", "kind", "first sentence", "second sentence")
    return _read_labelled(path, names, negative="contradiction", positive="paraphrase")


def read_phrase_pairs(path: Path) -> LabelledPairs:
    """Reads ``0|1<TAB>phrase<TAB>word`` lines."""
    return _read_labelled(path, ("label", "phrase", "word"), negative="0", positive="1")


def read_phrase_choices(path: Path) -> PhraseChoices:
    """Reads lines of phrase, answer, the phrase's two words and four distractors, separated by tabs."""
    names = ("phrase", "answer", "first word", "second word", *(f"distractor {i + 1}" for i in range(_NUM_DISTRACTORS)))
    phrases, candidates = [], []
    for place, line in read_lines(path):
        phrase, answer, first, second, *distractors = split_fields(line, names, place)
        if phrase.split() != [*first.split(), *second.split()]:
            raise InvalidInputError(f"{place}: expected the phrase's own two words, got {first!r}, {second!r}")
        if answer in distractors:
            raise InvalidInputError(f"{place}: expected distractors other than the answer, got {answer!r}")
        phrases.append((first, second))
        candidates.append((answer, *distractors))
    if not phrases:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return PhraseChoices(tuple(phrases), tuple(candidates))


def load_text_model(name_or_path: str | None) -> TextModel:
    """A model of sentences or passages; None: the default model of sentences."""
    model = load(DEFAULT_MODEL if name_or_path is None else name_or_path)
    if not isinstance(model, FacetModel | PassageModel):
        raise InvalidInputError(f"{name_or_path}: expected a model for sentences or passages, got one for {model.task}")
    return model


def load_text_models(names_or_paths: Sequence[str], baselines: bool) -> list[TextModel]:
    """The requested models and, with ``baselines``, the ablations of the shipped one."""
    return load_models(names_or_paths, BASELINE_MODELS if baselines else (), load_text_model)


def method_of(name: str) -> SimilarityMethod:
    """The method with this name in ``PAIR_METHODS``."""
    return method_named(name.removesuffix(ATTENTION_SUFFIX))


def available_methods(model: TextModel, *, skip_wmd: bool = False) -> tuple[str, ...]:
    """Methods that the model and the installed packages support; logs a warning for the others."""
    kept = {name: method_of(name).row for name in PAIR_METHODS}
    is_missing = missing_modules("ot")
    if is_missing and not skip_wmd:
        logger.warning("the extra 'wmd' is not installed: the methods that need it are left out")
    if is_missing or skip_wmd:
        kept = {name: row for name, row in kept.items() if not row.needs_pot}
    if not model.common_components:
        logger.warning("%s stores no common components: sif is left out", model.name)
        kept = {name: row for name, row in kept.items() if not row.needs_common_component}
    return tuple(map(str, kept))


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


def _embedder_scores(pairs: Pairs) -> Iterator[tuple[str, Scores]]:
    for name, make in EMBEDDERS.items():
        for embed in if_installed(name, make):
            yield name, cosine_scores(embed, pairs)


def _inference_labels(model: TextModel, pairs: Pairs) -> NDArray[np.str_]:
    return np.array([c.label for c in PairScorer(model, pairs).comparisons])


def evaluate_sts(
    file: Path,
    names_or_paths: Sequence[str] = (),
    *,
    baselines: bool = False,
    num_resamples: int = 0,
    methods: Sequence[str] = (),
    skip_wmd: bool = False,
) -> Report:
    """Correlations of similarity with human scores; where the file has labels also ``labels_right``, in ``[0, 1]``.

    ``methods`` are names of ``PAIR_METHODS``; empty: all that the model and the installed packages support.
    """
    data = read_sts(file)
    models = load_text_models(names_or_paths, baselines)

    def measured() -> Iterator[tuple[str, MethodMetrics]]:
        for model in models:
            names = tuple(methods) or available_methods(model, skip_wmd=skip_wmd)
            metrics = {
                name: with_intervals(correlations, scores_P, data.gold, num_resamples=num_resamples)
                for name, scores_P in model_scores(model, data.pairs, names)
            }
            if data.labels is not None and SimilarityMethod.ALIGNMENT in names:
                right = _inference_labels(model, data.pairs) == data.labels
                metrics[SimilarityMethod.ALIGNMENT]["labels_right"] = float(right.mean())
            yield model.name, metrics
        for name, scores_P in _embedder_scores(data.pairs) if baselines else ():
            yield name, {"cosine": with_intervals(correlations, scores_P, data.gold, num_resamples=num_resamples)}

    return make_report(file, len(data.pairs), measured())


def correlations(scores_P: NDArray[np.floating], gold_P: NDArray[np.float64]) -> Metrics:
    """``pearson`` and ``spearman`` of all pairs; ``..._low`` of the pairs with a gold score below the median.

    Values are in ``[-1, 1]``; None if undefined because of fewer than two pairs or constant scores.

    References:
        Chang 2022, section 3.2.2.3 (STSB Low).
    """
    low_P = gold_P < np.median(gold_P)
    return {
        "pearson": _correlation(pearsonr, scores_P, gold_P),
        "spearman": _correlation(spearmanr, scores_P, gold_P),
        "pearson_low": _correlation(pearsonr, scores_P[low_P], gold_P[low_P]),
        "spearman_low": _correlation(spearmanr, scores_P[low_P], gold_P[low_P]),
    }


def _correlation(
    statistic: Callable[..., tuple[float, float]], scores: NDArray[np.floating], gold: NDArray[np.float64]
) -> float | None:
    if len(scores) < 2 or np.ptp(scores) == 0 or np.ptp(gold) == 0:
        return None
    return float(statistic(scores.astype(np.float64), gold)[0])


def evaluate_opposed_pairs(file: Path, names_or_paths: Sequence[str] = (), *, baselines: bool = False) -> Report:
    """How well scores distinguish paraphrases from contradictions.

    ``above`` is the share of comparisons in which a paraphrase has a higher score than a contradiction. The alignment
    method also has ``told``, the share of contradictions it recognizes, and ``denied``, the share of paraphrases it
    takes for contradictions.
    """
    data = read_opposed_pairs(file)
    models = load_models(names_or_paths, (), load_text_model)
    is_same = data.is_similar

    def above(scores_P: Scores) -> Metrics:
        return {"above": float((scores_P[is_same][:, None] > scores_P[~is_same]).mean())}

    def measured() -> Iterator[tuple[str, MethodMetrics]]:
        for model in models:
            methods = (str(SimilarityMethod.ALIGNMENT), str(SimilarityMethod.ENCODER))
            metrics = {name: above(scores_P) for name, scores_P in model_scores(model, data.pairs, methods)}
            is_denied = _inference_labels(model, data.pairs) == InferenceLabel.CONTRADICTS
            told, denied = float(is_denied[~is_same].mean()), float(is_denied[is_same].mean())
            metrics[methods[0]] |= {"told": told, "denied": denied}
            yield model.name, metrics
        for name, scores_P in _embedder_scores(data.pairs) if baselines else ():
            yield name, {"cosine": above(scores_P)}

    return make_report(file, len(data.pairs), measured())


def phrase_scores(
    pairs: Pairs, names_or_paths: Sequence[str], baselines: bool
) -> Iterator[tuple[str, dict[str, Scores]]]:
    """Scores of models, embedders, and the word average of the first model (GloVe Avg of table 3.4)."""
    models = load_text_models(names_or_paths, baselines)
    for model in models:
        yield model.name, dict(model_scores(model, pairs, _PHRASE_METHODS))
    if baselines:
        for name, scores_P in _embedder_scores(pairs):
            yield name, {"cosine": scores_P}
        yield "words", dict(model_scores(models[0], pairs, (str(SimilarityMethod.AVERAGE),)))


def evaluate_phrase_pairs(
    file: Path, names_or_paths: Sequence[str] = (), *, baselines: bool = False, num_resamples: int = 0
) -> Report:
    """``precision_recall`` of each method."""
    data = read_phrase_pairs(file)
    measured = (
        (
            name,
            {
                method: with_intervals(precision_recall, scores_P, data.is_similar, num_resamples=num_resamples)
                for method, scores_P in scores.items()
            },
        )
        for name, scores in phrase_scores(data.pairs, names_or_paths, baselines)
    )
    return make_report(file, len(data.pairs), measured)


def precision_recall(scores_P: NDArray[np.floating], is_similar_P: NDArray[np.bool_]) -> Metrics:
    """``auc``, the area under the precision-recall curve, and ``f1``, the best at any threshold; in ``[0, 1]``.

    None when no pair is similar.
    """
    from sklearn.metrics import auc, precision_recall_curve

    if not is_similar_P.any():
        return {"auc": None, "f1": None}
    precision, recall, _ = precision_recall_curve(is_similar_P, scores_P)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    return {"auc": float(auc(recall, precision)), "f1": float(f1.max())}


def evaluate_phrase_choice(
    file: Path, names_or_paths: Sequence[str] = (), *, baselines: bool = False, num_resamples: int = 0
) -> Report:
    """Accuracies of choosing the word that means the same as a phrase, in ``[0, 1]``.

    ``accuracy_5`` compares the answer with the four distractors. ``accuracy_10`` also has the reversed phrase with
    the same five words as candidates, so that word order matters. The phrase's own two words, which Turney also offers,
    are left out as in table 3.4.

    References:
        Turney 2012; Yu and Dredze 2015; Chang 2022, section 3.2.2.5.
    """
    data = read_phrase_choices(file)
    pairs = [
        (phrase, candidate)
        for (first, second), candidates in zip(data.phrases, data.candidates, strict=True)
        for phrase in (f"{first} {second}", f"{second} {first}")
        for candidate in candidates
    ]
    num_candidates = 1 + _NUM_DISTRACTORS

    def accuracies(right_5_C: NDArray[np.float64], right_10_C: NDArray[np.float64]) -> Metrics:
        return {"accuracy_5": float(right_5_C.mean()), "accuracy_10": float(right_10_C.mean())}

    def measured() -> Iterator[tuple[str, MethodMetrics]]:
        for name, scores in phrase_scores(pairs, names_or_paths, baselines):
            metrics = {}
            for method, scores_P in scores.items():
                scores_CN = scores_P.reshape(len(data.phrases), 2 * num_candidates)
                columns = choice_accuracy(scores_CN[:, :num_candidates]), choice_accuracy(scores_CN)
                metrics[method] = with_intervals(accuracies, *columns, num_resamples=num_resamples)
            yield name, metrics

    return make_report(file, len(data.phrases), measured())


def choice_accuracy(scores_CN: NDArray[np.floating]) -> NDArray[np.float64]:
    """1 where the first candidate is the best, 1/n where it ties with n - 1 others, else 0; ``[C]``.

    Example:
        >>> choice_accuracy(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])).tolist()
        [1.0, 0.0, 0.5]
    """
    is_best_CN = scores_CN >= scores_CN.max(axis=1, keepdims=True) - _SAME_SCORE
    return is_best_CN[:, 0] / is_best_CN.sum(axis=1)
