"""Extractive summarization: ROUGE against reference summaries (Chang 2022, table 3.3)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from facets.errors import InvalidInputError
from facets.evaluation.files import read_lines
from facets.extras import require_extra
from facets.tasks.interface import TextModel
from facets.tasks.summarization import summarize

__all__ = ["ReferenceSummaries", "evaluate_summarization", "read_summaries", "rouge"]

_ROUGE = ("rouge1", "rouge2", "rougeL")
# Sentences encoded together; documents are never cut.
_SENTENCES_AT_A_TIME = 4096


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
    for place, line in read_lines(path):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidInputError(
                f"{place}: expected a JSON object, got {error.msg} at character {error.pos}"
            ) from error
        if not isinstance(record, dict):
            raise InvalidInputError(f"{place}: expected a JSON object, got {type(record).__name__}")
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
    model: TextModel,
    data: ReferenceSummaries,
    *,
    num_sentences: int | None = None,
    max_words: int | None = None,
) -> dict[str, dict[str, float | None]]:
    """ROUGE of the model's summaries.

    Args:
        model: The model.
        data: Documents and references.
        num_sentences: Sentences of a summary.
        max_words: Instead, most words of a summary.

    Returns:
        ``{"coverage": rouge(...)}``.
    """
    summaries: list[str] = []
    for start, stop in _blocks([len(sentences) for sentences in data.documents]):
        documents = data.documents[start:stop]
        summaries += [s.text for s in summarize(model, documents, num_sentences=num_sentences, max_words=max_words)]
    return {"coverage": rouge(summaries, data.references)}


def rouge(summaries: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float | None]:
    """Mean ROUGE F1 with stemming; of several references the best one counts, for each measure.

    Args:
        summaries: Texts.
        references: At least one text for each.

    Returns:
        ``rouge1``, ``rouge2``, ``rougeL`` in ``[0, 1]``; ``length``, the mean number of words of a summary,
        separated by white space.

    Raises:
        ImportError: rouge-score is not installed.

    References:
        Lin 2004.
    """
    require_extra("train", "rouge_score")
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(_ROUGE), use_stemmer=True)
    scores = [scorer.score_multi(list(of_one), summary) for of_one, summary in zip(references, summaries, strict=True)]
    result: dict[str, float | None] = {
        name: float(np.mean([score[name].fmeasure for score in scores])) for name in _ROUGE
    }
    return result | {"length": float(np.mean([len(summary.split()) for summary in summaries]))}


def _blocks(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of consecutive documents with about ``_SENTENCES_AT_A_TIME`` sentences together."""
    blocks, start, total = [], 0, 0
    for position, size in enumerate(sizes):
        total += size
        if total >= _SENTENCES_AT_A_TIME or position == len(sizes) - 1:
            blocks.append((start, position + 1))
            start, total = position + 1, 0
    return blocks


def _strings(record: dict[str, object], name: str, place: str) -> tuple[str, ...]:
    values = record.get(name)
    if not isinstance(values, list):
        raise InvalidInputError(f"{place}: expected a list under {name!r}, got {type(values).__name__}")
    for position, value in enumerate(values):
        if not isinstance(value, str):
            raise InvalidInputError(f"{place}: expected text in {name}[{position}], got {type(value).__name__}")
    return tuple(values)
