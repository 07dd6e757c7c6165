"""Extractive summarization: ROUGE against reference summaries (Chang 2022, table 3.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets_lab.evaluation.files import read_records
from facets_lab.evaluation.intervals import Metrics, with_intervals
from facets_lab.texts.evaluation.summarizers import Budget, Summarizer

__all__ = ["ReferenceSummaries", "evaluate_summarization", "read_summaries", "rouge", "rouge_of_each"]

_ROUGE = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True, slots=True)
class ReferenceSummaries:
    """Documents with the summaries people wrote or chose."""

    documents: tuple[tuple[str, ...], ...]  # sentences of each
    references: tuple[tuple[str, ...], ...]  # at least one for each document


def read_summaries(path: Path) -> ReferenceSummaries:
    """Reads JSON lines ``{"id", "sentences", "references"}``.

    Blank sentences of a document are left out.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line has another form, or there is none; the message names file and line.
    """
    documents, references = [], []
    for place, record in read_records(path):
        sentences = [text for text in _strings(record, "sentences", place) if text.strip()]
        if not sentences:
            raise InvalidInputError(f"{place}: expected at least one sentence, got none")
        documents.append(tuple(sentences))
        references.append(_strings(record, "references", place))
        if not any(text.strip() for text in references[-1]):
            raise InvalidInputError(f"{place}: expected at least one reference, got none")
    if not documents:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return ReferenceSummaries(tuple(documents), tuple(references))


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


def _strings(record: dict[str, object], name: str, place: str) -> tuple[str, ...]:
    values = record.get(name)
    if not isinstance(values, list):
        raise InvalidInputError(f"{place}: expected a list under {name!r}, got {type(values).__name__}")
    for position, value in enumerate(values):
        if not isinstance(value, str):
            raise InvalidInputError(f"{place}: expected text in {name}[{position}], got {type(value).__name__}")
    return tuple(values)
