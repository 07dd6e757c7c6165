"""Evaluates extractive summaries by ROUGE (Chang 2022, table 3.3).

Shape suffixes: S sentences, B texts, D dimensions.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from pydantic import AfterValidator

from facets.arrays import Doubles, Floats
from facets.language.vectors import unit_rows
from facets.model.contract import TextModel
from facets.texts.summarization import summarize
from facets.texts.words import TextWords
from facets_lab.evaluation.comparison import Embed, Report, if_installed, make_report, minilm
from facets_lab.evaluation.files import Record, read_records, require_rows
from facets_lab.evaluation.options import Baselines, Bootstrap, DataFile, Models
from facets_lab.evaluation.statistics import mean_metrics
from facets_lab.texts.pairs import load_text_models

_ROUGE = ("rouge1", "rouge2", "rougeL")
_DEFAULT_SENTENCES = 3

Document = Sequence[str]  # non-blank sentences, at least one


def _some(texts: list[str]) -> list[str]:
    if not any(text.strip() for text in texts):
        raise ValueError("must have at least one that is not blank")
    return texts


class _SummaryRecord(Record):
    sentences: Annotated[list[str], AfterValidator(_some)]
    references: Annotated[list[str], AfterValidator(_some)]


def read_summaries(path: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Documents as non-blank sentences, and the references of each, from ``{"id", "sentences", "references"}``."""
    records = [record for _, record in read_records(_SummaryRecord, path)]
    require_rows(path, records)
    documents = [[text for text in record.sentences if text.strip()] for record in records]
    return documents, [record.references for record in records]


class AverageEncoder:
    """The average word vector of a text as its only facet (Sent Emb of table 3.3)."""

    def __init__(self, model: TextModel) -> None:
        self._model = model

    def encode(self, texts: Sequence[str]) -> Floats:
        """``[B, 1, D]``; zero for a text without known words."""
        return self.embed(texts)[:, None]

    def embed(self, texts: Sequence[str]) -> Floats:
        """``[B, D]``."""
        words = TextWords(self._model, texts)
        return words.average(words.uniform_TL).numpy()


def best_ranked(
    document: Document, ranked: Sequence[int], *, num_sentences: int | None = None, max_words: int | None = None
) -> str:
    """The best of the ``ranked`` sentences that fit the limit, in document order; only the best if none fits."""
    left, chosen = max_words or num_sentences or _DEFAULT_SENTENCES, []
    for row in ranked:
        cost = 1 if max_words is None else len(document[row].split())
        if cost <= left:
            chosen.append(row)
            left -= cost
    return " ".join(document[row] for row in sorted(chosen or ranked[:1]))


def by_centroid(embed: Embed, document: Document) -> list[int]:
    """The sentences by cosine with the mean embedding of the document, best first."""
    units_SD = unit_rows(embed(document))
    rows: list[int] = np.argsort(-(units_SD @ units_SD.mean(axis=0)), kind="stable").tolist()
    return rows


def evaluate_summarization(
    file: DataFile,
    names_or_paths: Models = None,
    *,
    baselines: Baselines = False,
    num_resamples: Bootstrap = 0,
    num_sentences: Annotated[
        int | None, typer.Option("--sentences", min=1, metavar="N", help="Sentences of a summary; default: 3.")
    ] = None,
    max_words: Annotated[
        int | None, typer.Option("--words", min=1, metavar="N", help="Or: maximum words of a summary.")
    ] = None,
) -> Report:
    """Evaluate summaries by ROUGE. FILE has JSON lines {"id", "sentences", "references"}.

    Example: facets-eval summarization bbc-dev.jsonl.xz --sentences 3
    """
    if num_sentences is not None and max_words is not None:
        raise typer.BadParameter("--sentences and --words exclude each other")
    documents, references = read_summaries(file)
    models = load_text_models(names_or_paths, baselines)
    best = partial(best_ranked, num_sentences=num_sentences, max_words=max_words)
    covering = partial(summarize, documents=documents, num_sentences=num_sentences, max_words=max_words)

    def summaries() -> Iterator[tuple[str, str, list[str]]]:
        """Name and method of each system, and its summaries; baselines: those of table 3.3, and MiniLM's centroid."""
        for model in models:
            yield model.name, "coverage", [summary.text for summary in covering(model)]
        if baselines:
            yield "first", "ranking", [best(document, range(len(document))) for document in documents]
            # Eq. 3.7 alone.
            found = covering(models[0], encoder=AverageEncoder(models[0]), use_importance=False)
            yield "sentence-average", "coverage", [summary.text for summary in found]
            for embed in if_installed("minilm-centroid", minilm):
                centroid = partial(by_centroid, embed)
                yield "minilm-centroid", "ranking", [best(document, centroid(document)) for document in documents]

    measured = (
        (name, {method: mean_metrics(rouge_scores(texts, references), num_resamples=num_resamples)})
        for name, method, texts in summaries()
    )
    return make_report(file, len(documents), measured)


def rouge_scores(summaries: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, Doubles]:
    """ROUGE F1 with stemming, in ``[0, 1]``, and ``length`` in words; the best reference counts (Lin 2004)."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(_ROUGE), use_stemmer=True)
    scores = [scorer.score_multi(list(texts), summary) for texts, summary in zip(references, summaries, strict=True)]
    result = {name: np.array([score[name].fmeasure for score in scores]) for name in _ROUGE}
    return result | {"length": np.array([float(len(summary.split())) for summary in summaries])}
