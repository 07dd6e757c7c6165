"""The tables of texts: table 3.2 (sentences), 3.4 (phrases) and 3.3 (summaries) of Chang 2022; labels of pairs.

Shape suffixes: P pairs, C choices, N candidates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator
from scipy.stats import pearsonr, spearmanr

from facets.errors import InvalidInputError
from facets.texts.comparison import InferenceLabel
from facets.texts.coverage import PAPER_COVERAGE
from facets_lab.evaluation.comparison import EvaluationTask
from facets_lab.evaluation.files import Record, fields_of, number_of, read_as, read_lines
from facets_lab.evaluation.statistics import Metrics, with_intervals
from facets_lab.texts.systems import (
    Budget,
    PairSystem,
    Summarizer,
    opposed_pair_systems,
    phrase_systems,
    sts_systems,
    summarizers,
)


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """Pairs of sentences with the similarity people gave them; of some files also what the first says of the second."""

    gold: NDArray[np.float64]  # [P]
    pairs: tuple[tuple[str, str], ...]
    labels: NDArray[np.str_] | None = None  # [P], of InferenceLabel


def read_sts(path: Path) -> ScoredPairs:
    """Reads ``score<TAB>sentence<TAB>sentence`` lines, all of them with ``<TAB>label`` or none, as SICK has it.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line has another form, or there is none; the message names file and line.
    """
    names: tuple[str, ...] = ("score", "first sentence", "second sentence")
    gold: list[float] = []
    pairs: list[tuple[str, str]] = []
    labels: list[str] = []
    for place, line in read_lines(path):
        if not pairs and line.count("\t") == len(names):
            names += ("label",)
        score, first, second, *label = fields_of(line, names, place)
        if not set(label) <= set(InferenceLabel):
            raise InvalidInputError(f"{place}: expected a label of {', '.join(InferenceLabel)}, got {label[0][:40]!r}")
        gold.append(number_of(score, place, what="score"))
        pairs.append((first, second))
        labels += label
    if not pairs:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return ScoredPairs(np.array(gold), tuple(pairs), np.array(labels) if labels else None)


def evaluate_sts(system: PairSystem, data: ScoredPairs, *, num_resamples: int = 0) -> dict[str, Metrics]:
    """``correlations`` of every method of a system with people's scores, with intervals when there are resamples.

    Where the file has labels, a method that tells them has ``labels_right``, in ``[0, 1]``, too.

    Raises:
        ConfigError: The model lacks what ``sif`` removes, or the package for ``wmd`` is missing.
    """
    metrics = {
        method: with_intervals(correlations, scores_P, data.gold, num_resamples=num_resamples)
        for method, scores_P in system.scores(data.pairs)
    }
    if data.labels is not None:
        for method, labels_P in system.labels(data.pairs):
            metrics[method]["labels_right"] = float((labels_P == data.labels).mean())
    return metrics


def correlations(scores_P: NDArray[np.floating], gold_P: NDArray[np.float64]) -> Metrics:
    """Pearson's and Spearman's correlation.

    Args:
        scores_P: Scores of a method, ``[P]``.
        gold_P: People's scores, ``[P]``.

    Returns:
        ``pearson``, ``spearman`` over all pairs; ``pearson_low``, ``spearman_low`` over the pairs whose gold score
        is below the median. In ``[-1, 1]``; None where fewer than two pairs or equal scores leave it undefined.

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


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Pairs of texts, alike or not."""

    is_alike: NDArray[np.bool_]  # [P]
    pairs: tuple[tuple[str, str], ...]


def _read_labelled(path: Path, names: tuple[str, ...], *, other: str, alike: str) -> LabelledPairs:
    """Lines of fields with these names, of which the first is one of two labels and the last two are the pair.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line has another form, or there is none of one label; the message names file and line.
    """
    labels, pairs = [], []
    for place, line in read_lines(path):
        label, *_, first, second = fields_of(line, names, place)
        if label not in (other, alike):
            raise InvalidInputError(f"{place}: expected the label {other} or {alike}, got {label[:40]!r}")
        labels.append(label == alike)
        pairs.append((first, second))
    if len(set(labels)) != 2:
        raise InvalidInputError(f"{path}: expected lines of both labels, {other} and {alike}, got {len(labels)} lines")
    return LabelledPairs(np.array(labels), tuple(pairs))


def read_opposed_pairs(path: Path) -> LabelledPairs:
    """Reads ``paraphrase|contradiction<TAB>kind<TAB>sentence<TAB>sentence`` lines; the kind is for readers."""
    names = ("label", "kind", "first sentence", "second sentence")
    return _read_labelled(path, names, other="contradiction", alike="paraphrase")


def evaluate_opposed_pairs(system: PairSystem, data: LabelledPairs, *, num_resamples: int = 0) -> dict[str, Metrics]:
    """How well every method of a system tells paraphrases from contradictions.

    Args:
        system: What scores.
        data: The pairs.
        num_resamples: Not used: a comparison is of two pairs, not a row.

    Returns:
        ``above``: share of all comparisons of a paraphrase with a contradiction where the paraphrase has the higher
        score. Of a method that tells labels also ``told``, the share of contradictions that it calls so, and
        ``denied``, the share of paraphrases that it calls contradictions.
    """
    is_same = data.is_alike
    metrics: dict[str, Metrics] = {
        method: {"above": float((scores_P[is_same][:, None] > scores_P[~is_same]).mean())}
        for method, scores_P in system.scores(data.pairs)
    }
    for method, labels_P in system.labels(data.pairs):
        is_denied = labels_P == InferenceLabel.CONTRADICTS
        metrics[method] |= {"told": float(is_denied[~is_same].mean()), "denied": float(is_denied[is_same].mean())}
    return metrics


_NUM_DISTRACTORS = 4
# Scores this close are a tie: rounding depends on the batch a text is computed in.
_SAME_SCORE = 1e-5


@dataclass(frozen=True, slots=True)
class PhraseChoices:
    """Phrases of two words, each with five words of which the first means the same."""

    phrases: tuple[tuple[str, str], ...]  # the two words of each
    candidates: tuple[tuple[str, ...], ...]


def read_phrase_pairs(path: Path) -> LabelledPairs:
    """Reads ``0|1<TAB>phrase<TAB>word`` lines."""
    return _read_labelled(path, ("label", "phrase", "word"), other="0", alike="1")


def read_phrase_choices(path: Path) -> PhraseChoices:
    """Reads ``phrase<TAB>answer<TAB>first word<TAB>second word`` and four distractors, eight fields a line.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line has another form, or there is none; the message names file and line.
    """
    names = ("phrase", "answer", "first word", "second word", *(f"distractor {i + 1}" for i in range(_NUM_DISTRACTORS)))
    phrases, candidates = [], []
    for place, line in read_lines(path):
        phrase, answer, first, second, *distractors = fields_of(line, names, place)
        if phrase.split() != [*first.split(), *second.split()]:
            raise InvalidInputError(f"{place}: expected the phrase's own two words, got {first!r}, {second!r}")
        if answer in distractors:
            raise InvalidInputError(f"{place}: expected distractors other than the answer, got {answer!r}")
        phrases.append((first, second))
        candidates.append((answer, *distractors))
    if not phrases:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return PhraseChoices(tuple(phrases), tuple(candidates))


def evaluate_phrase_pairs(system: PairSystem, data: LabelledPairs, *, num_resamples: int = 0) -> dict[str, Metrics]:
    """``precision_recall`` of every method of a system, with intervals when there are resamples."""
    return {
        method: with_intervals(precision_recall, scores_P, data.is_alike, num_resamples=num_resamples)
        for method, scores_P in system.scores(data.pairs)
    }


def evaluate_phrase_choice(system: PairSystem, data: PhraseChoices, *, num_resamples: int = 0) -> dict[str, Metrics]:
    """Accuracies of every method of a system.

    Turney's questions have seven candidates, two of which are the phrase's own words. As in table 3.4 those are left
    out: ``accuracy_5`` compares the answer with the four distractors, ``accuracy_10`` also with the pairs of the
    reversed phrase and the same five words, so that the order of the words matters.

    Args:
        system: What scores.
        data: The questions.
        num_resamples: See ``with_intervals``.

    Returns:
        ``accuracy_5`` and ``accuracy_10``, in ``[0, 1]``, of each method.

    References:
        Turney 2012; Yu and Dredze 2015; Chang 2022, section 3.2.2.5.
    """
    pairs = [
        (phrase, candidate)
        for (first, second), candidates in zip(data.phrases, data.candidates, strict=True)
        for phrase in (f"{first} {second}", f"{second} {first}")
        for candidate in candidates
    ]
    result = {}
    for method, scores in system.scores(pairs):
        scores_CN = scores.reshape(len(data.phrases), 2 * (1 + _NUM_DISTRACTORS))
        right_5_C = choice_accuracy(scores_CN[:, : 1 + _NUM_DISTRACTORS])
        right_10_C = choice_accuracy(scores_CN)
        result[method] = with_intervals(_accuracies, right_5_C, right_10_C, num_resamples=num_resamples)
    return result


def precision_recall(scores_P: NDArray[np.floating], is_alike_P: NDArray[np.bool_]) -> Metrics:
    """Area under the precision-recall curve, and the best F1 of any threshold.

    Args:
        scores_P: Higher is more alike, ``[P]``.
        is_alike_P: What people say, ``[P]``.

    Returns:
        ``auc`` (by the trapezoidal rule) and ``f1``, in ``[0, 1]``; None when no pair is alike.

    Raises:
        ImportError: scikit-learn is not installed.

    References:
        Chang 2022, table 3.4.
    """
    from sklearn.metrics import auc, precision_recall_curve

    if not is_alike_P.any():
        return {"auc": None, "f1": None}
    precision, recall, _ = precision_recall_curve(is_alike_P, scores_P)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    return {"auc": float(auc(recall, precision)), "f1": float(f1.max())}


def choice_accuracy(scores_CN: NDArray[np.floating]) -> NDArray[np.float64]:
    """Which questions are answered rightly.

    Args:
        scores_CN: Scores of the candidates, the right one first, ``[C, N]``.

    Returns:
        ``[C]``: 1 when the first is best, 0 when another is; when n are best together, 1/n if the first is one of
        them: what guessing among them gives.

    Example:
        >>> choice_accuracy(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])).tolist()
        [1.0, 0.0, 0.5]
    """
    is_best_CN = scores_CN >= scores_CN.max(axis=1, keepdims=True) - _SAME_SCORE
    return is_best_CN[:, 0] / is_best_CN.sum(axis=1)


def _accuracies(right_5_C: NDArray[np.float64], right_10_C: NDArray[np.float64]) -> Metrics:
    return {"accuracy_5": float(right_5_C.mean()), "accuracy_10": float(right_10_C.mean())}


_ROUGE = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True, slots=True)
class ReferenceSummaries:
    """Documents with the summaries people wrote or chose."""

    documents: tuple[tuple[str, ...], ...]  # sentences of each
    references: tuple[tuple[str, ...], ...]  # at least one for each document


def _some(texts: list[str]) -> list[str]:
    if not any(text.strip() for text in texts):
        raise ValueError("must have at least one that is not blank")
    return texts


class _Summarized(Record):
    sentences: Annotated[list[str], AfterValidator(_some)]
    references: Annotated[list[str], AfterValidator(_some)]


def read_summaries(path: Path) -> ReferenceSummaries:
    """Reads JSON lines ``{"id", "sentences", "references"}``.

    Blank sentences of a document are left out.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line has another form, or there is none; the message names file and line.
    """
    read = [record for _, record in read_as(_Summarized, path)]
    if not read:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    documents = tuple(tuple(text for text in one.sentences if text.strip()) for one in read)
    return ReferenceSummaries(documents, tuple(tuple(one.references) for one in read))


def evaluate_summarization(
    summarizer: Summarizer, data: ReferenceSummaries, budget: Budget, *, num_resamples: int = 0
) -> dict[str, Metrics]:
    """ROUGE of one summarizer.

    Args:
        summarizer: What makes the summaries.
        data: Documents and references.
        budget: How long a summary may be.
        num_resamples: Of the documents; see ``with_intervals``.

    Returns:
        ``{METHOD: rouge(...)}``.
    """
    of_each = rouge_of_each(summarizer.summaries(data.documents, budget), data.references)
    metrics = with_intervals(
        lambda *columns: {name: float(values.mean()) for name, values in zip(of_each, columns, strict=True)},
        *of_each.values(),
        num_resamples=num_resamples,
    )
    return {summarizer.method: metrics}


def rouge(summaries: Sequence[str], references: Sequence[Sequence[str]]) -> Metrics:
    """Means of ``rouge_of_each``."""
    return {name: float(values.mean()) for name, values in rouge_of_each(summaries, references).items()}


def rouge_of_each(summaries: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, NDArray[np.float64]]:
    """ROUGE F1 with stemming; of several references the best one counts, for each measure.

    Args:
        summaries: Texts.
        references: At least one text for each.

    Returns:
        ``rouge1``, ``rouge2``, ``rougeL`` in ``[0, 1]``, one a summary; ``length``, the number of words of each
        summary, separated by white space.

    Raises:
        ImportError: rouge-score is not installed.

    References:
        Lin 2004.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(_ROUGE), use_stemmer=True)
    scores = [scorer.score_multi(list(of_one), summary) for of_one, summary in zip(references, summaries, strict=True)]
    result = {name: np.array([score[name].fmeasure for score in scores]) for name in _ROUGE}
    return result | {"length": np.array([float(len(summary.split())) for summary in summaries])}


