"""The tables of texts: table 3.2 (sentences), 3.4 (phrases) and 3.3 (summaries) of Chang 2022."""

from collections.abc import Sequence
from functools import partial

from facets.texts.coverage import PAPER_COVERAGE
from facets_lab.evaluation.task import EvaluationTask
from facets_lab.texts.evaluation.pair_systems import PairSystem
from facets_lab.texts.evaluation.phrases import (
    evaluate_phrase_choice,
    evaluate_phrase_pairs,
    read_phrase_choices,
    read_phrase_pairs,
)
from facets_lab.texts.evaluation.sts import ScoredPairs, evaluate_sts, read_sts
from facets_lab.texts.evaluation.summaries import ReferenceSummaries, evaluate_summarization, read_summaries
from facets_lab.texts.evaluation.summarizers import Budget, Summarizer
from facets_lab.texts.evaluation.systems import phrase_systems, sts_systems, summarizers

__all__ = ["PHRASE_CHOICE", "PHRASE_PAIRS", "sts_task", "summarization_task"]

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
