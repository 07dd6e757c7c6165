"""Fits what the log-odds of the answer reader mean (``facets-eval calibrate-reader``).

The confidence of an answer is fitted on the written texts that are held out. That of a hit is fitted on the first hits
of searches in BEIR folders, and on the first hits of the same searches without the relevant documents.

Shape suffixes: M hits, F features.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.special import expit, logit

from facets.documents.confidence import RelevanceCurve
from facets.documents.types import SearchHit
from facets.errors import ConfigError
from facets.model.answer_reader import AnswerReader, LogisticWeights, load_reader, write_reader
from facets.model.shipped import DEFAULT_READER, find_model
from facets_lab.documents.beir import RetrievalData, read_beir, sampled
from facets_lab.documents.collection import SearchedModel, indexed, load_searched
from facets_lab.documents.reader import choices
from facets_lab.documents.reader_data import held_out_examples, written_examples
from facets_lab.documents.retrieval import is_itself
from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import DryRun, NumDocuments, Seed
from facets_lab.evaluation.statistics import expected_calibration_error, fit_logistic

Observed: TypeAlias = tuple[NDArray[np.float64], NDArray[np.bool_]]  # log-odds `[M, 2]`, and which are right, `[M]`
_DEPTH = 10  # hits that the reader may read
_LEAST = 1e-4  # probability that counts
_SHOWN = 0.1  # least confidence of hits that commands and pages show


def calibrate_reader(
    sources: Annotated[list[Path], typer.Argument(metavar="DIR...", help="BEIR folders of questions.")],
    name_or_path: Annotated[str, typer.Option("--reader", help="Name or folder of the reader.")] = DEFAULT_READER,
    model: Annotated[str | None, typer.Option(help="Passage model of the searches.")] = None,
    num_queries: Annotated[
        int, typer.Option("--limit-queries", min=1, metavar="N", help="Sample N queries of each folder.")
    ] = 200,
    num_documents: NumDocuments = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
) -> Report:
    """Fit the confidence of answers, and of hits that were read; folders are also left out of the fit, in turn.

    Example: facets-eval calibrate-reader squad covid-qa bioasq hotpotqa wiki-nq fiqa
    """
    if len(sources) < 2:
        raise ConfigError(f"expected two or more folders, got {len(sources)}")
    reader, searched = load_reader(name_or_path), load_searched(model)
    examples = held_out_examples()
    read = [reader.read(one.question, [(one.heading, one.sentences)])[0] for one in examples]
    best_M = np.array([own.argmax() for own in read])
    right_M = np.array([int(best) in (one.answers or ()) for best, one in zip(best_M, examples, strict=True)])
    log_odds_M = np.array([own.max() for own in read])
    answers = LogisticWeights(**fit_logistic(log_odds_M[:, None], right_M, np.ones(len(right_M)), ["answer"]))
    plain = reader.with_config(
        reader.config.replaced(answers=LogisticWeights(answer=1), hits=LogisticWeights(document=1))
    )
    observed = {"written": _observe_written(searched, plain)}
    for path in sources:
        data = sampled(read_beir(path), num_queries, num_documents, seed=seed)
        observed[data.name] = _observe(searched, plain, data)
    left_out = {}
    for name, (features_MF, relevant_M) in observed.items():
        weights = _fit([own for other, own in observed.items() if other != name])
        document_M = expit(features_MF[:, 1])
        found_M = np.array(
            [weights.probability(answer=a, document=d) for a, d in zip(features_MF[:, 0], document_M, strict=True)]
        )
        left_out[name] = {"read": _measure(found_M, relevant_M), "not_read": _measure(document_M, relevant_M)}
    hits = _fit(list(observed.values()))
    if not dry_run:
        config = reader.config.replaced(answers=answers, hits=hits)
        write_reader(find_model(name_or_path), config, reader.network, reader.pieces)
    return {
        "reader": reader.name,
        "data": [str(path) for path in sources],
        "rows": sum(len(relevant_M) for _, relevant_M in observed.values()),
        "answers": {"weights": answers.to_dict(), **choices(examples, read)},
        "hits": {"weights": hits.to_dict(), "left_out": left_out},
    }


def _observe(model: SearchedModel, reader: AnswerReader, data: RetrievalData) -> Observed:
    """First hits of the questions of a set, and of the same questions without the relevant documents."""
    observed = []
    for key, hits in _found(model, reader, data.documents, data.queries):
        grades = data.judgements[key]
        kept = [hit for hit in hits if not (hit.id == key and is_itself(data, key))]
        for some in (kept, [hit for hit in kept if grades.get(hit.id, 0) <= 0]):
            if some:
                observed.append((_log_odds(some), grades.get(some[0].id, 0) > 0))
    return _columns(observed)


def _observe_written(model: SearchedModel, reader: AnswerReader) -> Observed:
    """First hits of the questions to the written texts, some of which nothing answers."""
    examples = written_examples("dev")
    texts = {"\n".join((f"# {one.heading}", *one.sentences)): str(i) for i, one in enumerate(examples)}
    queries = {str(i): one.question for i, one in enumerate(examples)}
    observed = []
    for key, hits in _found(model, reader, {own: text for text, own in texts.items()}, queries):
        one = examples[int(key)]
        own = texts["\n".join((f"# {one.heading}", *one.sentences))]
        if hits:
            observed.append((_log_odds(hits), bool(one.answers) and hits[0].id == own))
    return _columns(observed)


def _found(
    model: SearchedModel, reader: AnswerReader, documents: Mapping[str, str], queries: Mapping[str, str]
) -> Iterator[tuple[str, Sequence[SearchHit]]]:
    curve = RelevanceCurve.read(find_model(model.name), model.revision)
    with indexed(model, documents) as collection:
        found = collection.search(
            list(queries.values()), ["hybrid"], top_k=_DEPTH, reasons=True, curve=curve, reader=reader
        )
    yield from zip(queries, found["hybrid"], strict=True)


def _log_odds(hits: Sequence[SearchHit]) -> NDArray[np.float64]:
    """The best by the reader, and those of the first hit without it, ``[2]``."""
    read = [hit.answer_confidence for hit in hits if hit.answer_confidence is not None]
    found: NDArray[np.float64] = logit(np.clip([max(read, default=0.0), hits[0].confidence], _LEAST, 1 - _LEAST))
    return found


def _columns(observed: Sequence[tuple[NDArray[np.float64], bool]]) -> Observed:
    return np.stack([row for row, _ in observed]), np.array([is_right for _, is_right in observed])


def _fit(observed: Sequence[Observed]) -> LogisticWeights:
    """Weights of the hits; all folders have equal weight."""
    features_MF, relevant_M = (np.concatenate(parts) for parts in zip(*observed, strict=True))
    weights_M = np.concatenate([np.full(len(own), 1 / len(own)) for _, own in observed])
    return LogisticWeights(**fit_logistic(features_MF, relevant_M, weights_M, ["answer", "document"]))


def _measure(confidence_M: NDArray[np.float64], relevant_M: NDArray[np.bool_]) -> dict[str, float]:
    """How well confidence tells hits that are relevant; shares of those hidden, and of others shown."""
    from sklearn.metrics import roc_auc_score

    return {
        "auc": float(roc_auc_score(relevant_M, confidence_M)),
        "calibration_error": expected_calibration_error(confidence_M, relevant_M),
        "right_hidden": float((confidence_M[relevant_M] < _SHOWN).mean()),
        "wrong_shown": float((confidence_M[~relevant_M] >= _SHOWN).mean()),
    }