PHRASE_PAIRS = EvaluationTask(
    read=read_phrase_pairs,
    num_rows=lambda data: len(data.pairs),
    systems=phrase_systems,
    evaluate=evaluate_phrase_pairs,
)
PHRASE_CHOICE = EvaluationTask(
    read=read_phrase_choices,
    num_rows=lambda data: len(data.phrases),
    systems=phrase_systems,
    evaluate=evaluate_phrase_choice,
)


def sts_task(methods: Sequence[str] = (), *, skip_wmd: bool = False) -> EvaluationTask[ScoredPairs, PairSystem]:
    """Sentence similarity by the given methods, or by all that a model and the installed packages allow."""
    return EvaluationTask(
        read=read_sts,
        num_rows=lambda data: len(data.pairs),
        systems=partial(sts_systems, methods=methods, skip_wmd=skip_wmd),
        evaluate=evaluate_sts,
    )


OPPOSED_PAIRS = EvaluationTask(
    read=read_opposed_pairs,
    num_rows=lambda data: len(data.pairs),
    systems=opposed_pair_systems,
    evaluate=evaluate_opposed_pairs,
)


def summarization_task(
    *, num_sentences: int | None, max_words: int | None, as_in_paper: bool
) -> EvaluationTask[ReferenceSummaries, Summarizer]:
    """Summaries of so many sentences (3 when nothing is said) or words."""
    return EvaluationTask(
        read=read_summaries,
        num_rows=lambda data: len(data.documents),
        systems=partial(summarizers, coverage=PAPER_COVERAGE if as_in_paper else None),
        evaluate=partial(evaluate_summarization, budget=Budget(num_sentences, max_words)),
    )
